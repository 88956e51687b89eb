"""Conversations on disk: one JSON line per thing said, written while it is said.

A line reaches the operating system before the call that wrote it returns, so a program killed with SIGKILL loses at
most the round in flight. Nothing here raises into the engine thread: a full disk ends the log, not the answer.

A file holds, in order: ``session`` (version, creation time), then ``model``, ``user``, ``text`` (one per round:
what it added to the answer and to the thinking), ``finished`` and ``error`` lines.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from platformdirs import user_state_dir

from engine.commands import Message
from engine.events import Channel, EngineError, EngineReady, Event, Step, TurnFinished

FORMAT_VERSION = 1
STATE_VARIABLE = "DFLASH_CHAT_STATE"


def state_directory() -> Path:
    """What the program keeps for the user: ``$DFLASH_CHAT_STATE``, else the platform's place for such things."""
    root = os.environ.get(STATE_VARIABLE) or user_state_dir("dflash-chat", appauthor=False)
    return Path(root).expanduser()


def sessions_directory() -> Path:
    """Where conversations are kept."""
    return state_directory() / "sessions"


class SessionLog:
    """Writes one conversation. Every method may be called from any thread, and none raises ``OSError``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: str | None = None
        """Why the log ended early, in words for people; None while all is well."""
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._closed = False
        self._waiting: list[dict[str, Any]] = [{"type": "session", "version": FORMAT_VERSION, "created": _now()}]

    @classmethod
    def create(cls, directory: Path | None = None) -> SessionLog:
        """A log with a new name in ``directory`` (default: :func:`sessions_directory`). The file appears with the
        first user message, so that a chat opened and closed leaves nothing behind."""
        stamp = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
        return cls((directory or sessions_directory()) / f"{stamp}-{uuid4().hex[:6]}.jsonl")

    def user(self, turn: int, text: str) -> None:
        """Write what the user asked, and with the first question the head of the file."""
        with self._lock:
            head, self._waiting = self._waiting, []
            self._write([*head, {"type": "user", "turn": turn, "text": text, "time": _now()}])

    def take_back(self, turn: int) -> None:
        """Write that a turn is no longer part of the conversation."""
        with self._lock:
            self._write([{"type": "taken_back", "turn": turn}])

    def record(self, event: Event) -> None:
        """Write what an event adds to the conversation; most add nothing."""
        line = _line_for(event)
        if line is None:
            return
        with self._lock:
            if self._waiting:
                self._waiting.append(line)
            else:
                self._write([line])

    def close(self) -> None:
        """Release the file; later calls write nothing."""
        with self._lock:
            self._closed = True
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _write(self, lines: Iterable[dict[str, Any]]) -> None:
        if self._closed or self.failure is not None:
            return
        data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode("utf-8", "replace")
        try:
            if self._descriptor is None:
                self._descriptor = _open_private(self.path)
            written = os.write(self._descriptor, data)
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self.failure = f"This conversation is no longer being saved to {self.path}: {error.strerror or error}."


@dataclass(frozen=True, slots=True)
class Turn:
    """One question and what came back. ``reason`` is None when the log ends within the turn."""

    number: int
    question: str
    answer: str = ""
    thought: str = ""
    reason: str | None = None
    error: str | None = None
    statistics: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conversation:
    path: Path
    created: str
    """ISO 8601, local time with its offset."""
    target: str | None
    drafter: str | None
    turns: tuple[Turn, ...]

    def messages(self) -> tuple[Message, ...]:
        """The conversation as the engine takes it; a turn without an answer is left out."""
        answered = [turn for turn in self.turns if turn.answer]
        return tuple(
            message
            for turn in answered
            for message in (Message("user", turn.question), Message("assistant", turn.answer))
        )


def load_session(path: Path) -> Conversation:
    """Read a conversation back. A last line cut short, as a kill or a full disk leaves it, is left out.

    Raises ``OSError`` when the file can't be read and ``ValueError`` when it is not a conversation.
    """
    lines = _read_lines(path)
    head = lines[0] if lines else {}
    if head.get("type") != "session":
        raise ValueError(f"{path} is not a conversation of dflash-chat.")
    if head["version"] > FORMAT_VERSION:
        raise ValueError(f"{path} was written by a newer dflash-chat (format {head['version']}).")
    model: dict[str, Any] = {}
    turns: dict[int, Turn] = {}
    for line in lines[1:]:
        match line["type"]:
            case "model":
                model = line
            case "user":
                turns[line["turn"]] = Turn(line["turn"], line["text"])
            case "taken_back":
                turns.pop(line["turn"], None)
            case _ if line.get("turn") in turns:
                turns[line["turn"]] = _continue_turn(turns[line["turn"]], line)
    return Conversation(path, head["created"], model.get("target"), model.get("drafter"), tuple(turns.values()))


def _continue_turn(turn: Turn, line: dict[str, Any]) -> Turn:
    match line["type"]:
        case "text":
            return replace(turn, answer=turn.answer + line["answer"], thought=turn.thought + line.get("thought", ""))
        case "finished":
            return replace(turn, reason=line["reason"], statistics=line["statistics"])
        case "error":
            return replace(turn, error=line["message"])
    return turn


def _line_for(event: Event) -> dict[str, Any] | None:
    match event:
        case EngineReady():
            return {"type": "model", "target": event.target, "drafter": event.drafter, "device": event.device}
        case Step():
            answer, thought = _joined(event, "answer"), _joined(event, "thought")
            if not answer and not thought:
                return None
            line = {"type": "text", "turn": event.turn, "answer": answer}
            return {**line, "thought": thought} if thought else line
        case TurnFinished():
            statistics = asdict(event.statistics)
            return {"type": "finished", "turn": event.turn, "reason": event.reason, "statistics": statistics}
        case EngineError():
            return {"type": "error", "turn": event.turn, "message": event.message, "hint": event.hint}
        case _:
            return None


def _joined(step: Step, channel: Channel) -> str:
    return "".join(token.text for token in step.emitted if token.channel == channel)


def _open_private(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)


def _read_lines(path: Path) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for number, raw in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if not raw.endswith(b"\n"):
            break
        try:
            line = json.loads(raw)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}, is not JSON.") from error
        if not isinstance(line, dict) or "type" not in line:
            raise ValueError(f"{path}, line {number}, is not a line of a conversation.")
        lines.append(line)
    return lines


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")
