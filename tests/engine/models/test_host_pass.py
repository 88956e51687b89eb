"""A target in 4 bits on a CPU, whose pass calls no module: against its modules."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.kernels.weights.q4 import GROUP, multiplies_nibbles
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_target
from engine.models.packed import hold_in_fewer_bits, packable
from engine.models.pre_norm.modules import PreNormTarget
from engine.models.target import TargetOutput
from tests.engine.conftest import no_progress
from tests.engine.models.pre_norm import LLAMA3, write_target
from tests.engine.small_decoders import prompt_ids

pytestmark = pytest.mark.skipif(not multiplies_nibbles(), reason="PyTorch has no products of 4 bits for this CPU")
CPU = torch.device("cpu")
TAPS = (0, 2)
SHAPE = {
    "hidden_size": 192,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 64,
}
TEXT = prompt_ids(40, 3)


def floats(folder: Path, family: str = "llama", in_levels: bool = True, seed: int = 7) -> PreNormTarget:
    """With weights as Q4_1 can hold them, if ``in_levels``."""
    write_target(folder, family, seed, LLAMA3, **SHAPE)
    target = load_target(folder, CPU, no_progress)
    assert isinstance(target, PreNormTarget)
    for name in list(packable(target)) if in_levels else ():
        put_on_levels(target.get_parameter(name).detach())
    return target


def packed(folder: Path, family: str = "llama", in_levels: bool = True, seed: int = 7) -> PreNormTarget:
    target = floats(folder, family, in_levels, seed)
    assert hold_in_fewer_bits(target) == ("int4" if in_levels else "int8")
    return target


def put_on_levels(weight: Tensor) -> None:
    groups = weight.view(len(weight), -1, GROUP)
    least, most = groups.aminmax(dim=-1, keepdim=True)
    step = (most - least) / 15
    groups.copy_((groups - least).div_(step).round_().mul_(step).add_(least))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> PreNormTarget:
    found = packed(tmp_path_factory.mktemp("levels"))
    assert found.host_pass is not None
    return found


@torch.inference_mode()
def run(target: PreNormTarget, rows: int) -> TargetOutput:
    """The whole text, so many rows at a time."""
    cache = Cache(target.config.layers, 64, 32, target.cache_dtype or target.dtype, CPU)
    found = []
    for piece in torch.tensor(TEXT).split(rows):
        found.append(target(piece, cache.length, cache, TAPS))
        cache.commit(cache.length + len(piece))
    hidden, features = zip(*found, strict=True)
    return TargetOutput(torch.cat(hidden), torch.cat(features))


def test_it_strays_no_further_than_the_modules(tmp_path: Path) -> None:
    """From the same weights in fp32, a few models together. Both round rows to bf16 in front of products, and what
    comes of them, at other scales."""
    strayed: list[tuple[Tensor, Tensor]] = []
    for seed in range(4):
        exact = run(floats(tmp_path / f"{seed}", seed=seed), 7)
        target = packed(tmp_path / f"{seed}", seed=seed)
        for right, found, expected in zip(exact, run(target, 7), _by_modules(target, 7), strict=True):
            assert right is not None and found is not None and expected is not None and not torch.equal(found, expected)
            strayed.append(((found - right).norm() / right.norm(), (expected - right).norm() / right.norm()))
    by_it, by_modules = (torch.stack(each).mean() for each in zip(*strayed, strict=True))
    assert 0 < by_it < 1.1 * by_modules < 0.05


def _by_modules(target: PreNormTarget, rows: int) -> TargetOutput:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, "host_pass", None)
        return run(target, rows)


@pytest.mark.parametrize("rows", [3, 16, 40])
def test_a_row_has_the_same_bits_alone_and_among_others(target: PreNormTarget, rows: int) -> None:
    for alone, among in zip(run(target, 1), run(target, rows), strict=True):
        assert alone is not None and among is not None and torch.equal(alone, among)


@pytest.mark.parametrize("rows", [4, 40])
def test_a_row_has_the_same_bits_by_one_thread_and_by_more(target: PreNormTarget, rows: int) -> None:
    """Their number may change within an answer."""
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(run(target, rows))
    finally:
        torch.set_num_threads(before)
    for one, two, three in zip(*found, strict=True):
        assert one is not None and two is not None and three is not None
        assert torch.equal(one, two) and torch.equal(one, three)


def test_another_branch_takes_the_places_of_the_first(target: PreNormTarget) -> None:
    """As refused drafts do: rows are run again behind a cursor that stays."""
    cache = Cache(target.config.layers, 64, 32, torch.float64, CPU)
    with torch.inference_mode():
        target(torch.tensor(TEXT[:20]), 0, cache)
        cache.commit(20)
        expected = target(torch.tensor(TEXT[20:24]), 20, cache).hidden
        target(torch.tensor(TEXT[30:38]), 20, cache)
        assert torch.equal(target(torch.tensor(TEXT[20:24]), 20, cache).hidden, expected)


@pytest.mark.parametrize(("family", "in_levels"), [("qwen3", True), ("llama", False)])
def test_other_layers_are_run_by_their_modules(tmp_path: Path, family: str, in_levels: bool) -> None:
    """Heads with norms of their own, and products in 8 bits."""
    assert packed(tmp_path, family, in_levels).host_pass is None


def test_what_is_moved_is_settled_no_longer(tmp_path: Path) -> None:
    assert packed(tmp_path).to(CPU).host_pass is None
