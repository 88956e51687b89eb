from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from dflash_tui.core.conversation.step_spans import version_spans
from dflash_tui.core.text.harmless import sanitise
from dflash_tui.core.text.marks import Mark
from dflash_tui.core.text.spans import Span
from dflash_tui.core.text.wrapping import Document, shortened, width_of

PIECES = st.lists(
    st.builds(
        Span,
        st.text(alphabet=st.sampled_from("ab 漢é\U0001f642\n-"), max_size=8),
        st.sampled_from(["plain", "accepted", "corrected"]),
        st.just(0),
        st.none(),
    ),
    max_size=30,
)


@given(PIECES, st.integers(4, 20))
@example([Span("aaa漢", "plain"), Span("aa ", "plain")], 4)  # a blank that hangs over the edge, then an edge
def test_appending_wraps_as_if_it_had_been_there_from_the_start(pieces: list[Span], width: int) -> None:
    grown, whole = Document(width), Document(width)
    for piece in pieces:
        grown.append([piece])
    whole.append(pieces)
    assert grown.rows == whole.rows
    whole.resize(width)
    assert grown.rows == whole.rows


@given(PIECES, st.integers(4, 20))
def test_wrapping_loses_and_adds_nothing(pieces: list[Span], width: int) -> None:
    document = Document(width)
    document.append(pieces)
    joined = "".join(row.text + ("" if row.soft else "\n") for row in document.rows)
    assert joined == "".join(piece.text for piece in pieces) + "\n"


@given(PIECES, st.integers(4, 20))
def test_rows_fit_but_for_hanging_blanks(pieces: list[Span], width: int) -> None:
    document = Document(width)
    document.append(pieces)
    assert all(width_of(row.text.rstrip()) <= width for row in document.rows)


@given(PIECES, st.integers(4, 20), st.integers(4, 20))
def test_resizing_forgets_the_old_width(pieces: list[Span], before: int, after: int) -> None:
    resized, fresh = Document(before), Document(after)
    resized.append(pieces)
    resized.resize(after)
    fresh.append(pieces)
    assert resized.rows == fresh.rows


def test_blanks_that_hang_over_the_edge_start_no_row() -> None:
    document = Document(4)
    document.append([Span("aaa漢aa ", "plain"), Span("\nabcd efgh ", "plain")])
    assert [row.text for row in document.rows] == ["aaa", "漢aa ", "abcd ", "efgh "]


def test_the_mark_of_versions_stays_together() -> None:
    for width in range(8, 20):
        document = Document(width)
        document.append([Span("412 tokens", "note"), *version_spans(2, 2), Span("and more", "note")])
        assert any("‹ 2/2 ›" in row.text for row in document.rows)


def test_only_the_rows_that_changed_are_reported() -> None:
    document = Document(10)
    document.append([Span("one\ntwo\nthr", "plain")])
    assert document.append([Span("ee\nfour", "plain")]) == 2
    assert [row.text for row in document.rows] == ["one", "two", "three", "four"]


def test_a_word_longer_than_a_row_is_cut_between_characters() -> None:
    document = Document(5)
    document.append([Span("漢字漢字 👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧", "plain")])
    assert [row.text for row in document.rows] == ["漢字", "漢字 ", "👨‍👩‍👧👨‍👩‍👧", "👨‍👩‍👧"]


def test_nothing_a_terminal_would_act_on_is_left() -> None:
    hostile = "a\x1b[31mred\x07\x9b2J\u202eevil\u2028\r\nb\x00\ud800\tc"
    clean = sanitise(hostile)
    assert "\x1b" not in clean and clean.count("\n") == 1
    clean.encode("utf-8")
    assert all(character == "\n" or character.isprintable() or character in "␛␇␀" for character in clean)
    assert clean.endswith("    c")


@given(PIECES, st.lists(st.text(alphabet="ab \n", max_size=8), max_size=5), st.integers(4, 20))
def test_folding_hides_thoughts_and_unfolding_brings_them_back(
    pieces: list[Span], thoughts: list[str], width: int
) -> None:
    both = [*pieces[:3], *(Span(text, "thought") for text in thoughts), *pieces[3:]]
    document, without, whole = Document(width), Document(width), Document(width)
    document.append(both[:4])
    document.fold(True)
    document.append(both[4:])
    without.append(pieces)
    whole.append(both)
    assert document.rows == without.rows
    assert looks(document) == looks(without)
    document.fold(False)
    assert document.rows == whole.rows
    assert looks(document) == looks(whole)


def looks(document: Document) -> list[tuple[str, str]]:
    """Every visible character with its look."""
    return [(letter, mark.style) for row in document.rows for text, mark in document.pieces(row) for letter in text]


@given(PIECES, st.integers(4, 20))
def test_every_character_keeps_its_look_and_its_token(pieces: list[Span], width: int) -> None:
    document = Document(width)
    document.append([piece._replace(turn=1, token=number) for number, piece in enumerate(pieces)])
    expected = [(letter, piece.style) for piece in pieces for letter in piece.text if letter != "\n"]
    assert looks(document) == expected
    text = "".join(piece.text for piece in pieces)
    for number, piece in enumerate(pieces):
        before = sum(len(other.text) for other in pieces[:number])
        assert document.marks.start_of(1, number) == before
        assert document.marks.end_of(1, number + 1) == before + len(piece.text)
        row = document.rows[document.row_of(before)]
        assert row.start <= before
        if piece.text and piece.text[0] != "\n":
            assert row.text[before - row.start] == text[before]


def test_a_cell_knows_its_token() -> None:
    document = Document(8)
    document.append([Span("問題\n", "prompt"), Span("漢", "plain", 3, 0), Span("ab", "accepted", 3, 1)])
    document.append([Span("", "accepted", 3, 2), Span("\nend", "note")])
    pieces = [document.piece_at(1, column) for column in range(5)]
    assert [piece and (piece[0].turn, piece[0].token) for piece in pieces] == [(3, 0), (3, 0), (3, 1), (3, 1), None]
    assert document.piece_at(2, 0) == (Mark("note", 3, None), 0)
    assert document.piece_at(9, 0) is None


@given(st.text("漢字、한カ", min_size=1), st.integers(1, 12))
def test_wide_letters_are_cut_like_any_other(text: str, width: int) -> None:
    """An accent in front is all that keeps a word from the short way."""
    document, other = Document(width), Document(width)
    document.append([Span(f"漢{text} ", "plain")])
    other.append([Span(f"漢\u0301{text} ", "plain")])
    assert [row.text for row in document.rows] == [row.text.replace("\u0301", "") for row in other.rows]


@given(st.text("ab-", min_size=1), st.integers(1, 12))
def test_ascii_letters_are_cut_like_any_other(text: str, width: int) -> None:
    document, other = Document(width), Document(width)
    document.append([Span(f"a{text} ", "plain")])
    other.append([Span(f"á{text} ", "plain")])
    assert [row.text for row in document.rows] == [row.text.replace("á", "a") for row in other.rows]


@given(st.text("ab 漢\u0301\U0001f642"), st.integers(1, 12))
def test_a_shortened_text_fits_and_says_that_it_was_cut(text: str, cells: int) -> None:
    short = shortened(text, cells)
    assert width_of(short) <= cells
    assert short == text or (short.endswith("…") and text.startswith(short[:-1].rstrip()))
    assert short.endswith("…") or width_of(text) <= cells
