"""Attention of rows that are a tree of drafts: each has the bits that it has in a chain of its ancestors."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.kernels.decode.attention.attend_rows import AttendScratch, attend_rows, attend_rows_reference
from engine.kernels.decode.attention.attend_tiles import AttendTiles
from engine.kernels.round.tree_rows import TreeRows
from engine.speculation.trees import Node, best_first, in_rows, path_to
from tests.kernels.tensors import CPU
from tests.proofs.kernels.test_row_attention import (
    SMALL_FULL,
    SMALL_WINDOW,
    Case,
    _few_splits_in_order,
    capacity_of,
    layer,
    make,
)

__all__ = ["_few_splits_in_order"]

LAYERS = {
    "window": layer(2, 1, 16, 40),
    "window, a head its own keys": layer(1, 1, 16, 21),
    "window, 8 heads a key": layer(8, 1, 16, 24, value_is_key=True),
    "window, 3 heads a key": layer(3, 1, 16, 24),
    "full": layer(2, 1, 16, None, value_is_key=True),
    "full, 8 heads a key": layer(8, 1, 16, None),
}
TILES = replace(SMALL_WINDOW, split=16), replace(SMALL_FULL, split=16)
"""Many splits, and so small that the rows of a tree always reach two, or end with one."""
CURSORS = {
    "window": (5, 111),
    "window, a head its own keys": (45,),
    "window, 8 heads a key": (58,),
    "window, 3 heads a key": (79,),
    "full": (64,),
    "full, 8 heads a key": (43,),
}
"""At the start, within a split and at its edges, and where rings wrap."""


def small(case: Case) -> AttendTiles:
    return TILES[case.config.window is None]


def star(rows: int = 15) -> list[Node]:
    return [Node(0, 1, choice, 0.1) for choice in range(rows)]


def chain(rows: int = 15) -> list[Node]:
    return [Node(depth, depth + 1, 0, 0.1) for depth in range(rows)]


def grown(seed: int, rows: int = 16) -> list[Node]:
    """Of random chances: some trees are deep, some broad."""
    rng = random.Random(seed)
    sure = rng.uniform(0.3, 0.9)
    chances = [sorted((sure**2, *(rng.uniform(0, 1 - sure) for _ in range(3))), reverse=True) for _ in range(15)]
    return in_rows(best_first(chances, rows))


def posed(tree: list[Node]) -> TreeRows:
    rows = TreeRows.allocate(CPU)
    rows.set_tree(tree)
    return rows


def attend(case: Case, cursor: int, tree: list[Node], tiles: AttendTiles | None = None, launches: int = 1) -> Tensor:
    """The mix of the tree's rows, [rows, heads * head_dim]; the cache keeps their keys."""
    out, tiles = case.untouched(), tiles or small(case)
    scratch = AttendScratch([case.config], [case.k.shape[1]], CPU, tiles)
    for part in (scratch.highest, scratch.total, scratch.mixed):
        part.fill_(float("nan"))
    for _ in range(launches):
        given = case.given(cursor, len(tree) + 1)
        attend_rows(*given, case.config, out, scratch, tiles, max_rows=len(tree) + 1, tree=posed(tree))
    assert not scratch.arrivals.any() and (out[len(tree) + 1 :] == 7.0).all()
    return out[: len(tree) + 1]


def by_paths(case: Case, cursor: int, tree: list[Node], tiles: AttendTiles | None = None) -> Tensor:
    """The same, each path from the anchor to a leaf as a chain by itself."""
    expected = torch.full((len(tree) + 1, case.untouched().shape[1]), float("nan"), dtype=case.k.dtype)
    parents = {node.parent for node in tree}
    for leaf in [row for row in range(len(tree) + 1) if row not in parents]:
        path = path_to(tree, leaf)
        alone = replace(case.copy(), projected=case.projected.clone())
        alone.projected[: len(path)] = case.projected[path]
        expected[path] = alone.attend(cursor, len(path), tiles or small(case), max(len(path), 2))[: len(path)]
    return expected


@pytest.mark.parametrize("name", LAYERS)
def test_trees_attend_as_the_reference_does(name: str) -> None:
    """Mixes, and the keys and values in the slots of their rows."""
    case, tree = make(LAYERS[name], capacity_of(LAYERS[name])), grown(1, 10)
    ours, theirs, expected = case.copy(), case.copy(), case.untouched()
    actual = attend(ours, 57, tree)
    attend_rows_reference(*theirs.given(57, len(tree) + 1), case.config, expected, tree=posed(tree))
    for got, wanted in ((actual, expected[: len(tree) + 1]), (ours.k, theirs.k), (ours.v, theirs.v)):
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("ordered_sums")
@pytest.mark.parametrize("name", LAYERS)
def test_a_row_has_the_bits_of_a_chain_of_its_ancestors(name: str) -> None:
    case = make(LAYERS[name], capacity_of(LAYERS[name]), torch.bfloat16)
    for number, cursor in enumerate(CURSORS[name]):
        tree = star() if cursor == 5 else grown(number + 1, 9)
        assert torch.equal(attend(case.copy(), cursor, tree), by_paths(case, cursor, tree)), cursor


@pytest.mark.usefixtures("ordered_sums")
@pytest.mark.parametrize("name", ["window", "full"])
def test_a_chain_has_the_bits_of_no_tree(name: str) -> None:
    """Posed as one or as it is allocated; keys and values, too."""
    case = make(LAYERS[name], capacity_of(LAYERS[name]), torch.bfloat16)
    ours, theirs = case.copy(), case.copy()
    assert torch.equal(attend(ours, 105, chain()), theirs.attend(105, 16, small(case)))
    assert torch.equal(ours.k, theirs.k) and torch.equal(ours.v, theirs.v)
    for one, other in zip(tensors(posed(chain())), tensors(TreeRows.allocate(CPU)), strict=True):
        assert torch.equal(one, other)


def tensors(tree: TreeRows) -> tuple[Tensor, Tensor, Tensor]:
    return tree.depths, tree.paths, tree.trunk


def test_what_others_drafted_does_not_count() -> None:
    """Keys and values of rows that are no ancestors may be anything."""
    for name in ("window", "full"):
        case, tree = make(LAYERS[name], capacity_of(LAYERS[name])), star(7)
        expected = attend(case.copy(), 28, tree)
        case.projected[3] = 9 - case.projected[3]
        same = (attend(case, 28, tree) == expected).all(1)
        assert same.tolist() == [row != 3 for row in range(len(tree) + 1)]
