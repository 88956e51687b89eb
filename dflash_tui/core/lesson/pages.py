"""A lesson on its trace: pages with every number filled in, or a complaint that names the line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..export.document import (
    SET_LINE,
    CellTable,
    ExportedAnswer,
    ExportedPage,
    Heading,
    Origin,
    Prose,
    RoundFigure,
    Section,
)
from ..figures.labels import CHECKING, GUESSING
from ..figures.statistics import NOT_KNOWN
from ..race.race import RaceResult, as_race, block_name
from ..race.report import race_table
from ..rounds.inspection import Inspection, inspect_step
from ..rounds.playback import PHASES
from .copying import best_moment, copied_lines, copied_places
from .drawn import Line, as_text
from .experts import ExpertsPicture
from .facts import Fact, choose_round, fill, round_facts, same_tokens, turn_facts, words
from .memory import memory_lines
from .parsing import OF_A_ROUND, FigureKind, FigureRequest, Lesson, LessonError, LessonStop

SET_WIDTH = 76
"""Cells that a picture in letters has on a page that doesn't move."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What a page shows of the trace."""

    kind: FigureKind
    turns: tuple[int, ...]
    """The numbers of the turns that it is about, counted from 1."""
    answers: tuple[ExportedAnswer, ...]
    """The answers of those turns."""
    round: int = 0
    """Index of the round in the first answer; for ``round`` and ``memory`` only."""
    plain_ms: float | None = None
    """What a token costs without speculation, as another turn of the trace tells."""
    experts: ExpertsPicture | None = None

    @property
    def num_moments(self) -> int:
        """How many moments the picture has; 0 for one that stands still, or that a clock moves."""
        match self.kind:
            case "round" | "memory":
                return len(PHASES)
            case "copy":
                return max(len(copied_places(tuple(self.answers[0].tokens))), 1)
            case "experts":
                return self.experts.tokens if self.experts else 0
        return 0

    @property
    def still(self) -> int:
        """The moment that says most by itself."""
        return best_moment(self.answers[0]) if self.kind == "copy" else self.num_moments - 1

    @property
    def set_moments(self) -> tuple[int, ...]:
        """The moments that a page which doesn't move shows one below the other."""
        if self.kind == "memory":
            return PHASES.index("judge"), PHASES.index("emit")
        return (self.still,) if self.kind == "copy" else (0, self.still)

    def lines(self, index: int, moment: int, width: int) -> list[Line]:
        """A picture in letters, ``width`` cells wide; ``index`` is the round of one that shows a round."""
        if self.experts is not None:
            return self.experts.lines(moment, width)
        if self.kind == "copy":
            return copied_lines(self.answers[0], moment, width)
        return memory_lines(self.answers[0], index, PHASES[moment], width)

    def inspection(self, index: int) -> Inspection:
        """Round ``index`` of the first answer, taken apart."""
        answer = self.answers[0]
        before = sum(len(step.emitted) for step in answer.steps[:index])
        seed = answer.settings.get("seed")
        return inspect_step(answer.steps[index], before, answer.num_prompt_tokens + before, seed, self.plain_ms)

    def race(self) -> RaceResult:
        """The answers as the lanes of a race."""
        return as_race(self.answers[0].question, [(name_of(answer), answer) for answer in self.answers])


@dataclass(frozen=True, slots=True)
class Page:
    """A stop of a lesson with its numbers filled in."""

    title: str
    text: str
    """Paragraphs separated by empty lines; a line that begins with four blanks keeps its columns."""
    figure: Figure | None


def name_of(answer: ExportedAnswer) -> str:
    """What tells an answer from others of a trace."""
    if not answer.settings.get("speculation", True):
        return "one token at a time"
    return block_name(answer.settings.get("block_size", "?"))


def lesson_pages(lesson: Lesson, answers: Sequence[ExportedAnswer]) -> tuple[Page, ...]:
    """The pages of a lesson with their figures; ``answers`` are the turns of its trace, in order. Raises
    :class:`LessonError`."""
    common = same_tokens(answers) | words()
    for number, answer in enumerate(answers, start=1):
        common |= turn_facts(number, answer)
    return tuple(_page(lesson.path, stop, answers, common) for stop in lesson.stops)


