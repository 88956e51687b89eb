"""Attention of rows that are a tree of drafts: each has the bits that it has in a chain of its ancestors."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.kernels.branches import most_branches
from engine.kernels.row_attention import AttendScratch, AttendTiles, attend_rows, attend_rows_reference
from engine.kernels.tree_rows import TreeRows
from engine.trees import Node, best_first, in_rows, path_to
from tests.kernels.test_row_attention import (
    CPU,
    FP32_AND_BF16,
    SMALL_FULL,
    SMALL_WINDOW,
    TOLERANCE,
    Case,
    at,
    capacity_of,
    layer,
    make,
)

LAYERS = {
    "window": layer(2, 1, 16, 40),
    "window, every head its own keys": layer(2, 2, 16, 21),
    "window, 8 heads a key": layer(8, 1, 16, 24, value_is_key=True),
    "window, 3 heads a key": layer(3, 1, 16, 24),
    "full": layer(2, 1, 16, None, value_is_key=True),
    "full, 8 heads a key": layer(8, 1, 16, None),
}
TILES = replace(SMALL_WINDOW, split=16), replace(SMALL_FULL, split=16)
"""Many splits, and so small that the rows of a tree always reach two, or end with one."""
CURSORS = (0, 5, 15, 16, 60, 111, 112)
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
    rows.pose(tree)
    return rows


def attend(case: Case, cursor: int, tree: list[Node], tiles: AttendTiles | None = None, launches: int = 1) -> Tensor:
    """The mix of the tree's rows, [rows, heads * head_dim]; the cache keeps their keys."""
    out, tiles = case.untouched(), tiles or small(case)
    scratch = AttendScratch([case.config], [case.k.shape[1]], CPU, tiles)
    for part in (scratch.highest, scratch.total, scratch.mixed):
        part.fill_(float("nan"))
    for _ in range(launches):
        given = case.given(cursor, len(tree) + 1)
        attend_rows(*given, case.config, out, scratch, tiles, tree=posed(tree))
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
        expected[path] = alone.attend(cursor, len(path), tiles or small(case))[: len(path)]
    return expected


@FP32_AND_BF16
@pytest.mark.parametrize("name", LAYERS)
def test_trees_attend_as_the_reference_does(name: str, dtype: torch.dtype) -> None:
    """Mixes, and the keys and values in the slots of their rows."""
    case = make(LAYERS[name], capacity_of(LAYERS[name]), dtype)
    for cursor, tree in [(0, grown(0)), (27, grown(1, 9)), (112, star()), (60, in_rows(grown(2)))]:
        ours, theirs, expected = case.copy(), case.copy(), case.untouched()
        actual = attend(ours, cursor, tree)
        given = theirs.given(cursor, len(tree) + 1)
        attend_rows_reference(*given, case.config, expected, posed(tree))
        for got, wanted in ((actual, expected[: len(tree) + 1]), (ours.k, theirs.k), (ours.v, theirs.v)):
            torch.testing.assert_close(got, wanted, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.usefixtures("ordered_sums")
@pytest.mark.parametrize("name", LAYERS)
def test_a_row_has_the_bits_of_a_chain_of_its_ancestors(name: str) -> None:
    case = make(LAYERS[name], capacity_of(LAYERS[name]), torch.bfloat16)
    for number, cursor in enumerate(CURSORS):
        tree = star() if cursor == 5 else grown(number, 16 - number)
        assert torch.equal(attend(case.copy(), cursor, tree), by_paths(case, cursor, tree)), cursor


@pytest.mark.usefixtures("ordered_sums")
@pytest.mark.parametrize("name", ["window", "full, 8 heads a key"])
def test_a_chain_has_the_bits_of_no_tree(name: str) -> None:
    """Posed as one or as it is allocated; keys and values, too."""
    case = make(LAYERS[name], capacity_of(LAYERS[name]), torch.bfloat16)
    for cursor in (7, 112):
        ours, theirs = case.copy(), case.copy()
        assert torch.equal(attend(ours, cursor, chain()), theirs.attend(cursor, 16, small(case)))
        assert torch.equal(ours.k, theirs.k) and torch.equal(ours.v, theirs.v)
    for ours, theirs in zip(vars_of(posed(chain())), vars_of(TreeRows.allocate(CPU)), strict=True):
        assert torch.equal(ours, theirs)


def vars_of(tree: TreeRows) -> tuple[Tensor, Tensor, Tensor]:
    return tree.depths, tree.paths, tree.trunk


@pytest.mark.usefixtures("ordered_sums")
@pytest.mark.parametrize("cursor", [1010, 1016, 1023])
def test_splits_of_two_sizes(cursor: int) -> None:
    """64 splits of 16 keys hold the first 1024: behind them are splits of 32."""
    case = make(layer(2, 1, 16, None), 1100)
    tree = grown(3)
    assert torch.equal(attend(case.copy(), cursor, tree), by_paths(case, cursor, tree))


@pytest.mark.parametrize("programs", [1, 3])
def test_a_program_may_take_several_splits(programs: int) -> None:
    """Two tiles of rows, each of two parts of the values; there are more rows off the trunk than programs."""
    case = make(LAYERS["full, 8 heads a key"], 150)
    few, many = (replace(SMALL_FULL, split=16, values=8, programs=4 * most) for most in (programs, 99))
    assert torch.equal(attend(case.copy(), 121, grown(1), few), attend(case.copy(), 121, grown(1), many))


def test_one_launch_after_another_finds_the_scratch_as_it_should_be() -> None:
    case = make(LAYERS["window"], 55)
    assert torch.equal(attend(case, 60, grown(4), launches=3), attend(case, 60, grown(4)))


def test_what_others_drafted_does_not_count() -> None:
    """Keys and values of rows that are no ancestors may be anything, even no number."""
    for name in ("window", "full, 8 heads a key"):
        case, tree = make(LAYERS[name], capacity_of(LAYERS[name])), star()
        expected = attend(case.copy(), 28, tree)
        case.projected[3] = float("nan")
        actual = attend(case, 28, tree)
        assert torch.equal(actual[:3], expected[:3]) and torch.equal(actual[4:], expected[4:])
        assert actual[3].isnan().all()


def test_rows_with_a_part_in_a_tile() -> None:
    """Eight of two heads in sixteen; of three heads six, where the first and the last stand there in part."""
    assert [most_branches(16, group) for group in (1, 2, 3, 8, 16, 32)] == [15, 8, 6, 2, 1, 1]


def test_a_row_by_itself_is_no_tree() -> None:
    case = make(LAYERS["window"], 55)
    with pytest.raises(AssertionError):
        scratch = AttendScratch([case.config], [55], CPU)
        attend_rows(*case.given(3, 1), case.config, case.untouched(), scratch, max_rows=1, tree=posed([]))
    assert at(3, 1)[0].item() == 3
