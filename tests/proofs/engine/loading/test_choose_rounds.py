"""A kernel that fails is named, and the next way gives the same text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.decoding.decoder import Decoder, Prompt
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.host_rounds import HostRounds
from engine.kernels.decode.products import dense, head
from engine.kernels.prefill import attention
from engine.kernels.toolchain.card import HOPPER, representative, stand_in
from engine.kernels.toolchain.jit import INTERPRETED, KernelFailure
from engine.loading import choose_rounds as starting
from engine.loading.checkpoint import load_drafter, load_target
from engine.loading.choose_rounds import choose_rounds, ways_with
from engine.models.attention_backends import SDPA, TRITON
from support.checkpoints import FULL, SLIDING, drafter_config, random_target, write_drafter
from support.ordered_sums import sum_in_order
from support.shapes import random_pair, read_shape
from tests.engine.conftest import CPU, no_progress
from tests.engine.decoding.pairs import DRAFT_TILES, TILES, Pair
from tests.engine.small_decoders import prompt_ids, run_turn, settings

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

IDS = prompt_ids(9)
WANTED = settings(max_new_tokens=3)
PROMPT = Prompt(IDS, 0)
WAYS = ways_with(TILES, DRAFT_TILES)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder: Path = tmp_path_factory.mktemp("pair")
    random_target([SLIDING, FULL], False, seed=2).save_pretrained(folder / "target")
    write_drafter(folder / "drafter", drafter_config([SLIDING], [0, 1], 2), seed=2)
    target = load_target(folder / "target", CPU, no_progress)
    target.config = replace(target.config, stop_token_ids=())
    return Pair(target, load_drafter(folder / "drafter", target, no_progress))


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "ROUNDS", 2)


@pytest.fixture
def other_card() -> Iterator[None]:
    """One that nobody measured."""
    stand_in(representative(86))
    yield
    stand_in(HOPPER)


@pytest.fixture
def unmeasured(other_card: None, monkeypatch: pytest.MonkeyPatch) -> None:
    sum_in_order(monkeypatch)


@dataclass
class Failing:
    """Stands in for a kernel: its launches fail where ``when`` says so of their options."""

    kernel: Any
    when: Callable[[dict[str, Any]], bool]

    def __getitem__(self, grid: object) -> Callable[..., object]:
        def launch(*args: object, **options: Any) -> object:
            if self.when(options):
                raise KernelFailure("_named", ValueError("out of resource: shared memory\nmore"))
            return self.kernel[grid](*args, **options)

        return launch


def chosen(pair: Pair) -> tuple[Decoder, list[str]]:
    decoder, said = Decoder(pair.target, pair.drafter, 128), list[str]()
    choose_rounds(decoder, PROMPT, None, WAYS, said.append)
    return decoder, said


def text_of(decoder: Decoder) -> list[int]:
    return [token for each in run_turn(decoder, IDS, WANTED).rounds for token in each.emitted]


NAMED = "A kernel fails on this GPU: _named: ValueError: out of resource: shared memory."


@pytest.mark.usefixtures("other_card")
def test_a_copy_does_without_a_wide_pass_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried on cards where none has run."""
    results = [None, "rows are wrong"]
    monkeypatch.setattr(starting, "wide_rows_depart", lambda *_others: results.pop(0))
    for others in ("prompts_depart", "passes_depart"):
        monkeypatch.setattr(starting, others, lambda *_others: None)
    target, _ = random_pair(read_shape("tiny"), CPU, weights="fp8")
    target.layers, target.config = target.layers[4:6], replace(target.config, layers=target.config.layers[4:6])
    with_experts = Pair(target, None)
    widths = []
    for expected in ([], ["Kernels don't work on this GPU: rows are wrong. Copies are written in rounds of 16 rows."]):
        decoder, said = chosen(with_experts)
        assert said == expected and isinstance(decoder.rounds, DeviceRounds)
        widths.append(decoder.rounds.launches.widest)
    assert widths == [64, 16] and not results


def test_other_tiles_are_tried_first(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = text_of(Decoder(pair.target, pair.drafter, 128))
    monkeypatch.setattr(dense, "_project", Failing(dense._project, lambda options: options["num_stages"] > 2))
    decoder, said = chosen(pair)
    assert said == [f"{NAMED} Other tiles are tried."]
    assert isinstance(decoder.rounds, DeviceRounds) and decoder.rounds.launches.target.tiles == WAYS[1][0]  # type: ignore[attr-defined]
    assert text_of(decoder) == expected


def test_modules_run_the_rounds_where_no_tiles_do(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = text_of(Decoder(pair.target, pair.drafter, 128))
    monkeypatch.setattr(head, "_head", Failing(head._head, lambda _options: True))
    decoder, said = chosen(pair)
    assert said == [
        f"{NAMED} Other tiles are tried.",
        f"{NAMED} Rounds are run by PyTorch's modules, more slowly.",
    ]
    assert isinstance(decoder.rounds, HostRounds) and text_of(decoder) == expected


def test_modules_read_prompts_where_kernels_fail(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = text_of(Decoder(pair.target, pair.drafter, 128))
    monkeypatch.setattr(attention, "_attend_chunk", Failing(attention._attend_chunk, lambda _options: True))
    pair.target.use_attention([TRITON] * 2)
    decoder = Decoder(pair.target, pair.drafter, 128)
    assert decoder.read is not pair.target
    said: list[str] = []
    choose_rounds(decoder, PROMPT, None, [], said.append)
    assert said == [f"{NAMED} Prompts are read by PyTorch's modules instead, more slowly."]
    assert pair.target.attention_backend == SDPA.name and text_of(decoder) == expected


@pytest.mark.usefixtures("unmeasured")
def test_results_are_held_against_modules_where_nobody_measured(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = text_of(Decoder(pair.target, pair.drafter, 128))
    assert chosen(pair)[1] == []
    reads, activate = [], dense.gate_up

    def wrong(x: torch.Tensor, weight: Any, out: torch.Tensor, *others: Any) -> None:
        activate(x, weight, out, *others)
        reads.append(out.neg_())

    monkeypatch.setattr("engine.models.gemma4.decode_pass.gate_up", wrong)
    decoder, said = chosen(pair)
    where = "kernels compute a pass otherwise than PyTorch, from layer 0 (sliding_attention) on"
    assert said[-1] == f"Kernels don't work on this GPU: {where}. Rounds are run by PyTorch's modules, more slowly."
    assert reads and isinstance(decoder.rounds, HostRounds) and text_of(decoder) == expected


@pytest.mark.usefixtures("unmeasured")
def test_a_row_must_have_one_text_in_every_width(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    project = dense.project

    def depends(x: torch.Tensor, weight: Any, out: torch.Tensor, tiles: Any, max_rows: int = 16) -> None:
        project(x, weight, out, tiles, max_rows)
        if max_rows == 1:
            out.mul_(1 + 1e-6)

    monkeypatch.setattr("engine.models.gemma4.decode_pass.project", depends)
    decoder, said = chosen(pair)
    assert "a row alone has other bits than among sixteen" in said[-1] and isinstance(decoder.rounds, HostRounds)
