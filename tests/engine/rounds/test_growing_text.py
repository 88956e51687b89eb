from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.rounds.growing_text import CHUNK, GrowingText

SIZES = st.lists(st.integers(0, 2 * CHUNK + 3), max_size=6)


@given(SIZES, st.data())
def test_any_part_is_what_was_appended_there(sizes: list[int], data: st.DataObject) -> None:
    whole, grown = "", GrowingText()
    for size in sizes:
        piece = "".join(chr(97 + place % 26) for place in range(len(whole), len(whole) + size))
        whole += piece
        grown.append(piece)
    assert str(grown) == whole and len(grown) == len(whole)
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    assert grown.between(start, stop) == whole[start:stop]


def test_a_row_that_ends_a_chunk_is_read_whole() -> None:
    grown = GrowingText()
    grown.append("x" * (CHUNK - 1) + "🙂")
    grown.append("yz")
    assert grown.between(CHUNK - 2, CHUNK + 1) == "x🙂y"
