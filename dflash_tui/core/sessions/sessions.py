"""Conversations on disk, a JSON line per thing said, which reaches the operating system before the call returns:
SIGKILL loses at most the round in flight. Nothing raises into the engine thread: a full disk ends the log, not the
answer. A file holds ``session`` (version, creation time), then ``model``, ``user`` (with a system prompt), ``started``,
``prefilled``, ``text`` (one per round, with the round packed), ``settled``, ``finished`` and ``error`` lines, between
them ``title``, ``taken_back``, ``put_back`` and ``resumed``; other types are skipped."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from engine.commands import Message
from engine.events import (
    Clock,
    EngineError,
    Event,
    FinishReason,
    PrefillDone,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
    statistics_from_dict,
)

from ..files.places import sessions_directory
from ..rounds.numbers import PackingError
from .session_lines import EventLines, SettledLine, StepText, settled_line, step_text, unpack

FORMAT_VERSION = 1
SUFFIX = ".jsonl"
CUT_OFF = "The program ended within this answer."


class SessionLog:
    """Writes one conversation. Every method may be called from any thread, and none raises ``OSError``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: str | None = None
        """Why the log ended early, in words for people; None while all is well."""
        self._lock = threading.Lock()
        self._lines = EventLines()
        self._descriptor: int | None = None
        self._closed = False
        self._waiting: list[dict[str, Any]] = [{"type": "session", "version": FORMAT_VERSION, "created": _now()}]

    @classmethod
    def create(cls, directory: Path | None = None) -> SessionLog:
        """A new log in ``directory`` (default: :func:`sessions_directory`); the file comes with the first question."""
        stamp = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
        return cls((directory or sessions_directory()) / f"{stamp}-{uuid4().hex[:6]}{SUFFIX}")

    @classmethod
    def resume(cls, path: Path) -> SessionLog:
        """A log that goes on in the file of an older conversation. What a kill or a full disk left of a last line is
        removed. Raises ``OSError`` when the file can't be written, ``BlockingIOError`` when another window has it."""
        log = cls(path)
        log._descriptor = _open_whole(path)
        log._waiting = [{"type": "resumed", "time": _now()}]
        return log

    @classmethod
    def nowhere(cls) -> SessionLog:
        """A log that writes nothing, for what is no conversation of the user's."""
        log = cls(Path(os.devnull))
        log._closed, log._waiting = True, []
        return log

    @property
    def started(self) -> bool:
        """The file is there."""
        return self._descriptor is not None

    @property
    def asked(self) -> bool:
        """A question was written since this log was opened, and the file is still open."""
        return self.started and not self._waiting

    def user(self, turn: int, text: str, system: str | None = None) -> None:
        """Write what the user asked, under which system prompt, and with the first question the head of the file."""
        line = {"type": "user", "turn": turn, "text": text, "time": _now()} | ({"system": system} if system else {})
        with self._lock:
            head, self._waiting = self._waiting, []
            self._write([*head, line])

    def title(self, text: str) -> None:
        """Give the conversation a name, now or with its first question."""
        line = {"type": "title", "title": text}
        with self._lock:
            if self._waiting and not self.started:
                self._waiting.append(line)
            else:
                self._write([line])

    def take_back(self, turn: int) -> None:
        """Write that a turn is no longer part of the conversation."""
        with self._lock:
            self._write([{"type": "taken_back", "turn": turn}])

    def put_back(self, turn: int) -> None:
        """Write that a turn which was taken back is part of the conversation again."""
        with self._lock:
            self._write([{"type": "put_back", "turn": turn}])

    def record(self, event: Event) -> None:
        """Write what an event adds to the conversation; most add nothing."""
        with self._lock:
            line = None if self._closed else self._lines.line_for(event)
            if line is None:
                return
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
        data = _encode(lines)
        try:
            if self._descriptor is None:
                self._descriptor = _open_private(self.path)
            written = os.write(self._descriptor, data)
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self.failure = f"This conversation is no longer being saved to {self.path}: {error.strerror or error}."


@dataclass(slots=True)
class Turn:
    """One question and what came back. ``reason`` is None when the log ends within the turn."""

    number: int
    question: str
    time: str = ""
    """When it was asked, ISO 8601."""
    system: str | None = None
    started: TurnStarted | None = None
    prefill_ms: float = 0.0
    rounds: list[StepText] = field(default_factory=list)
    settled: SettledLine | None = None
    """What a server's own count made of the rounds."""
    reason: FinishReason | None = None
    error: str | None = None
    hint: str = ""
    statistics: dict[str, Any] = field(default_factory=dict)

    @property
    def answer(self) -> str:
        return "".join(each.answer for each in self.rounds)

    @property
    def thought(self) -> str:
        return "".join(each.thought for each in self.rounds)

    def events(self) -> list[Event] | None:
        """What the engine said; a turn cut off ends with an error. None where only the text was kept."""
        if self.started is None:
            return None
        try:
            steps = tuple(unpack(self.rounds))
            steps = self.settled.steps(steps) if self.settled else steps
        except PackingError:
            return None
        events: list[Event] = [self.started, PrefillDone(self.number, self.prefill_ms), *steps]
        if self.settled is not None:
            events.append(self.settled.event)
        error = self.error or (CUT_OFF if self.reason is None else None)
        if error is not None:
            events.append(EngineError("generation", error, self.hint, turn=self.number))
        return [*events, self.finished()]

    def finished(self) -> TurnFinished:
        """How it ended, with those statistics that this version knows."""
        known = {each.name for each in fields(TurnStatistics)}
        values = {name: value for name, value in self.statistics.items() if name in known}
        statistics = statistics_from_dict({"acceptance_histogram": (), **values})
        return TurnFinished(self.number, self.reason or "error", self.answer, self.thought, statistics)


