"""The target's pass of at most 16 rows against its modules, in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.kernels.decode.tiles import TargetTiles, Tiles
from engine.kernels.round.tree_rows import TreeRows
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kernels.weights.plain import PlainWeight
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_target
from engine.models.gemma4.decode_pass import DecodePass
from engine.models.gemma4.modules import Gemma4
from engine.models.layers import linear
from engine.models.merged_weights import side_by_side
from engine.speculation.trees import Node, path_to
from tests.engine.conftest import no_progress
from tests.engine.models.published import PUBLISHED, write_published
from tests.engine.small_decoders import prompt_ids

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

CPU = torch.device("cpu")
PROMPT = 30
"""Longer than the window of 24: the rings are full, and the rows wrap around their ends."""
LARGE = TargetTiles(
    qkv=Tiles(64, 64),
    output=Tiles(32, 64, splits=2),
    gate_up=Tiles(32, 64),
    down=Tiles(32, 32, splits=3),
    expert_gate_up=Tiles(32, 64),
    expert_down=Tiles(64, 32),
    head=Tiles(128, 64),
)
"""Few programs: each costs the interpreter milliseconds."""


ALL = pytest.mark.parametrize("target", list(PUBLISHED), indirect=True)
MOE = pytest.mark.parametrize("target", ["26B-A4B"], indirect=True)
DENSE = pytest.mark.parametrize("target", ["12B"], indirect=True)


@pytest.fixture(scope="module")
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Gemma4:
    """One sliding and one full layer of a published kind."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    write_published(folder, request.param, seed=3)
    whole = load_target(folder, CPU, no_progress)
    whole.layers = whole.layers[1:3]
    whole.config = replace(whole.config, layers=whole.config.layers[1:3])
    assert [layer.window for layer in whole.config.layers] == [24, None]
    return whole


class Pass:
    """A target's rows over a cache that holds a prompt, and what its modules make of the same."""

    def __init__(self, target: Gemma4, taps: Sequence[int] = (0, 1)):
        dtype = target.embed_tokens.weight.dtype
        self.target, self.taps, self.length = target, taps, 0
        self.caches = [Cache(target.config.layers, 128, PROMPT, dtype, CPU) for _ in range(2)]
        self.cursor, self.count = (torch.zeros(1, dtype=torch.int32) for _ in range(2))
        self.rows = DecodePass(target, self.caches[0], self.cursor, self.count, taps, LARGE)
        self.by_modules(prompt_ids(PROMPT), both=True)
        self.commit(PROMPT)

    def commit(self, count: int) -> None:
        self.length += count
        self.cursor.fill_(self.length)

    def by_modules(self, ids: Sequence[int], both: bool = False) -> tuple[Tensor, Tensor]:
        """Logits and features."""
        for cache in self.caches[0 if both else 1 :]:
            out = self.target(torch.tensor(ids), self.length, cache, self.taps)
        assert out.features is not None
        return self.target.logits(out.hidden), out.features

    def by_rows(self, ids: Sequence[int], max_rows: int = 16, tree: TreeRows | None = None) -> tuple[Tensor, Tensor]:
        """The same; rows that don't count hold another pass's tokens."""
        self.rows.ids[: len(ids)] = torch.tensor(ids)
        self.count.fill_(len(ids))
        self.rows.forward(max_rows, tree=tree)
        logits = self.rows.out.logits
        assert logits is not None
        return logits[: len(ids)].clone(), self.rows.features[: len(ids)].clone()


@ALL
@torch.inference_mode()
def test_equals_the_modules(target: Gemma4) -> None:
    both = Pass(target)
    for number, width in enumerate((3, 1)):
        ids = prompt_ids(width, seed=number + 1)
        expected, actual = both.by_modules(ids), both.by_rows(ids, max_rows=1 if width == 1 else 16)
        torch.testing.assert_close(actual[0], expected[0], atol=1e-4, rtol=0)
        torch.testing.assert_close(actual[1], expected[1], atol=1e-4, rtol=0)
        best = expected[0].softmax(-1).max(-1)
        assert torch.equal(both.rows.out.token[:width], best.indices)
        torch.testing.assert_close(both.rows.out.probability[:width], best.values, atol=1e-5, rtol=1e-4)
        both.commit(width)
    for ours, theirs in zip(*(cache.layers for cache in both.caches), strict=True):
        torch.testing.assert_close(ours.k, theirs.k, atol=1e-4, rtol=0)
        torch.testing.assert_close(ours.v, theirs.v, atol=1e-4, rtol=0)


