"""Trees whose tokens are scored by the one before them, grown best first: each token has chances of its own behind
it."""

from __future__ import annotations

from itertools import product
from math import nan, prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decoding.rounds import require_numbers
from engine.errors import WeightsFailure
from engine.kernels.round.edges import reference_walk_edges
from engine.kernels.round.lattice import Edges
from engine.kernels.round.markov import MarkovWeights, reference_markov
from engine.kernels.round.walk import reference_walk
from engine.speculation.trees import Lattice, best_first, chain
from engine.speculation.worth import DraftWorth
from tests.pace import examples

KINDS, DEPTH = 3, 3
CHANCE = st.floats(0.01, 1.0)
ROW = st.lists(CHANCE, min_size=KINDS, max_size=KINDS)


@st.composite
def lattices(draw: st.DrawFn) -> Lattice:
    """Three candidates at each of three positions, with random chances behind each candidate before."""
    behind, order = [], []
    for position in range(DEPTH):
        rows = [draw(ROW) for _ in range(KINDS if position else 1)] * (1 if position else KINDS)
        order.append([sorted(range(KINDS), key=lambda each, row=row: -row[each]) for row in rows])
        behind.append([sorted((chance / sum(row) for chance in row), reverse=True) for row in rows])
    return Lattice.of(behind, order)


def of_path(lattice: Lattice, path: tuple[int, ...]) -> float:
    """The chance of a path of candidates."""
    pairs = enumerate(zip((0, *path), path, strict=False))
    return prod(lattice.behind[at][before][lattice.order[at][before].index(this)] for at, (before, this) in pairs)


@settings(max_examples=examples(60))
@given(lattices(), st.integers(2, 12))
def test_no_other_tree_is_likelier(lattice: Lattice, rows: int) -> None:
    """A tree of the likeliest paths: each node has the chance of its path, and none that was left out is likelier."""
    tree, paths = best_first(lattice, rows), [()]
    for node in tree:
        paths.append((*paths[node.parent], node.candidate))
        assert abs(node.chance - of_path(lattice, paths[-1])) < 1e-9
    everything = [path for depth in range(1, DEPTH + 1) for path in product(range(KINDS), repeat=depth)]
    assert len(set(paths)) == rows == len(tree) + 1
    left = max(of_path(lattice, path) for path in everything if path not in paths)
    assert min(node.chance for node in tree) >= left - 1e-9


@settings(max_examples=examples(40))
@given(st.lists(ROW, min_size=1, max_size=DEPTH), st.integers(2, 12))
def test_where_nothing_depends_on_the_token_before_trees_are_the_usual_ones(
    given: list[list[float]], rows: int
) -> None:
    free, worth = [sorted((each / sum(row) for each in row), reverse=True) for row in given], DraftWorth()
    same = Lattice.of([[row] * KINDS for row in free], [[list(range(KINDS))] * KINDS] * len(free))
    tree = best_first(free, rows)
    assert best_first(same, rows) == tree and list(same) == free
    assert chain(len(free), same) == chain(len(free), free)
    assert worth.expected(same, tree, None) == worth.expected(free, tree, None)


def test_of_scores_that_differ_in_their_last_bit_the_higher_is_drafted() -> None:
    """As by kernels, and in the lattice, though both have one probability."""
    scores, nothing = torch.zeros(1, 16, 16), torch.zeros(16, 2)
    scores[..., 3] = 0.1
    scores[..., 9] = torch.nextafter(scores[0, 0, 3], torch.tensor(1.0))
    edges, logits = Edges(torch.arange(16)[None], scores), scores[:, 0]
    assert edges.lattice().order[0][0][:2] == [9, 3] and logits.softmax(-1)[0, 3] == logits.softmax(-1)[0, 9]
    walked = reference_walk(logits, edges.tokens, nothing[:1], nothing, nothing, 0)
    corrected = reference_markov(logits, nothing[:1], MarkovWeights(nothing, nothing), 0, None)
    assert [int(ids) for ids, _ in (reference_walk_edges(edges), walked, corrected)] == [9, 9, 9]


def test_a_chance_beside_the_chain_that_is_no_number_is_refused() -> None:
    first = [[0.6, 0.3]] * 2
    require_numbers(Lattice.of([first, first], [[[0, 1]] * 2] * 2))
    with pytest.raises(WeightsFailure, match="no numbers"):
        require_numbers(Lattice.of([first, [[0.5, 0.2], [nan, nan]]], [[[0, 1]] * 2] * 2))
