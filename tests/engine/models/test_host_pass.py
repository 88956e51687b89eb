"""A target in 4 bits on a CPU, whose pass calls no module: against its modules."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.kernels.weights.q4 import GROUP
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_target
from engine.models.packed import hold_in_fewer_bits, packable, packs_on_cpu
from engine.models.pre_norm.modules import PreNormTarget
from engine.models.target import TargetOutput
from tests.engine.conftest import no_progress
from tests.engine.models.pre_norm import LLAMA3, write_target
from tests.engine.small_decoders import prompt_ids

pytestmark = pytest.mark.skipif(not packs_on_cpu(), reason="this CPU multiplies no bytes")
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


def packed(folder: Path, family: str = "llama", in_levels: bool = True) -> PreNormTarget:
    write_target(folder, family, 7, LLAMA3, **SHAPE)
    target = load_target(folder, CPU, no_progress)
    assert isinstance(target, PreNormTarget)
    for name in list(packable(target)) if in_levels else ():
        put_on_levels(target.get_parameter(name).detach())
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
    assert found._host_pass is not None
    return found


@torch.inference_mode()
def run(target: PreNormTarget, rows: int) -> TargetOutput:
    """The whole text, so many rows at a time."""
    cache = Cache(target.config.layers, 64, 32, torch.float64, CPU)
    found = []
    for piece in torch.tensor(TEXT).split(rows):
        found.append(target(piece, cache.length, cache, TAPS))
        cache.commit(cache.length + len(piece))
    hidden, features = zip(*found, strict=True)
    return TargetOutput(torch.cat(hidden), torch.cat(features))


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_it_computes_what_the_modules_do(target: PreNormTarget, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both round rows to bf16 in front of products, and what comes of them; a norm is rounded at another scale."""
    without_modules = run(target, rows)
    monkeypatch.setattr(target, "_host_pass", None)
    for found, expected in zip(without_modules, run(target, rows), strict=True):
        assert found is not None and expected is not None and not torch.equal(found, expected)
        assert (found - expected).norm() < 0.02 * expected.norm()


@pytest.mark.parametrize("rows", [2, 3, 16, 17, 40])
def test_a_row_has_the_same_bits_alone_and_among_others(target: PreNormTarget, rows: int) -> None:
    for alone, among in zip(run(target, 1), run(target, rows), strict=True):
        assert alone is not None and among is not None and torch.equal(alone, among)


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
    assert packed(tmp_path, family, in_levels)._host_pass is None


def test_what_is_moved_is_settled_no_longer(tmp_path: Path) -> None:
    assert packed(tmp_path).to(CPU)._host_pass is None
