"""A course as a document to export or to print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..conversation.turn import Turn
from ..export.document import SET_LINE, CellTable, ExportedPage, Heading, Prose, RoundFigure, Section
from ..race.report import race_table
from ..rounds.passes import PassRows
from .course import Course, Factor, OneRound, Page, SideBySide, View, Written


def document_of(course: Course) -> ExportedPage:
    """The pages with what they show, those for experts too; behind them stand the answers that they are about."""
    sections: list[Section] = []
    answers: dict[int, Turn] = {}
    for number, page in enumerate((*course.pages, *course.behind), start=1):
        title = f"{number}. {page.title}{' (for experts)' if page in course.behind else ''}"
        sections += [Heading(title), *paragraphs(page), *_shown(page)]
        answers |= {id(answer): answer for answer in _answers(page.view)}
    if not course.plays:
        sections.append(Heading("The recorded answers"))
        sections += answers.values()
    return ExportedPage(course.title, tuple(sections), course.origin)


def paragraphs(page: Page) -> Iterator[Prose | CellTable]:
    for block in page.text.strip().split("\n\n"):
        if block.startswith("|"):
            rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in block.split("\n")]
            yield CellTable((rows[0], *rows[2:]))
        else:
            yield Prose(block.replace("\n", " ").replace("*", ""))


def _shown(page: Page) -> Iterator[Section]:
    match view := page.view:
        case Written(answer):
            yield Prose("\n".join(SET_LINE + line for line in answer.text.strip("\n").split("\n")))
        case OneRound():
            inspection = view.inspection()
            caption = f"round {inspection.step.index}: {inspection.summary}; {inspection.cost[0]}"
            yield RoundFigure(inspection.step, caption)
        case SideBySide():
            yield race_table(view.result)
        case PassRows(says=says):
            yield replace(view, says=says.replace(page.text, ""))  # once is enough
        case Factor(times):
            yield Prose(f"{times:.1f} times as fast")


def _answers(view: View) -> tuple[Turn, ...]:
    match view:
        case Written(answer) | OneRound(answer):
            return (answer,)
        case SideBySide(answers):
            return answers
    return ()
