"""An assistant on the device, in Triton's interpreter: it drafts what the host drafts, and the text is the target's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.toolchain.jit import INTERPRETED
from engine.loading.checkpoint import load_drafter, load_target
from engine.measured.costs import time_rounds
from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable, RoundCosts
from tests.engine.assistants import lending_keys, write_assistant
from tests.engine.checkpoints import FULL, SLIDING, random_target
from tests.engine.conftest import CPU, no_progress
from tests.engine.decoding import test_wide_device_rounds as wide
from tests.engine.decoding.test_device_rounds import DRAFT_TILES, TILES, Pair, assert_same_rounds
from tests.engine.decoding.test_wide_device_rounds import repeats
from tests.engine.small_decoders import prompt_ids, run_turn, settings

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

CONTEXT = 96
SEQUENTIAL = CostTable(
    (0,), (RoundCosts(0.1, tuple(2.0 + 0.05 * row for row in range(16)), 0.01, step=0.8, one_by_one=True),)
)


@pytest.fixture(scope="module", params=[False, True], ids=["dense", "experts"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("pair")
    with lending_keys():
        theirs = random_target([SLIDING, FULL], request.param, seed=2)
    theirs.save_pretrained(folder / "target")
    write_assistant(folder / "assistant", theirs, seed=2)
    target = load_target(folder / "target", CPU, no_progress)
    target.config = replace(target.config, stop_token_ids=())
    return Pair(target, load_drafter(folder / "assistant", target, no_progress))  # type: ignore[arg-type]


def on_device(pair: Pair) -> Decoder:
    decoder = Decoder(pair.target, pair.drafter, CONTEXT)
    decoder.use_rounds(DeviceRounds(RoundLaunches(decoder, tiles=TILES, draft_tiles=DRAFT_TILES)))
    return decoder


def by_host(pair: Pair) -> Decoder:
    return Decoder(pair.target, pair.drafter, CONTEXT)


@pytest.mark.parametrize(
    ("pair", "length", "temperature", "block"), [(True, 4, 0.0, 4), (False, 40, 0.8, 3)], indirect=["pair"]
)
def test_device_rounds_are_the_hosts(pair: Pair, length: int, temperature: float, block: int) -> None:
    """Below the window of 24 and beyond it, where its keys lie around the ring's end."""
    wanted = settings(block_size=block, temperature=temperature, seed=3, max_new_tokens=4)
    prompt = prompt_ids(length)
    assert_same_rounds(run_turn(on_device(pair), prompt, wanted), run_turn(by_host(pair), prompt, wanted))


@pytest.mark.parametrize("pair", [False], indirect=True, ids=["dense"])
def test_an_automatic_depth_is_drafted_as_chosen(pair: Pair) -> None:
    """The number of drafts changes from round to round, and rounds without one keep the newest hidden state."""
    device, wanted, prompt = on_device(pair), settings(max_new_tokens=11, draft_by="drafter"), prompt_ids(30)
    device.use_policy(Auto(SEQUENTIAL))
    answer = run_turn(device, prompt, wanted)
    assert answer.ids == run_turn(Decoder(pair.target, None, CONTEXT), prompt, wanted).ids
    drafted = [len(done.draft_ids) for done in answer.rounds[1:]]
    assert len({count for count in drafted if count}) > 1 and 0 in drafted
    # The last draft, behind a rest, is what a decoder that starts from nothing makes of the same text.
    places = [place for place, done in enumerate(answer.rounds) if done.draft_ids]
    last = answer.rounds[places[-1]].draft_ids
    text = [*prompt, *(token for done in answer.rounds[: places[-1]] for token in done.emitted)]
    wanted = settings(block_size=len(last) + 1, max_new_tokens=len(last) + 2, draft_by="drafter")
    assert run_turn(by_host(pair), text[:-1], wanted).rounds[1].draft_ids == last


@pytest.mark.parametrize("pair", [False], indirect=True, ids=["dense"])
def test_each_draft_is_priced(pair: Pair) -> None:
    table = time_rounds(by_host(pair), prompt_ids(16))
    assert table is not None and table.costs[0].step > 0
    assert table.costs[0].round(3) == pytest.approx(table.costs[0].round(3, 5) - 2 * table.costs[0].step)


@pytest.mark.parametrize("pair", [True], indirect=True, ids=["experts"])
def test_it_drafts_on_behind_wide_rounds(pair: Pair) -> None:
    """Which tell it of the newest row that was kept, wherever in the pass that stood."""
    pair, wanted = Pair(repeats(pair.target), pair.drafter), replace(wide.AUTO, max_new_tokens=80)
    answers = []
    for device in (True, False):
        decoder = wide.decoder_of(pair, wide.HALF, wide.DRAFT, wide.WIDE, wide.DRAFT, device=device)
        answers.append(run_turn(decoder, wide.PROMPT, wanted))
    assert_same_rounds(*answers)
    assert max(len(done.emitted) for done in answers[0].rounds) > 32
    assert sum(bool(done.draft_ids) for done in answers[0].rounds) > 1
