"""Lessons: the file's format and its complaints, numbers in the text, and the lesson that comes with the program."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from rich.cells import cell_len

from dflash_tui.core.export.document import Origin, Prose
from dflash_tui.core.export.formats import render
from dflash_tui.core.lesson.bundled import DEFAULT_LESSON, open_lesson
from dflash_tui.core.lesson.copying import copied_places
from dflash_tui.core.lesson.drawn import as_text
from dflash_tui.core.lesson.experts import ExpertsPicture
from dflash_tui.core.lesson.facts import turn_facts
from dflash_tui.core.lesson.memory import memory_lines
from dflash_tui.core.lesson.pages import Page, lesson_document, lesson_pages
from dflash_tui.core.lesson.parsing import LessonError, parse_lesson, read_lesson
from dflash_tui.core.lesson.progress import keep_place, read_place
from dflash_tui.core.race.race import as_race
from dflash_tui.core.rounds.playback import PHASES
from engine.events import EmittedToken

from .answers_for_tests import make_answer, plain_answer

HEAD = "---\ntitle: A lesson\ntrace: lesson\n---\n"
PATH = Path("own.md")


def pages_of(body: str) -> tuple[Page, ...]:
    answers = [plain_answer(["Once", "~0", " upon", "~0", " a time"]), make_answer()]
    return lesson_pages(parse_lesson(PATH, HEAD + body), answers)


def test_a_stop_has_a_title_a_text_and_a_figure() -> None:
    first, second = pages_of(
        "# One\nSome words\nin two lines.\n\n    a  b\n    1  2\n@figure round 2 first\n# Two\nEnd."
    )
    assert (first.title, second.title) == ("One", "Two")
    assert first.text == "Some words in two lines.\n\n    a  b\n    1  2"
    assert first.figure is not None and first.figure.round == 1 and second.figure is None


def test_an_answer_and_a_table_keep_their_lines_on_a_page() -> None:
    answer = plain_answer(["def f():", "\n\n    return ", "1"])
    lesson = parse_lesson(PATH, HEAD + "# One\nSome words\nin two lines.\n\n    a  b\n    1  2\n@figure answer 1")
    page = render(lesson_document(lesson, lesson_pages(lesson, [answer]), Origin()), "html")
    assert "<p>Some words in two lines.</p>" in page
    assert ">a  b\n1  2</pre>" in page and ">def f():\n\n    return 1</pre>" in page


def test_comments_are_left_out() -> None:
    (page,) = pages_of("<!-- one line -->\n# One\nA\n<!--\n{nonsense}\n-->\nB")
    assert page.text == "A B"


@pytest.mark.parametrize(
    ("hole", "written"),
    [
        ("{t1.tokens}", "5"),
        ("{t1.tokens + 2 * 3}", "11"),
        ("{(t1.tokens - 1) / 2:.1f}", "2.0"),
        ("{t1.question}", "Tell me a story"),
        ("{same_t1_t2}", "0"),
        ("{round.kept} of {round.drafted}", "1 of 3"),
        ("{round.rejected} {round.chosen} {round.chosen_p:.0%}", "~1 upon 90%"),
    ],
)
def test_numbers_come_from_the_trace(hole: str, written: str) -> None:
    (page,) = pages_of(f"# One\n{hole}\n@figure round 2 rejection")
    assert page.text == written


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("# One", 1, "begins with"),
        ("---\ntitle: x\n---\n# One", 1, "trace: is missing"),
        ("---\ntitle: x\ncolour: red\n---\n# One", 3, "colour: red"),
        (f"{HEAD}\n", 6, "no stop"),
        (f"{HEAD}Hello\n# One", 5, "before the first stop"),
        (f"{HEAD}# One\n@picture 1", 6, "@picture"),
        (f"{HEAD}# One\n@figure", 6, "answer, round"),
        (f"{HEAD}# One\n@figure race 1", 6, "2 to 3"),
        (f"{HEAD}# One\n@figure round 0", 6, "counted from 1"),
        (f"{HEAD}# One\n@figure round 1 sideways", 6, "sideways"),
        (f"{HEAD}# One\n@figure answer 1 best", 6, "nothing more"),
        (f"{HEAD}# One\n@figure answer 1\n\n@figure answer 2", 8, "line 6"),
        (f"{HEAD}# One\n\n<!-- never closed\nmore", 7, "no end"),
    ],
)
def test_a_broken_lesson_is_told_by_line(text: str, line: int, complaint: str) -> None:
    with pytest.raises(LessonError, match=re.escape(complaint)) as failure:
        parse_lesson(PATH, text)
    assert str(failure.value).startswith(f"own.md, line {line}: ")


@pytest.mark.parametrize(
    ("body", "line", "complaint"),
    [
        ("# One\nfine\n{t9.tokens}", 7, "t9.tokens"),
        ("# One\n{t1.tokens +}", 6, "can't be written"),
        ("# One\n{__import__('os')}", 6, "only facts"),
        ("# One\n{t1.question * 2}", 6, "no number"),
        ("# One\n{1 / 0}", 6, "divides by zero"),
        ("# One\n{t1.tokens:nonsense}", 6, "can't be written"),
        ("# One\n{t1.tokens:999999999}", 6, "can't be written"),
        ("# One\n{2 ** 1000000000}", 6, "only facts"),
        ("# One\n@figure answer 3", 6, "2 turns"),
        ("# One\n@figure round 1 best", 6, "no best round"),
        ("# One\n@figure round 2 rejection 9", 6, "no rejection round 9"),
    ],
)
def test_what_the_trace_cannot_give_is_told_by_line(body: str, line: int, complaint: str) -> None:
    with pytest.raises(LessonError, match=re.escape(complaint)) as failure:
        pages_of(body)
    assert str(failure.value).startswith(f"own.md, line {line}: ")


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"x" * 2_000_000])
def test_a_file_that_is_no_lesson_is_told(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "own.md"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LessonError, match=re.escape(str(path))):
        read_lesson(path)


def test_a_lesson_without_its_trace_is_told(tmp_path: Path) -> None:
    path = tmp_path / "own.md"
    path.write_text(HEAD.replace("lesson\n---", "nothing\n---") + "# One")
    with pytest.raises(LessonError, match="'nothing'"):
        open_lesson(path)


def test_a_trace_beside_the_lesson_wins(tmp_path: Path) -> None:
    path = tmp_path / "own.md"
    path.write_text(HEAD + "# One")
    (tmp_path / "lesson").write_bytes(b"no trace at all")
    with pytest.raises(LessonError, match="its trace can't be used"):
        open_lesson(path)


def test_the_place_is_kept_per_lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFLASH_CHAT_STATE", str(tmp_path / "state"))
    lesson = parse_lesson(tmp_path / "a.md", HEAD + "# One\n# Two\n# Three")
    other = parse_lesson(tmp_path / "b.md", HEAD + "# One\n# Two")
    assert read_place(lesson) == 0
    keep_place(lesson, 2)
    keep_place(other, 1)
    assert (read_place(lesson), read_place(other)) == (2, 1)
    shorter = parse_lesson(tmp_path / "a.md", HEAD + "# One")
    assert read_place(shorter) == 0


@pytest.mark.parametrize("content", ["", "[]", '{"x": "y"}', "{" * 100_000, "\x00"])
def test_a_damaged_record_of_places_begins_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setenv("DFLASH_CHAT_STATE", str(tmp_path))
    (tmp_path / "lessons.json").write_text(content)
    lesson = parse_lesson(tmp_path / "a.md", HEAD + "# One\n# Two")
    assert read_place(lesson) == 0
    keep_place(lesson, 1)
    assert read_place(lesson) == 1


def test_a_place_that_cannot_be_written_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DFLASH_CHAT_STATE", str(tmp_path / "file" / "state"))
    lesson = parse_lesson(tmp_path / "a.md", HEAD + "# One\n# Two")
    keep_place(lesson, 1)
    assert read_place(lesson) == 0


def test_the_bundled_lesson_has_every_number_and_its_claims_hold() -> None:
    _, pages, origin = open_lesson(None)
    assert len(pages) >= 8 and origin.target
    assert all("{" not in page.text and page.text for page in pages)
    answers = {
        turn: answer
        for page in pages
        if page.figure
        for turn, answer in zip(page.figure.turns, page.figure.answers, strict=True)
    }
    facts = {name: value for turn, answer in answers.items() for name, value in turn_facts(turn, answer).items()}
    # What the text says in words: drafts are faster, code is easier than prose, and there a small block is better.
    assert float(facts["t2.tok_s"]) > 1.5 * float(facts["t1.tok_s"])
    assert float(facts["t2.acceptance"]) > float(facts["t4.acceptance"])
    assert float(facts["t5.tok_s"]) > float(facts["t4.tok_s"])
    assert float(facts["t2.verify_ms"]) > float(facts["t1.verify_ms"])
    for alone, drafted in ((1, 2), (3, 4), (3, 5)):
        result = as_race("", [("alone", answers[alone]), ("drafted", answers[drafted])])
        assert result.divergence(result.lanes[1]) is None


def test_no_number_of_the_bundled_trace_is_typed_into_the_lesson() -> None:
    """The one page whose figures were measured elsewhere says so."""
    source = DEFAULT_LESSON.read_text(encoding="utf-8")
    without_holes = re.sub(r"\{[^}]*\}|<!--.*?-->", "", source, flags=re.DOTALL)
    for stop in without_holes.split("\n# ")[1:]:
        if re.search(r"\d\.\d", re.sub(r"vLLM [\d.]+", "", stop)):
            assert "not from this trace" in stop and "H200" in stop, stop.partition("\n")[0]


def test_a_lesson_can_be_exported_whole() -> None:
    lesson, pages, origin = open_lesson(None)
    document = lesson_document(lesson, pages, origin)
    said = [section.text for section in document.sections if isinstance(section, Prose)]
    assert [text for text in said if text in {page.text for page in pages}] == [page.text for page in pages]
    shown = {turn for page in pages if page.figure for turn in page.figure.turns}
    assert len(document.answers) == len(shown) > 0


def test_a_memory_takes_in_what_counts_and_nothing_else() -> None:
    """Before it is known what that is, it stands as it stood."""
    (page,) = pages_of("# One\n{round.tokens} of {round.drafted + 1}\n@figure memory 2 rejection")
    assert page.figure is not None and page.text == "2 of 4"
    seen = {phase: memory_lines(page.figure.answers[0], page.figure.round, phase, 60) for phase in PHASES}
    inks = {phase: Counter(ink for line in lines for text, ink in line if text) for phase, lines in seen.items()}
    assert not any(inks[phase]["kept"] or inks[phase]["fallen"] for phase in ("block", "draft", "verify"))
    assert inks["draft"]["row"] > inks["block"]["row"] == 0
    assert (inks["judge"]["kept"], inks["judge"]["fallen"]) == (2, 2)
    (fresh,) = {text for line in seen["emit"] for text, ink in line if ink == "kept"}
    assert len(fresh) == 2 and inks["emit"]["fallen"] == 2
    assert all(cell_len(text) <= 60 for text in as_text(seen["judge"]).split("\n")[:-1])


def test_a_text_that_repeats_itself_is_looked_up() -> None:
    """The guesses that are right and the first that is wrong are those of the text itself."""
    words = ["a", "b", "c", "d", "e", "x", "a", "b", "c", "d", "y"]
    tokens = [EmittedToken(ord(word), word, "plain") for word in words]
    (found,) = copied_places(tokens)
    assert (found.place, found.length, found.distance, found.right) == (9, 3, 6, 1)
    assert found.guesses[:3] == ("d", "e", "x")
    assert not copied_places([EmittedToken(None, word, "plain") for word in words])


def test_more_tokens_read_more_experts_as_the_lesson_says() -> None:
    experts = ExpertsPicture(128, 8, 16)
    read = [sum(ink != "faint" for _, ink in chain(*(line[1:] for line in experts.lines(at, 80)))) for at in range(16)]
    assert read[0] == 8 and read == sorted(read)
    assert all(f" {count} of 128" in as_text(experts.lines(at, 400)) for at, count in enumerate(read))
    expected = [128 * (1 - (1 - 8 / 128) ** tokens) for tokens in range(1, 17)]
    assert all(abs(count - mean) < 4 for count, mean in zip(read, expected, strict=True))


@pytest.mark.parametrize("numbers", ["8", "128 8", "8 128 16", "128 8 0", "128 8 65"])
def test_experts_that_cannot_be_drawn_are_refused(numbers: str) -> None:
    with pytest.raises(LessonError, match=r"line 6.*three numbers"):
        pages_of(f"# One\n@figure experts {numbers}")
