"""From the lines of a file to the tree of its turns. A number that comes twice becomes a new one, and what follows a
turn that isn't there, or that comes later, follows the one before it: there is no way to write a cycle."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, get_args

from engine.events import FinishReason, TurnStarted

from ..conversation.question_context import NOTHING, QuestionContext
from ..conversation.tree import ROOT, Tree
from ..figures.speed_up import SpeedUp
from ..files.running import RunResult
from .session_file import Line
from .session_lines import block_in, step_text
from .turn import StoredTurn

_OF_TURNS = ("started", "prefilled", "text", "rounds", "finished", "speed_up", "error", "ran")
MODEL = ("target", "drafter", "server", "dialect", "times")
"""What a ``model`` line tells."""


class SessionReader:
    """What the lines of a file have told so far."""

    def __init__(self) -> None:
        self.tree: Tree[StoredTurn] = Tree()
        self.title: str | None = None
        self.model: dict[str, Any] = {"target": None, "drafter": None}
        self.last_turn = 0
        self.damaged = 0
        self._numbers: dict[int, int] = {}
        """The number of each turn here by its number in the file: the same, unless that came twice."""
        self._withdrawn: dict[int, StoredTurn] = {}
        self._contents: dict[str, str] = {}
        """The contents of attached files, by digest."""
        self._latest: object = None
        """The turn, as the file numbers it, that was asked or begun last: what has no turn is of this one."""
        self._settings: object = None
        """The settings of the latest turn that told them, which hold for turns that tell none."""

    def take(self, line: Line) -> None:
        """The next line. Raises ``KeyError``, ``TypeError`` or ``ValueError`` for one that tells nothing."""
        if not isinstance(line, dict):
            answer, thought = (line, "") if isinstance(line, str) else line
            self._continue({"type": "text", "turn": self._latest, "answer": answer, "thought": thought})
            return
        match line["type"]:
            case "model":
                known: dict[str, Any] = {key: line[key] for key in MODEL if key in line}
                if not all(isinstance(value, str | None) for value in known.values()):
                    raise TypeError("a model's name is text")
                self.model |= known
            case "title":
                self.title = _text(line, "title") or None
            case "user":
                self._ask(line)
            case "here":
                self.tree.go(self._place(line["turn"]))
            case "taken_back":
                self._take_back(self._place(line["turn"]))
            case "put_back":
                self._put_back(self._place(line["turn"]))
            case "branch":
                self.tree[self._place(line["turn"])].name = _text(line, "name")
            case "file":
                self._contents[_text(line, "digest")] = _text(line, "text")
            case kind if kind in _OF_TURNS and line.get("turn") is not None:
                self._continue(line)

    def _place(self, turn: object) -> int:
        """The number of a turn that the file names."""
        if not isinstance(turn, int):
            raise TypeError("a turn's number is a number")
        return ROOT if turn == ROOT and turn not in self._numbers else self._numbers[turn]

    def _ask(self, line: Mapping[str, Any]) -> None:
        told, text = line["turn"], _text(line, "text")
        number = told if isinstance(told, int) and told > self.last_turn else self.last_turn + 1
        parent = self.tree.here
        if "parent" in line:
            try:
                parent = self._place(line["parent"])
            except (KeyError, TypeError):
                self.damaged += 1
        if parent != ROOT and parent not in self.tree:
            parent = self.tree.here
        system, time = line.get("system"), line.get("time")
        self.tree.add(
            StoredTurn(
                number,
                text,
                time if isinstance(time, str) else "",
                system if isinstance(system, str) else None,
                parent,
                once=line.get("once") is True,
                beside=self._beside(line),
            )
        )
        self.last_turn = number
        if isinstance(told, int):
            self._numbers[told] = number
        self._latest = told

    def _beside(self, line: Mapping[str, Any]) -> QuestionContext:
        """What goes with a question, by its line, without what can't be read."""
        try:
            return QuestionContext.from_line(line, self._contents)
        except (ValueError, KeyError, TypeError, AttributeError):
            self.damaged += 1
            return NOTHING

    def _continue(self, line: dict[str, Any]) -> None:
        number = self._place(line["turn"])
        if number in self._withdrawn:
            return
        turn = self.tree[number]
        if begins := line["type"] == "started":
            self._latest = line["turn"]
        _continue_turn(turn, {"settings": self._settings, **line})
        if begins:
            self._settings = line.get("settings", self._settings)
            turn.target, turn.drafter = self.model["target"], self.model["drafter"]

    def _take_back(self, number: int) -> None:
        if number in self.tree and not self.tree[number].begun and not self.tree.children(number):
            self._withdrawn[number] = self.tree[number]
            self.tree.withdraw(number)
        elif any(turn.number == number for turn in self.tree.path):
            self.tree.go(self.tree[number].parent)

    def _put_back(self, number: int) -> None:
        if number in self._withdrawn:
            self.tree.add(self._withdrawn.pop(number))
        else:
            self.tree.go(number)


def _text(line: Mapping[str, Any], key: str) -> str:
    """The text under ``key`` of a line. Raises ``KeyError`` or ``TypeError`` where there is none."""
    if not isinstance(text := line[key], str):
        raise TypeError(f"{key} is text")
    return text


def _continue_turn(turn: StoredTurn, line: dict[str, Any]) -> None:
    match line["type"]:
        case "started":
            counts, settings = (line["prompt_tokens"], line["reused_tokens"]), line["settings"]
            if not all(isinstance(count, int) for count in counts) or not isinstance(settings, dict):
                raise TypeError("a turn begins with numbers and settings")
            turn.started = TurnStarted(turn.number, *counts, settings, turn.question)
        case "prefilled":
            turn.prefill_ms = float(line["ms"])
        case "text":
            _text(line, "answer"), _text({"thought": "", **line}, "thought")
            turn.rounds.append(step_text(line))
        case "rounds":
            turn.blocks.append(block_in(line))
        case "finished":
            if line["reason"] not in get_args(FinishReason) or not isinstance(line["statistics"], list):
                raise ValueError("that is no way to end")
            turn.reason, turn.statistics = line["reason"], line["statistics"]
        case "speed_up":
            times = float(line["times"])
            if not 0 < times < inf:
                raise ValueError("that is no number of times")
            turn.speed_up = SpeedUp(times, line["about"] is True)
        case "ran":
            turn.runs.append(RunResult.from_line(line))
        case "error":
            turn.error, turn.hint = _text(line, "message"), _text(line, "hint")
