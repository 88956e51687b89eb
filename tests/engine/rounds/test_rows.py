"""Steps as rows in blocks: they come back equal, and what no program wrote is refused."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.events import DraftToken, EmittedToken, Step, TreeToken
from engine.rounds.blocks import ROUNDS, decoded, encoded
from engine.rounds.numbers import RecordError
from engine.rounds.rows import row_of
from support.events_for_tests import make_step, make_tree_step
from tests.core.replay.steps import turns
from tests.pace import examples

GOOD = replace(make_tree_step((0, 1, 0), rows=9), index=1)


@given(turns(), st.integers(0, 2**40))
@settings(max_examples=examples(60))
def test_a_block_holds_what_was_put_in(steps: list[Step], first: int) -> None:
    steps = [replace(step, turn=7) for step in steps[:ROUNDS]]
    block = decoded(encoded(first, list(map(row_of, steps))))
    assert (block.turn, block.first, len(block)) == (7, first, len(steps))
    assert list(block.steps()) == steps and list(block.steps(1)) == steps[1:]


@pytest.mark.parametrize("wild", [float("nan"), float("inf"), -1.0, 1e300])
def test_what_is_no_number_never_stops_an_answer(wild: float) -> None:
    """Whatever a source measures: the text is kept, and the number is in range."""
    token = EmittedToken(3, "half \ud83d", "corrected", probability=wild)
    draft = (DraftToken(4, "x", wild, wild),)
    step = replace(
        make_step(0, 1), time=wild, draft_ms=wild, verify_ms=wild, total_ms=wild, temperature=wild, draft=draft,
        emitted=(token,),
    )  # fmt: skip
    if wild in (-1.0, 1e300):
        step = replace(step, temperature=0.0)
    (found,) = decoded(encoded(0, [row_of(step)])).steps()
    assert found.emitted[0].text == "half ?" and found.emitted[0].probability in (0.0, 1.0)


def changed(row: int, **fields: int) -> Step:
    """``GOOD``, with another token in its tree."""
    token = replace(GOOD.tree[row - 1], **fields)  # type: ignore[arg-type]
    return replace(GOOD, tree=(*GOOD.tree[: row - 1], token, *GOOD.tree[row:]))


HOSTILE_TREES = {
    "behind itself": changed(4, parent=4),
    "behind one that comes later": changed(2, parent=5),
    "a cycle": replace(changed(2, parent=3), num_accepted=0, emitted=GOOD.emitted[-1:]),
    "behind what there is not": changed(3, parent=99),
    "behind nothing far away": changed(3, parent=2**40),
    "deeper than the draft": replace(GOOD, draft=GOOD.draft[:1], num_accepted=0, emitted=GOOD.emitted[-1:]),
    "the same choice twice": changed(6, parent=0, choice=0, depth=1),
    "the same token twice": replace(GOOD, tree=(*GOOD.tree[:-1], TreeToken(0, 1, 7, GOOD.tree[0].id, "z", 0.1))),
    "more choices than drafts have": changed(8, choice=300),
    "of absurd size": replace(GOOD, tree=tuple(TreeToken(0, 1, choice, choice, "x", 0.5) for choice in range(257))),
    "narrower than its tree": replace(GOOD, verify_width=3),
    "wider than its tree": replace(GOOD, verify_width=2**40),
    "more accepted than kept": replace(GOOD, num_accepted=5),
    "accepted what is not in the tree": replace(
        GOOD, emitted=(*GOOD.emitted[:2], EmittedToken(77, "?", "accepted")), num_accepted=3
    ),
}


@pytest.mark.parametrize("name", HOSTILE_TREES)
def test_trees_that_are_none_are_refused(name: str) -> None:
    assert list(decoded(encoded(0, [row_of(GOOD)])).steps()) == [GOOD]
    block = decoded(encoded(0, [row_of(HOSTILE_TREES[name])]))
    with pytest.raises(RecordError):
        block.step(0)


ROWS = [row_of(step).values for step in (make_step(3, 5), GOOD, make_step(0, 0))]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.just(2**60) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(ROWS), st.integers(0, 16), VALUES)
@settings(max_examples=examples(300))
def test_any_value_in_any_column_is_a_step_or_refused(row: Any, column: int, value: Any) -> None:
    columns: list[Any] = [[each] for each in row]
    columns[column] = [value]
    text = json.dumps([1, 0, list(range(40)), [f"w{number}" for number in range(40)], *columns])
    try:
        (step,) = decoded(zlib.compress(text.encode())).steps()
    except RecordError:
        return
    assert list(decoded(encoded(0, [row_of(step)])).steps()) == [step], "it is one that could have been written"


@given(st.binary(max_size=200), st.data())
@settings(max_examples=examples(200))
def test_bytes_that_are_no_block_are_refused(noise: bytes, data: st.DataObject) -> None:
    whole = encoded(0, [row_of(make_step(2, 5)), row_of(GOOD)])
    place = data.draw(st.integers(0, len(whole) - 6))  # the bits that fill its last byte, before the sum, say nothing
    flipped = bytes((*whole[:place], whole[place] ^ data.draw(st.integers(1, 255)), *whole[place + 1 :]))
    for each in (noise, zlib.compress(noise), whole[:place], whole + noise[:1] if noise else b"", flipped):
        with pytest.raises(RecordError):
            decoded(each)
