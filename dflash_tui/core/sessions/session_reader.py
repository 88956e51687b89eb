"""From the lines of a file to the tree of its turns. A number that comes twice becomes a new one, and what follows a
turn that isn't there, or that comes later, follows the one before it: there is no way to write a cycle."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any

from engine.events import EngineError, EngineReady, PrefillDone, TurnFinished, TurnStarted
from engine.rounds.numbers import RecordError

from ..conversation.question_context import NOTHING, QuestionContext
from ..conversation.tree import ROOT, Tree
from ..conversation.turn import Turn
from ..figures.speed_up import SpeedUp
from .checked_events import RecordedEvent, checked_event
from .lines import block_in
from .session_file import JsonLine

UNKNOWN = "unknown"
"""When a question was asked whose line doesn't say it."""
MAX_TEXT, MAX_ROUNDS = 64 * 2**20, 2**20
"""Characters of all answers and their rounds together: far more than any conversation has."""


class SessionReader:
    """What the lines of a file have told so far."""

    def __init__(self) -> None:
        self.tree: Tree[Turn] = Tree()
        self.title: str | None = None
        self.ready: EngineReady | None = None
        """The latest model that took part."""
        self.last_turn = 0
        self.damaged = 0
        self._numbers: dict[int, int] = {}
        """The number of each turn here by its number in the file: the same, unless that came twice."""
        self._contents: dict[str, str] = {}
        """The contents of attached files, by digest."""
        self._settings: dict[str, Any] = {}
        """The settings of the latest turn that told them, which hold for turns that tell none."""
        self._early: list[tuple[int, int, list[Any] | str]] = []
        """Rounds whose predecessors have not come yet, each with its turn and its place in that."""
        self._text_left, self._rounds_left = MAX_TEXT, MAX_ROUNDS

    def take(self, line: JsonLine) -> None:
        """The next line. Raises ``KeyError``, ``TypeError`` or ``ValueError`` for one that tells nothing."""
        if not isinstance(line, dict):
            self._rounds(line)
            return
        if "event" in line:
            self._event(line)
            return
        match line["type"]:
            case "title":
                self.title = _text(line, "title") or None
            case "user":
                self._ask(line)
            case "here":
                self.tree.go(self._turn_number(line["turn"]))
            case "taken_back":
                self._take_back(self._turn_number(line["turn"]))
            case "branch":
                self.tree[self._turn_number(line["turn"])].name = _text(line, "name")
            case "file":
                self._contents[_text(line, "digest")] = _text(line, "text")
            case "speed_up":
                times = float(line["times"])
                if not 0 < times < inf:
                    raise ValueError("that is no number of times")
                self.tree[self._turn_number(line["turn"])].speed_up = SpeedUp(times, line["about"] is True)

    def end(self) -> None:
        """Nothing more comes: rounds before which others are missing stand behind those that are there."""
        early, self._early = sorted(self._early, key=lambda each: each[:2]), []
        for number, _, line in early:
            turn = self.tree[number]
            data, block = block_in(line)
            self.damaged += turn.misses(block)
            with suppress(RecordError):
                turn.take(data, block)

    def _rounds(self, line: list[Any] | str) -> None:
        data, block = block_in(line)
        turn = self.tree[self._turn_number(block.turn)]
        if turn.misses(block):
            self._early.append((turn.number, block.first, line))
            return
        before = turn.store.num_characters
        turn.take(data, block)
        self._rounds_left -= len(block)
        self._text_left -= turn.store.num_characters - before
        if min(self._rounds_left, self._text_left) < 0:
            raise OverflowError("This conversation is longer than this program reads.")

    def _turn_number(self, turn: object) -> int:
        """The number of a turn that the file names."""
        if not isinstance(turn, int):
            raise TypeError("a turn's number is a number")
        return ROOT if turn == ROOT and turn not in self._numbers else self._numbers[turn]

    def _ask(self, line: Mapping[str, Any]) -> None:
        turn_field, text = line["turn"], _text(line, "text")
        number = turn_field if isinstance(turn_field, int) and turn_field > self.last_turn else self.last_turn + 1
        parent = self.tree.here
        if "parent" in line:
            try:
                parent = self._turn_number(line["parent"])
            except (KeyError, TypeError):
                self.damaged += 1
        if parent != ROOT and parent not in self.tree:
            parent = self.tree.here
        system, time = line.get("system"), line.get("time")
        self.tree.add(
            Turn(
                number,
                text,
                parent,
                system=system if isinstance(system, str) else None,
                time=time if isinstance(time, str) and time else UNKNOWN,
                once=line.get("once") is True,
                attached=self._context_of(line),
            )
        )
        self.last_turn = number
        if isinstance(turn_field, int):
            self._numbers[turn_field] = number

    def _context_of(self, line: Mapping[str, Any]) -> QuestionContext:
        """What goes with a question, by its line, without what can't be read."""
        try:
            return QuestionContext.from_line(line, self._contents)
        except (ValueError, KeyError, TypeError, AttributeError):
            self.damaged += 1
            return NOTHING

    def _take_back(self, number: int) -> None:
        if not self.tree[number].begun and not self.tree.children(number):
            self.tree.withdraw(number)

    def _event(self, line: dict[str, Any]) -> None:
        """What the engine said."""
        if line["event"] == "EngineReady":
            self.ready = _checked(line)
            return
        turn = self.tree[self._turn_number(line["turn"])]
        known = {"settings": self._settings, "text": "", "thought": "", "statistics": {"acceptance_histogram": ()}}
        match replace(_checked({**known, **line}), turn=turn.number):
            case TurnStarted() as event:
                self._settings = event.settings
                turn.started = replace(event, question=turn.attached.prompt(turn.question))
                turn.by, turn.settings = self.ready, event.settings
            case PrefillDone() as event:
                turn.prefill_ms = event.milliseconds
            case EngineError() as event:
                turn.error = event
            case TurnFinished() as event:
                turn.close(event, line)


def _checked(line: dict[str, Any]) -> Any:
    """The event in a line. Raises ``ValueError`` for what is none."""
    event: RecordedEvent | None = checked_event(line)
    if event is None:
        raise ValueError("that is no event")
    return event


def _text(line: Mapping[str, Any], key: str) -> str:
    """The text under ``key`` of a line. Raises ``KeyError`` or ``TypeError`` where there is none."""
    if not isinstance(text := line[key], str):
        raise TypeError(f"{key} is text")
    return text
