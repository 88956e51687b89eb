"""Pages over the bundled recording: a Markdown text each, and what of the recording stands beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from engine.events import Step

from ..conversation.turn import Turn
from ..export.document import Origin, origin_of
from ..files.places import keep, read_kept
from ..race.lanes import block_name
from ..race.race import RaceResult, as_race
from ..replay.bundled import find_recording
from ..rounds.inspection import Inspection, inspect_step
from ..rounds.passes import PassRows
from ..sessions.sessions import load_session

PLACES = "lessons.json"
"""The file that keeps the page at which each course was left."""


class Recording(NamedTuple):
    """The answers of the bundled recording ``lesson``, in its order, and what it was recorded on."""

    alone: Turn
    """A program, by the target alone."""
    drafted: Turn
    """The same with blocks of sixteen."""
    talk_alone: Turn
    """An explanation, by the target alone."""
    talk: Turn
    """The same with blocks of sixteen."""
    talk_small: Turn
    """The same with blocks of four."""
    dice_alone: Turn
    """A program drawn by lot, by the target alone."""
    dice: Turn
    """The same with blocks of sixteen."""
    origin: Origin


@dataclass(frozen=True, slots=True)
class Written:
    """An answer, in its verdicts' colours."""

    answer: Turn


@dataclass(frozen=True, slots=True)
class OneRound:
    """A round of an answer in the step view."""

    answer: Turn
    index: int
    plain_ms: float | None = None
    """What a token costs the target alone."""

    def inspection(self, index: int | None = None) -> Inspection:
        """The round, or another one of the answer, taken apart."""
        answer, number = self.answer, self.index if index is None else index
        before = answer.rounds.tokens_before(number)
        seed = answer.settings.get("seed")
        known = seed if isinstance(seed, int) else None
        return inspect_step(answer.rounds[number], before, answer.num_prompt_tokens + before, known, self.plain_ms)


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Answers to one question as the lanes of a race; the first is what the others are compared with."""

    answers: tuple[Turn, ...]

    @property
    def result(self) -> RaceResult:
        return as_race(self.answers[0].question, [(name_of(answer), answer) for answer in self.answers])


@dataclass(frozen=True, slots=True)
class Factor:
    """How many times as fast as the target alone, in large digits."""

    times: float


View = Written | OneRound | SideBySide | PassRows | Factor | None


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    text: str
    """Markdown: paragraphs and tables."""
    view: View = None
    seconds: float = 12.0
    """How long the view plays; in a course that plays itself, how long the page stands."""


@dataclass(frozen=True, slots=True)
class Course:
    """Pages in their order. The last is the course's end; ``behind`` it stand pages for experts."""

    title: str
    pages: tuple[Page, ...]
    origin: Origin
    behind: tuple[Page, ...] = ()
    plays: bool = False
    """Whether a page turns by itself once its seconds have passed."""

    @property
    def seconds(self) -> float:
        return sum(page.seconds for page in self.pages)

    def read_place(self) -> int:
        """The page to begin with, counted from 0: the one that was left, unless it was the last or behind that."""
        page = read_kept(PLACES).get(self.title, 0)
        return page if isinstance(page, int) and 0 <= page < len(self.pages) - 1 else 0

    def keep_place(self, page: int) -> None:
        """Remember a page. A place that can't be written is forgotten: no lesson ends over it."""
        keep(PLACES, read_kept(PLACES) | {self.title: page})


def open_recording() -> Recording:
    """Read the bundled recording of the lesson."""
    lesson = load_session(find_recording("lesson"))
    for answer in lesson.turns:
        answer.name = name_of(answer)
    alone, drafted, talk_alone, talk, talk_small, dice_alone, dice = lesson.turns
    origin = origin_of(lesson.ready, lesson.created, lesson.program)
    return Recording(alone, drafted, talk_alone, talk, talk_small, dice_alone, dice, origin)


def name_of(answer: Turn) -> str:
    """What tells an answer from others of a recording."""
    if not answer.settings.get("speculation", True):
        return "one token at a time"
    return block_name(answer.settings.get("block_size", "?"))


def passes(answer: Turn) -> int:
    """How often the target ran behind the prompt."""
    return answer.rounds.num_passes


def token_ms(alone: Turn) -> float:
    """Milliseconds of a token of an answer, the one figure for what the target alone takes."""
    return 1000 / alone.statistics.tok_s


def mean_ms(steps: Iterable[Step], field: str = "total_ms") -> float:
    """The mean milliseconds of rounds, or of a ``field`` of them."""
    return fmean(getattr(step, field) or 0.0 for step in steps if step.verify_width)