def _page(path: Path, stop: LessonStop, answers: Sequence[ExportedAnswer], common: dict[str, Fact]) -> Page:
    figure = None if stop.figure is None else _figure(path, stop.figure, answers)
    facts = common
    if figure is not None and figure.kind in OF_A_ROUND:
        facts = common | round_facts(figure.answers[0], figure.round)
    return Page(stop.title, fill(path, stop, facts), figure)


def _figure(path: Path, request: FigureRequest, answers: Sequence[ExportedAnswer]) -> Figure:
    if request.kind == "experts":
        return Figure(request.kind, (), (), experts=ExpertsPicture(*request.turns))
    for turn in request.turns:
        if turn > len(answers):
            raise LessonError(path, request.line, f"the trace has {len(answers)} turns, there is no turn {turn}.")
    chosen = tuple(answers[turn - 1] for turn in request.turns)
    times = ((step.draft_ms, step.verify_ms) for answer in chosen for step in answer.steps)
    if request.kind == "times" and any(None in pair for pair in times):
        raise LessonError(path, request.line, f"what draft and verify took in these turns is {NOT_KNOWN}.")
    place = choose_round(path, request, chosen[0]) if request.kind in OF_A_ROUND else 0
    return Figure(request.kind, request.turns, chosen, place, _plain_ms(chosen[0], answers))


def _plain_ms(answer: ExportedAnswer, answers: Sequence[ExportedAnswer]) -> float | None:
    """Milliseconds per token of the same question answered without speculation."""
    alone = (
        other.statistics.tok_s
        for other in answers
        if other.question == answer.question and not other.settings.get("speculation", True)
    )
    return next((1000 / tok_s for tok_s in alone if tok_s), None)


def lesson_document(lesson: Lesson, pages: Sequence[Page], origin: Origin) -> ExportedPage:
    """The lesson as something to export or to print; behind its pages stand the answers that it is about."""
    sections: list[Section] = []
    turns: dict[int, ExportedAnswer] = {}
    for number, page in enumerate(pages, start=1):
        sections += [Heading(f"{number}. {page.title}"), Prose(page.text)]
        if page.figure is not None:
            sections.append(_section(page.figure))
            turns |= zip(page.figure.turns, page.figure.answers, strict=True)
    sections.append(Heading("The recorded answers"))
    sections += [replace(turns[turn], label=name_of(turns[turn])) for turn in sorted(turns)]
    return ExportedPage(lesson.title, tuple(sections), origin)


def _section(figure: Figure) -> Section:
    match figure.kind:
        case "answer":
            return Prose(_set(figure.answers[0].text))
        case "round":
            inspection = figure.inspection(figure.round)
            caption = f"round {inspection.step.index}: {inspection.summary}; {inspection.cost[0]}"
            return RoundFigure(inspection.step, caption)
        case "memory" | "copy" | "experts":
            seen = (figure.lines(figure.round, at, SET_WIDTH) for at in figure.set_moments)
            return Prose(_set("\n\n".join(map(as_text, seen))))
        case "histogram":
            return histogram_table(figure)
        case "race":
            return race_table(figure.race())
        case "times":
            return times_table(figure)


def _set(text: str) -> str:
    """Text that keeps its lines: one paragraph, so its empty lines hold the blanks that set it."""
    return "\n".join(SET_LINE + line for line in text.strip("\n").split("\n"))


def histogram_table(figure: Figure) -> CellTable:
    """A row per number of drafts kept, a column per answer."""
    histograms = [answer.statistics.acceptance_histogram for answer in figure.answers]
    longest = max(map(len, histograms), default=0)
    rows = (
        (str(kept), *(str(histogram[kept] if kept < len(histogram) else 0) for histogram in histograms))
        for kept in range(longest)
    )
    return CellTable((("kept", *(answer.question for answer in figure.answers)), *rows))


def times_table(figure: Figure) -> CellTable:
    """What a round costs on the machine of the trace, a row per answer."""
    rows = []
    for turn, answer in zip(figure.turns, figure.answers, strict=True):
        facts = turn_facts(turn, answer)
        values = [float(facts[f"t{turn}.{name}"]) for name in ("draft_ms", "verify_ms", "round_ms", "ms_per_token")]
        rows.append((f"{answer.question}, {name_of(answer)}", *(f"{value:.1f}" for value in values)))
    return CellTable((("milliseconds", GUESSING.name, CHECKING.name, "whole round", "per token"), *rows))
