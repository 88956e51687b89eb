"""The range coder: what goes in comes out, in few bits, and up to wherever the bytes end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.core.traces.coding import SYMBOLS, Counts, Cut, Decoder, Encoder, get, put

numbers = st.lists(
    st.tuples(st.integers(0, 2), st.one_of(st.integers(0, 3), st.integers(0, 2**10), st.integers(0, 2**56 - 1))),
    max_size=200,
)


def coded(told: list[tuple[int, int]]) -> bytes:
    encoder, places = Encoder(), [Counts((1,) * SYMBOLS) for _ in range(3)]
    for place, number in told:
        put(encoder, places[place], number)
    return encoder.finished()


def decoded(block: bytes, asked: list[int], whole: bool) -> list[int]:
    """The numbers in places ``asked``, as far as the block goes."""
    places, found = [Counts((1,) * SYMBOLS) for _ in range(3)], []
    try:
        decoder = Decoder(block, whole)
        for place in asked:
            found.append(get(decoder, places[place]))
    except Cut:
        assert not whole
    return found


@given(numbers)
def test_numbers_come_back(told: list[tuple[int, int]]) -> None:
    assert decoded(coded(told), [place for place, _ in told], whole=True) == [number for _, number in told]


@given(numbers, st.data())
def test_a_cut_block_holds_the_first_numbers(told: list[tuple[int, int]], data: st.DataObject) -> None:
    block = coded(told)
    cut = data.draw(st.integers(0, len(block)))
    found = decoded(block[:cut], [place for place, _ in told], whole=False)
    assert found == [number for _, number in told][: len(found)]


def test_carries_go_through_full_bytes() -> None:
    """Zeros only push the low end to the top of what it was, where every byte is 255."""
    for length in range(1, 400):
        told = [(0, 3)] * length + [(0, 2**56 - 1)] * 3
        assert decoded(coded(told), [0] * len(told), whole=True) == [number for _, number in told]
