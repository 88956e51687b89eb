"""Lookups equal their definition, on texts that repeat themselves in every way."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.decoding import text_index
from engine.decoding.text_index import TextIndex
from engine.events import Match
from engine.speculation.lookup import LONGEST, SHORTEST, continuation, longest_match

LARGE = 262_143
repetitive = st.builds(
    lambda blocks, order: [token for block in order for token in blocks[block % len(blocks)]],
    st.lists(st.lists(st.integers(0, 3) | st.just(LARGE), min_size=1, max_size=45), min_size=1, max_size=3),
    st.lists(st.integers(0, 2), max_size=8),
)
"""Blocks one behind the other, some of them longer than a match can be."""


RUN = list(range(100, 100 + LONGEST))


@example([*RUN, 1, *RUN[1:], 2, *RUN], 1, 0)
@given(repetitive, st.integers(1, 40), st.integers(0, 200))
def test_the_index_finds_what_the_definition_finds_at_every_token(text: list[int], unsorted: int, start: int) -> None:
    start = min(start, len(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_index, "UNSORTED", unsorted)
        index = TextIndex(text[:start])
        assert index.find() == longest_match(text[:start])
        for place in range(start, len(text)):
            index.extend(text[place : place + 1])
            known = text[: place + 1]
            match = longest_match(known)
            assert index.find() == match
            if match is not None:
                assert index.guess(match, 9, {2}) == continuation(known, match.distance, 9, {2})
    assert index.ids.tolist() == text


def test_the_longest_match_wins_then_the_most_recent() -> None:
    assert longest_match([1, 2, 3, 4, 9, 2, 3, 4, 8, 1, 2, 3, 4]) == Match(4, 9)
    assert longest_match([2, 3, 4, 9, 2, 3, 4, 8, 2, 3, 4]) == Match(3, 4)
    assert longest_match([7] * 100) == Match(LONGEST, 1)
    assert longest_match([5, 6] * 50) == Match(LONGEST, 2)
    assert longest_match([1, 2, 1, 2]) is None and SHORTEST == 3


def test_a_continuation_repeats_its_period_and_ends_with_a_stop_token() -> None:
    assert continuation([1, 2, 3], 2, 5) == [2, 3, 2, 3, 2]
    assert continuation([1, 2, 3, 4], 4, 9, stops={3}) == [1, 2, 3]
    assert continuation([1, 2, 3], 3, 2) == [1, 2]
    assert continuation([4, 7], 1, 3) == [7, 7, 7]