@dataclass(frozen=True, slots=True)
class Conversation:
    path: Path
    created: str
    """ISO 8601, local time with its offset."""
    target: str | None
    """The latest model that took part."""
    drafter: str | None
    turns: tuple[Turn, ...]
    title: str | None = None
    last_turn: int = 0
    """The highest turn number that was ever used, also by a turn that was taken back."""
    server: str = ""
    """The address of the latest model's server, if it had one, and what answered there."""
    dialect: str = ""
    times: Clock = "engine"

    @property
    def id(self) -> str:
        return self.path.stem

    @property
    def system(self) -> str | None:
        """The latest system prompt."""
        return self.turns[-1].system if self.turns else None

    @property
    def name(self) -> str:
        """Its title, else its first question, on one line."""
        first = self.turns[0].question if self.turns else "(nothing was asked)"
        return self.title or " ".join(first.split())

    def messages(self) -> tuple[Message, ...]:
        """The conversation as the engine takes it; a turn without an answer is left out."""
        answered = [(turn.question, answer) for turn in self.turns if (answer := turn.answer)]
        return tuple(
            message
            for question, answer in answered
            for message in (Message("user", question), Message("assistant", answer))
        )


def load_session(path: Path) -> Conversation:
    """Reads a conversation back, without a last line cut short. ``OSError`` when unreadable, ``ValueError`` when it is
    no conversation."""
    lines = _read_lines(path)
    head = lines[0] if lines else {}
    if head.get("type") != "session":
        raise ValueError(f"{path} is not a conversation of dflash-chat.")
    if head["version"] > FORMAT_VERSION:
        raise ValueError(f"{path} was written by a newer dflash-chat (format {head['version']}).")
    model: dict[str, Any] = {}
    turns: dict[int, Turn] = {}
    taken_back: dict[int, Turn] = {}
    title, last_turn = None, 0
    for line in lines[1:]:
        match line["type"]:
            case "model":
                model = line
            case "title":
                title = line["title"] or None
            case "user":
                last_turn = max(last_turn, line["turn"])
                turns[line["turn"]] = Turn(line["turn"], line["text"], line.get("time", ""), line.get("system"))
            case "taken_back":
                if line["turn"] in turns:
                    taken_back[line["turn"]] = turns.pop(line["turn"])
            case "put_back":
                if line["turn"] in taken_back:
                    turns[line["turn"]] = taken_back.pop(line["turn"])
            case _ if line.get("turn") in turns:
                _continue_turn(turns[line["turn"]], line)
    target, drafter = model.get("target"), model.get("drafter")
    server: dict[str, Any] = {key: model[key] for key in ("server", "dialect", "times") if key in model}
    kept = tuple(turns.values())
    return Conversation(path, head["created"], target, drafter, kept, title, last_turn, **server)


def append_title(path: Path, title: str) -> None:
    """Name a conversation that this program is not writing. Raises ``OSError``."""
    data = _encode([{"type": "title", "title": title}])
    try:
        descriptor = _open_whole(path)
    except BlockingIOError:  # another window writes whole lines to it: so may we
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def _continue_turn(turn: Turn, line: dict[str, Any]) -> None:
    match line["type"]:
        case "started":
            counts = line["prompt_tokens"], line["reused_tokens"]
            turn.started = TurnStarted(turn.number, *counts, line["settings"], turn.question)
        case "prefilled":
            turn.prefill_ms = line["ms"]
        case "text":
            turn.rounds.append(step_text(line))
        case "settled":
            turn.settled = settled_line(line)
        case "finished":
            turn.reason, turn.statistics = line["reason"], line["statistics"]
        case "error":
            turn.error, turn.hint = line["message"], line["hint"]


def _encode(lines: Iterable[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode("utf-8", "replace")


def _open_private(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
    _lock(descriptor)
    return descriptor


def _lock(descriptor: int) -> None:
    """Until it is closed, or the process ends. Raises ``BlockingIOError`` when another window holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return  # a file system without locks


def _open_whole(path: Path) -> int:
    """Open an older file to append whole lines to it, and keep other windows from doing the same."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        _lock(descriptor)
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(descriptor, whole)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


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