@MOE
@torch.inference_mode()
def test_bf16_is_no_worse_than_the_modules(target: Gemma4) -> None:
    """Both round their activations to bf16; the modules more often."""
    rounded = deepcopy(target).to(torch.bfloat16)
    exact = deepcopy(rounded).float()
    ids = prompt_ids(4, seed=1)
    expected, _ = Pass(exact).by_modules(ids)
    both = Pass(rounded)
    module_error = (both.by_modules(ids)[0] - expected).square().mean().sqrt()
    row_error = (both.by_rows(ids)[0] - expected).square().mean().sqrt()
    assert 0 < row_error <= 1.05 * module_error


@MOE
@torch.inference_mode()
@pytest.mark.usefixtures("ordered_sums")
def test_a_block_has_the_bits_of_its_rows_one_by_one(target: Gemma4) -> None:
    """Logits, features, keys and values: what DFlash computes in one pass, the target alone computes in three."""
    target = deepcopy(target).to(torch.bfloat16)
    ids = prompt_ids(3, seed=1)
    block, steps = Pass(target), Pass(target)
    logits, features = block.by_rows(ids)
    for row, token in enumerate(ids):
        step_logits, step_features = steps.by_rows([token], max_rows=1)
        assert torch.equal(step_logits[0], logits[row]) and torch.equal(step_features[0], features[row])
        steps.commit(1)
    for one, other in zip(block.caches[0].layers, steps.caches[0].layers, strict=True):
        assert torch.equal(one.k, other.k) and torch.equal(one.v, other.v)


@DENSE
@torch.inference_mode()
@pytest.mark.usefixtures("ordered_sums")
def test_rows_of_a_tree_have_the_bits_of_their_paths(target: Gemma4) -> None:
    """Logits and features, as a chain of their ancestors has them, also of a single row."""
    target = deepcopy(target).to(torch.bfloat16)
    ids, posed = prompt_ids(4, seed=1), TreeRows.allocate(CPU)
    tree = [Node(0, 1, 0, 0.5), Node(0, 1, 1, 0.3), Node(2, 2, 0, 0.2)]
    posed.pose(tree)
    whole, chain = Pass(target), Pass(target)
    logits, features = whole.by_rows(ids, 4, posed)
    for leaf in (1, 3):
        path = path_to(tree, leaf)
        expected = chain.by_rows([ids[row] for row in path], max_rows=len(path))
        assert torch.equal(logits[path], expected[0]) and torch.equal(features[path], expected[1])
    alone = whole.by_rows(ids[:1], max_rows=1)
    assert torch.equal(alone[0][0], logits[0]) and torch.equal(alone[1][0], features[0])


@MOE
@torch.inference_mode()
def test_routing_can_be_forced(target: Gemma4) -> None:
    """For measuring: rows and modules then choose the same experts."""
    forced = deepcopy(target)
    for number, layer in enumerate(forced.layers):
        layer.router.forced = torch.randn(16, 16, generator=torch.Generator().manual_seed(number))
    ids = prompt_ids(3, seed=1)
    both = Pass(forced)
    expected, actual = both.by_modules(ids)[0], both.by_rows(ids)[0]
    torch.testing.assert_close(actual, expected, atol=1e-4, rtol=0)
    assert not torch.allclose(actual, Pass(target).by_modules(ids)[0], atol=1e-2)


def test_merged_weights_are_the_modules_weights() -> None:
    layers = [linear(8, outputs) for outputs in (4, 2, 6)]
    for layer in layers:  # whose weights are whatever lay there, NaN at times
        torch.nn.init.normal_(layer.weight)
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))
    before = [layer(x) for layer in layers]
    merged = side_by_side(*layers)
    assert isinstance(merged, PlainWeight) and merged.shape == (12, 8) and merged.is_contiguous
    assert all(torch.equal(layer(x), rows) for layer, rows in zip(layers, before, strict=True))
    storage = merged.values.untyped_storage().data_ptr()
    assert all(layer.weight.untyped_storage().data_ptr() == storage for layer in layers)
    again = side_by_side(*layers)
    assert again.values.data_ptr() == merged.values.data_ptr() and torch.equal(again.values, merged.values)
    layers[1].weight.detach().fill_(3)
    assert (merged.rows(4, 6).restored() == 3).all()
