"""Writes traces: event by event while a run goes on, or a whole conversation afterwards."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import datetime
from io import SEEK_END, StringIO
from pathlib import Path
from typing import Any

from engine.events import (
    MICROSECONDS,
    EngineError,
    EngineReady,
    Event,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    event_to_dict,
    rounded,
)
from engine.rounds.statistics import TurnMeter

from ..conversation.reducer import TurnState
from ..records.batches import Batches
from ..records.round_log import Recorder, RoundLog
from ..version import NOT_INSTALLED, PROGRAM, installed_version
from .format import FORMAT_VERSION, MAGIC, JsonEvent, TraceHeader
from .frames import FrameWriter

FLUSH_SECONDS = 0.5
"""The most seconds of a run that are lost when the program is killed."""


class TraceWriter:
    """Writes a trace file on a thread of its own; any one thread may record. Once open, nothing raises: a full disk
    ends the trace, not the answer, and ``failure`` says so."""

    def __init__(self, path: Path, source: str = "engine") -> None:
        """Creates the file; an existing one is never overwritten. Raises ``OSError``."""
        self.path = path
        self.failure: str | None = None
        """Why the trace ended early, in words for people; None while all is well."""
        self._file = open(path, "xb", buffering=0)  # noqa: SIM115  (closed with the trace)
        self._closed = False
        self._recorder = Recorder()
        """Records the rounds, where nobody else keeps them."""
        self._frames = FrameWriter(self._write)
        self._rounds: RoundLog | None = None
        """The rounds of the turn that is being written."""
        self._texts = {"text": StringIO(), "thought": StringIO()}
        self._meter = TurnMeter()
        """What the steps of this turn say: ``TurnFinished`` need not say it again."""
        self._turn = 0
        self._settings: dict[str, Any] | None = None
        """The settings of the latest turn, which the next turns need not say again."""
        self._write(MAGIC + b"%d\n" % FORMAT_VERSION)
        self._frames.line(asdict(_header(source)))
        self._batches = Batches("trace", FLUSH_SECONDS, self._write_down)

    def record(self, event: Event, rounds: RoundLog | None = None) -> None:
        """Write an event down; ``LoadProgress`` is left out, and so is what comes after :meth:`close`. ``rounds``: the
        turn's so far, where the caller keeps them."""
        if not self._closed:
            rounds = self._recorder.take(event) if rounds is None else rounds
            self._batches.put((event, rounds), due=isinstance(event, TurnFinished))

    def close(self) -> None:
        """End the file, when everything is written."""
        if not self._closed:
            self._closed = True
            self._batches.close()
            self._frames.end()
            self._file.close()

    def _write_down(self, batch: list[tuple[Event, RoundLog | None]]) -> None:
        for event, rounds in batch:
            self._record(event, rounds)
        if self._rounds is not None:
            self._frames.rounds(self._rounds)
        self._frames.flush()

    def _record(self, event: Event, rounds: RoundLog | None) -> None:
        match event:
            case Step():
                if rounds is not None:
                    self._rounds = rounds
                    self._note(event)
            case EngineReady() | TurnStarted() | PrefillDone() | TurnFinished() | EngineError():
                if self._rounds is not None:
                    self._frames.rounds(self._rounds, rest=True)
                self._rounds = None
                self._frames.line(self._as_dict(event))

    def _as_dict(self, event: JsonEvent) -> dict[str, Any]:
        """The event without what the steps and events before it say already, nor digits that no clock knows."""
        data = event_to_dict(event)
        if isinstance(event, TurnStarted):
            if event.turn == self._turn + 1:
                del data["turn"]
            if event.settings == self._settings:
                del data["settings"]
            self._turn, self._settings = event.turn, event.settings
            self._begin_meter(event.num_prompt_tokens, event.num_reused_tokens)
        elif isinstance(event, PrefillDone | TurnFinished) and event.turn == self._turn:
            del data["turn"]
        if isinstance(event, TurnFinished):
            for key, said in self._texts.items():
                if data[key] == said.getvalue():
                    del data[key]
            if event.statistics == self._meter.statistics():
                del data["statistics"]
        for key in {"milliseconds", "load_seconds"} & data.keys():
            data[key] = rounded(data[key], MICROSECONDS)
        return data

    def _begin_meter(self, num_prompt_tokens: int, num_reused_tokens: int) -> None:
        self._texts = {"text": StringIO(), "thought": StringIO()}
        self._meter = TurnMeter(num_prompt_tokens, num_reused_tokens)

    def _note(self, step: Step) -> None:
        self._meter.add(step)
        for token in step.emitted:
            if token.channel != "control":
                self._texts["thought" if token.channel == "thought" else "text"].write(token.text)

    def _write(self, data: bytes, instead: int = 0) -> None:
        """Write ``data`` in the place of the file's last ``instead`` bytes; after a kill in between the rest is
        whole."""
        if self.failure is not None:
            return
        try:
            if instead:
                self._file.seek(-instead, SEEK_END)
            while data:
                data = data[self._file.write(data) :]
            if instead:
                self._file.truncate()
        except OSError as error:
            here = f"The trace {self.path} ends here, at what was written so far: {error.strerror or error}."
            self.failure = f"{here} The answer goes on without it."


def write_conversation(path: Path, ready: EngineReady | None, turns: Iterable[TurnState]) -> None:
    """The trace of a conversation. ``FileExistsError`` or ``OSError``; no partial file is left."""
    writer = TraceWriter(path, source="history")
    for event in (*([ready] if ready else []), *(event for turn in turns for event in turn_events(turn))):
        writer.record(event)
    writer.close()
    if writer.failure is not None:
        path.unlink(missing_ok=True)
        raise OSError(writer.failure)


def turn_events(turn: TurnState) -> Iterator[Event]:
    if turn.started is not None:
        yield turn.started
    if turn.prefill_ms:
        yield PrefillDone(turn.number, turn.prefill_ms)
    yield from turn.history
    if turn.error is not None:
        yield turn.error
    if turn.finished is not None:
        yield turn.finished


def _header(source: str) -> TraceHeader:
    names = (PROGRAM, "torch", "triton", "transformers")
    found = {name: known for name in names if (known := installed_version(name)) != NOT_INSTALLED}
    own = found.pop(PROGRAM, "")
    versions = ", ".join([f"Python {platform.python_version()}", *(f"{name} {known}" for name, known in found.items())])
    created = datetime.now().astimezone().isoformat(timespec="seconds")
    return TraceHeader(PROGRAM, own, created, source, versions)
