"""What an export shows, in reading order. Traces, sessions, chats, races and lessons make an :class:`ExportedPage`; a
format turns it into text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.events import (
    Clock,
    EngineReady,
    Step,
)

from ..conversation.turn import Turn
from ..figures.speed_up import SpeedUp
from ..figures.statistics import CLOCKS
from ..rounds.factor import factors
from ..rounds.passes import PassRows

SET_LINE = "    "
"""What a line of a prose begins with that keeps its columns."""


def is_set(text: str) -> bool:
    """Whether a line, or a paragraph that begins with it, keeps its columns."""
    return text.startswith(SET_LINE)


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True)
class Prose:
    """Paragraphs, separated by empty lines. One that begins with four blanks keeps its lines and columns."""

    text: str


@dataclass(frozen=True, slots=True)
class CellTable:
    """Cells as they are shown; the first row names the columns."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class RoundFigure:
    """One round of an answer: what was drafted, kept and corrected."""

    step: Step
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Lanes:
    """Answers to one question, for one clock that starts at the first token of each."""

    answers: tuple[Turn, ...]
    best: int = 0
    """Which of them is held against the first; 0 for none."""
    times: SpeedUp | None = None
    """How many times as fast that was; None for no difference."""


Plain = Heading | Prose | CellTable | RoundFigure | PassRows | Turn
"""A section that isn't lanes."""
Section = Plain | Lanes


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the answers come from; empty where it isn't known."""

    target: str = ""
    drafter: str = ""
    device: str = ""
    dtype: str = ""
    created: str = ""
    """When they were recorded, in ISO 8601."""
    program: str = ""
    """The program that recorded them, with its version."""
    server: str = ""
    """The address of the server, where one answered; ``device`` is empty then."""
    dialect: str = ""
    times: Clock = "engine"

    def describe(self) -> str:
        """One line, such as ``gemma + dflash · cpu · float32 · 2026-11-21``."""
        models = " + ".join(filter(None, (self.target, self.drafter)))
        clock = "" if self.times == "engine" else f"times{CLOCKS[self.times]}"
        where = (self.dialect, self.server, clock) if self.server else (self.device, self.dtype)
        return " · ".join(filter(None, (models, *where, self.created[:10], self.program)))


@dataclass(frozen=True, slots=True)
class ExportedPage:
    title: str
    sections: tuple[Section, ...]
    origin: Origin = Origin()

    @property
    def one_by_one(self) -> Iterator[Plain]:
        """The sections with lanes one after the other, for formats that have no clock."""
        for section in self.sections:
            yield from section.answers if isinstance(section, Lanes) else (section,)

    @property
    def answers(self) -> tuple[Turn, ...]:
        return tuple(section for section in self.one_by_one if isinstance(section, Turn))


def with_factors(turns: Iterable[Turn], times: Clock = "engine") -> tuple[Turn, ...]:
    """Turns of one record, each with how many times as fast it came as the target alone, as far as none says so."""
    listed = tuple(turns)
    speed_ups = factors([(turn.settings, turn.rounds) for turn in listed], times)
    for turn, speed_up in zip(listed, speed_ups, strict=True):
        turn.speed_up = turn.speed_up or speed_up
    return listed


def origin_of(ready: EngineReady | None, created: str = "", program: str = "") -> Origin:
    if ready is None:
        return Origin(created=created, program=program)
    where = ("", ready.dtype) if ready.server else (ready.device, ready.dtype)
    served = (ready.server, ready.dialect)
    return Origin(ready.target, ready.drafter or "", *where, created, program, *served, times=ready.times)
