"""Trees whose tokens are scored by the one before them, grown best first: each token has chances of its own behind
it."""

from __future__ import annotations

from itertools import product
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.speculation.trees import Lattice, best_first, chain, is_chain, places_in
from engine.speculation.worth import DraftWorth
from tests.pace import examples

KINDS, DEPTH = 3, 3
CHANCE = st.floats(0.01, 1.0)


@st.composite
def lattices(draw: st.DrawFn) -> Lattice:
    """Three candidates at each of three positions, with random chances behind each candidate before."""
    chances, places = [], []
    for position in range(DEPTH):
        rows = [draw(st.lists(CHANCE, min_size=KINDS, max_size=KINDS)) for _ in range(KINDS if position else 1)]
        order = [sorted(range(KINDS), key=lambda each, row=row: -row[each]) for row in rows]
        places.append(order)
        chances.append([[row[each] / sum(row) for each in ways] for row, ways in zip(rows, order, strict=True)])
    return Lattice(chances, places)


def of_path(lattice: Lattice, path: tuple[int, ...]) -> float:
    """The chance of a path of candidates."""
    befores = (0, *path)
    rows = [(position, before, place) for position, (before, place) in enumerate(zip(befores, path, strict=False))]
    chances = [lattice.chances[at][before][lattice.places[at][before].index(place)] for at, before, place in rows]
    return prod(chances)


@settings(max_examples=examples(60))
@given(lattices(), st.integers(2, 12))
def test_no_other_tree_is_likelier(lattice: Lattice, rows: int) -> None:
    """A tree of the likeliest paths: each node has the chance of its path, and none that was left out is likelier."""
    tree = best_first(lattice, rows)
    places, paths = places_in(tree, lattice), [()]
    for node, place in zip(tree, places, strict=True):
        paths.append((*paths[node.parent], place))
    everything = [path for depth in range(1, DEPTH + 1) for path in product(range(KINDS), repeat=depth)]
    assert len(set(paths)) == rows == len(tree) + 1
    for node, path in zip(tree, paths[1:], strict=True):
        assert abs(node.chance - of_path(lattice, path)) < 1e-9
    left = max(of_path(lattice, path) for path in everything if path not in paths)
    assert min(node.chance for node in tree) >= left - 1e-9


@settings(max_examples=examples(40))
@given(st.lists(st.lists(CHANCE, min_size=KINDS, max_size=KINDS), min_size=1, max_size=DEPTH), st.integers(2, 12))
def test_where_nothing_depends_on_the_token_before_trees_are_the_usual_ones(
    given: list[list[float]], rows: int
) -> None:
    free = [sorted((each / sum(row) for each in row), reverse=True) for row in given]
    same = Lattice(
        [[row] * (KINDS if position else 1) for position, row in enumerate(free)],
        [[list(range(KINDS))] * (KINDS if position else 1) for position in range(len(free))],
    )
    worth = DraftWorth()
    assert best_first(same, rows) == best_first(free, rows)
    assert list(same) == free == [list(row) for row in same[:]]
    assert worth.expected(same, best_first(free, rows), None) == worth.expected(free, best_first(free, rows), None)


@settings(max_examples=examples(40))
@given(lattices())
def test_its_chain_of_first_choices_is_what_a_walk_takes(lattice: Lattice) -> None:
    places, before = places_in(chain(DEPTH), lattice), 0
    for position, place in enumerate(places):
        assert place == lattice.places[position][before][0]
        assert lattice[position] == lattice.chances[position][before]
        before = place
    assert is_chain(chain(DEPTH))
