"""The lesson and the tour over their recording: every number is there, what they say holds, and the place is kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.export.document import CellTable, Prose
from dflash_tui.core.export.formats import render
from dflash_tui.core.export.text import to_text
from dflash_tui.core.lesson.course import SideBySide, open_recording
from dflash_tui.core.lesson.document import document_of
from dflash_tui.core.lesson.lesson import open_lesson
from dflash_tui.core.lesson.tour import open_tour
from dflash_tui.core.race.race import as_race
from dflash_tui.core.rounds.passes import REASON, PassRows
from dflash_tui.core.text.wrapping import width_of


def test_what_the_lesson_says_in_words_holds() -> None:
    """Drafts are faster, code is easier than prose, a small block is better there, and no text changes."""
    of = open_recording()
    alone, drafted, talk, small = (each.statistics for each in (of.alone, of.drafted, of.talk, of.talk_small))
    assert drafted.tok_s > 1.5 * alone.tok_s and small.tok_s > talk.tok_s
    assert drafted.mean_acceptance_length > talk.mean_acceptance_length
    for one, other in ((of.alone, of.drafted), (of.talk_alone, of.talk), (of.talk_alone, of.talk_small)):
        result = as_race("", [("alone", one), ("drafted", other)])
        assert result.divergence(result.lanes[1]) is None


def test_the_last_page_is_the_last_and_pages_for_experts_stand_behind_it() -> None:
    lesson = open_lesson()
    assert lesson.pages[-1].title == "Try it" and len(lesson.behind) == 3 and not lesson.plays
    assert all(page.text and "{" not in page.text for page in (*lesson.pages, *lesson.behind))


def test_a_lesson_can_be_exported_whole() -> None:
    document = document_of(open_lesson())
    assert any(isinstance(section, PassRows) for section in document.sections)
    (table,) = [section for section in document.sections if isinstance(section, CellTable) and len(section.rows) == 5]
    assert table.rows[0] == ("tokens", "experts", "GB read", "milliseconds") and table.rows[-1][0] == "16"
    said = " ".join(section.text for section in document.sections if isinstance(section, Prose))
    assert "*" not in re.sub(r"    .*", "", said)
    assert sum(isinstance(section, Turn) for section in document.sections) == 6
    page = render(document, "html")
    assert page.count('class="passes"') == 2 and ' style="' not in page, "styles would be refused by the page's policy"


def test_no_row_of_a_table_is_wrapped_where_a_lesson_is_lines() -> None:
    assert max(map(width_of, to_text(document_of(open_tour()), 60).split("\n"))) == 60, "as a terminal has room"
    lines = to_text(document_of(open_lesson())).split("\n")
    (head,) = [index for index, line in enumerate(lines) if line.endswith("passes") and "a guess is made from" in line]
    rows = lines[head + 1 : lines.index("", head)]
    assert [row.rsplit("  ", 1)[1] for row in rows if not row.startswith(" ")] == [
        "1",
        "1",
        "1",
        "1",
        "one each",
        "none",
    ]


def test_the_tour_lasts_two_minutes_and_ends_with_what_the_race_found() -> None:
    tour = open_tour()
    assert tour.plays and tour.seconds == 120
    (race,) = [page.view for page in tour.pages if isinstance(page.view, SideBySide)]
    assert race.result.divergence(race.result.lanes[1]) is None
    assert "one at a time: 11 × 3.4" in to_text(document_of(tour))
    said = [getattr(each, "text", getattr(each, "says", "")) for each in document_of(tour).sections]
    assert said.count(REASON.says) == 1


@pytest.mark.parametrize(("kept", "begins"), [(3, 3), (9, 0), (11, 0), (-1, 0), ("x", 0), (None, 0)])
def test_it_goes_on_where_it_was_left_and_a_finished_one_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: object, begins: int
) -> None:
    monkeypatch.setenv("DFLASH_CHAT_STATE", str(tmp_path))
    lesson = open_lesson()
    assert lesson.read_place() == 0
    lesson.keep_place(kept)  # type: ignore[arg-type]
    assert lesson.read_place() == begins


@given(st.integers(52, 200), st.floats(0, 1))
def test_the_reason_is_two_rows_on_one_clock(width: int, share: float) -> None:
    """Fifteen passes above one, both with a check as long; what has ended by now is the same moment in both."""
    ordinary, dflash = REASON.lines(width, share)
    for line in (ordinary, dflash):
        assert sum(width_of(text) for text, _ in line) <= width
    inks = [[ink for _, ink in line if ink not in ("name", "gap")] for line in (ordinary, dflash)]
    assert [len(row) for row in inks] == [16, 2]
    ended = [sum(ink != "waiting" for ink in row) for row in inks]
    now = share * REASON.length
    assert ended[0] == (16 if now >= 18 - 1e-9 else min(int(now + 1e-9), 15))
    assert ended[1] == (now >= 1 - 1e-9) + (now >= 4 - 1e-9)
    checks = [line[-2][0] for line in (ordinary, dflash)]
    assert width_of(checks[0]) == width_of(checks[1])
