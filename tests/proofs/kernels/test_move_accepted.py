"""Accepted rows of a tree move to where a chain would have put them, in all stores at once."""

from __future__ import annotations

import random

import pytest
import torch

from engine.kernels.round.accept import AcceptedPath
from engine.kernels.round.move_accepted import RowStores, move_accepted, reference_move
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kv_cache.cache import Cache
from engine.layer_config import AttentionConfig, LayerKind, RopeConfig
from engine.speculation.trees import Node, path_to
from tests.kernels.drawn_trees import drawn_tree
from tests.kernels.tensors import CPU

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")


def layer(heads: int, head_dim: int, window: int | None) -> AttentionConfig:
    kind: LayerKind = "full_attention" if window is None else "sliding_attention"
    return AttentionConfig(kind, heads, heads, head_dim, RopeConfig(1e4, head_dim), 1.0, window)


LAYERS = [layer(2, 32, 8), layer(1, 64, None), layer(3, 32, 20)]


def place(tree: list[Node], row: int, count: int | None = None) -> AcceptedPath:
    """The path to a row of a tree, of which so many rows were committed."""
    rows = path_to(tree, row)
    path = AcceptedPath.allocate(CPU)
    path.rows[: len(rows)] = torch.tensor(rows)
    path.count.fill_(len(rows) if count is None else count)
    return path


def stores(dtype: torch.dtype) -> tuple[Cache, torch.Tensor, RowStores]:
    cache = Cache(LAYERS, 100, 16, dtype, CPU)
    features = torch.randn(17, 96, generator=torch.Generator().manual_seed(1)).to(dtype)
    for index, one in enumerate(cache.layers):
        one.k.normal_(generator=torch.Generator().manual_seed(index))
        one.v.normal_(generator=torch.Generator().manual_seed(100 + index))
    return cache, features, RowStores(cache.layers, features)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("seed", range(6))
def test_it_equals_the_reference(seed: int, dtype: torch.dtype) -> None:
    """Wherever rings begin anew, and with stop tokens on the path."""
    rng = random.Random(seed)
    _, features, where = stores(dtype)
    for _ in range(4):
        tree = drawn_tree(rng, 16)
        row, before = rng.randrange(16), rng.randrange(84)
        path = place(tree, row)
        path.count.fill_(rng.randint(1, int(path.count)))
        path.before.fill_(before)
        rows = path.rows[: int(path.count)].tolist()
        expected = [store.clone() for store in (*where.stores, features[None])]
        for store in expected[:-1]:
            reference_move(store, rows, before)
        reference_move(expected[-1], rows, 0)
        move_accepted(where, path)
        for store, wanted in zip((*where.stores, features[None]), expected, strict=True):
            assert torch.equal(store, wanted)


def test_rows_that_move_onto_one_another() -> None:
    cache, features, where = stores(torch.float32)
    tree = [Node(0, 1, 0, 0.5), Node(0, 1, 1, 0.4), Node(2, 2, 0, 0.4), Node(3, 3, 0, 0.4), Node(4, 4, 0, 0.4)]
    path, before = place(tree, 5), features.clone()
    assert path.rows[:5].tolist() == [0, 2, 3, 4, 5]
    full = cache.layers[1].k.clone()
    path.before.fill_(50)
    move_accepted(where, path)
    assert torch.equal(features[:5], before[[0, 2, 3, 4, 5]]) and torch.equal(features[5:], before[5:])
    assert torch.equal(cache.layers[1].k[:, 50:55], full[:, [50, 52, 53, 54, 55]])


@pytest.mark.parametrize(("row", "count"), [(1, 2), (0, 1), (3, 0), (3, 1)])
def test_nothing_moves_along_the_trunk_or_after_the_end(row: int, count: int) -> None:
    _, features, where = stores(torch.bfloat16)
    tree = [Node(0, 1, 0, 0.5), Node(0, 1, 1, 0.4), Node(2, 2, 0, 0.4)]
    before = [store.clone() for store in (*where.stores, features)]
    move_accepted(where, place(tree, row, count))
    for store, wanted in zip((*where.stores, features), before, strict=True):
        assert torch.equal(store, wanted)
