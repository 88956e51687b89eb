"""Writes traces: event by event while a run goes on, or a whole conversation afterwards."""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from datetime import datetime
from io import SEEK_END, StringIO
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from engine.events import (
    MICROSECONDS,
    EngineError,
    EngineReady,
    Event,
    PrefillDone,
    Settled,
    Step,
    TurnFinished,
    TurnStarted,
    event_to_dict,
    rounded,
    settled_steps,
)
from engine.statistics import TurnMeter

from ..conversation.reducer import TurnState
from ..rounds.packing import is_partial, is_sourced, is_unsure
from .format import (
    FORMAT_VERSION,
    MAGIC,
    PARTIAL_VERSION,
    SOURCE_VERSION,
    TREE_VERSION,
    UNSURE_VERSION,
    JsonEvent,
    TraceHeader,
)
from .frames import FrameWriter

FLUSH_SECONDS = 0.5
"""At most so much of a run is lost when the program is killed."""


class TraceWriter:
    """Writes a trace file on a thread of its own; any thread may call any method. It packs every ``FLUSH_SECONDS`` and
    codes when a turn has ended, since its work slows the engine. Once open, nothing raises: a full disk ends the trace,
    not the answer, and ``failure`` says so."""

    def __init__(self, path: Path, source: str = "engine") -> None:
        """Creates the file; an existing one is never overwritten. Raises ``OSError``."""
        self.path = path
        self.failure: str | None = None
        """Why the trace ended early, in words for people; None while all is well."""
        self._file = open(path, "xb", buffering=0)  # noqa: SIM115  (closed by the thread)
        self._events: SimpleQueue[Event | None] = SimpleQueue()
        """None: the trace ends here."""
        self._due = threading.Event()
        """What was recorded should be written now."""
        self._closed = threading.Event()
        self._frames = FrameWriter(self._write)
        self._texts = {"text": StringIO(), "thought": StringIO()}
        self._meter = TurnMeter()
        """What the steps of this turn say: ``TurnFinished`` need not say it again."""
        self._guessing = False
        """Steps of this turn are provisional. Once settled they are written again, up to the line before them."""
        self._late: list[EngineError] = []
        """Errors meanwhile."""
        self._turn = 0
        self._settings: dict[str, Any] | None = None
        """Of the latest turn: the next events need not say them again."""
        self._version = FORMAT_VERSION
        self._write(MAGIC + b"%d\n" % FORMAT_VERSION)
        self._frames.line(asdict(_header(source)))
        self._thread = threading.Thread(target=self._run, name="trace", daemon=True)
        self._thread.start()

    def record(self, event: Event) -> None:
        """Write an event down; ``LoadProgress`` is left out, and so is what comes after :meth:`close`."""
        if not self._closed.is_set():
            self._events.put(event)
            if isinstance(event, TurnFinished):
                self._due.set()

    def close(self) -> None:
        """End the file, when everything is written."""
        if not self._closed.is_set():
            self._closed.set()
            self._events.put(None)
            self._due.set()
        self._thread.join()

    def _run(self) -> None:
        batch: list[Event | None] = []
        while None not in batch:
            batch = [self._events.get()]
            self._due.wait(FLUSH_SECONDS)
            self._due.clear()
            batch += [self._events.get_nowait() for _ in range(self._events.qsize())]
            for event in batch:
                if event is not None:
                    self._record(event)
            self._frames.flush()
        self._frames.end()
        self._file.close()

    def _record(self, event: Event) -> None:
        match event:
            case Step():
                self._note(event)
                self._guessing |= event.provisional
                self._need(_version_of(event))
                self._frames.step(event)
            case EngineError() if self._guessing:
                self._late.append(event)
            case Settled():
                self._need(UNSURE_VERSION)
                self._settle(event)
            case EngineReady() | TurnStarted() | PrefillDone() | TurnFinished() | EngineError():
                self._end_guesses()
                self._frames.line(self._as_dict(event))

    def _settle(self, event: Settled) -> None:
        """What is known in the end stands in the file, and that it was a guess before."""
        if steps := settled_steps(event, self._frames.told):
            self._begin_meter(self._meter.num_prompt_tokens, self._meter.num_reused_tokens)
            for step in steps:
                self._note(step)
            self._frames.settle(steps)
        self._frames.line(self._as_dict(replace(event, steps=())))
        self._end_guesses()

    def _end_guesses(self) -> None:
        """Nothing will settle the steps so far any more."""
        self._guessing, late, self._late = False, self._late, []
        for error in late:
            self._frames.line(self._as_dict(error))

    def _need(self, version: int) -> None:
        if version > self._version:
            self._raise_version(version)

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
        elif isinstance(event, PrefillDone | Settled | TurnFinished) and event.turn == self._turn:
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

    def _raise_version(self, version: int) -> None:
        """Before the first step that needs it stands in the file, its first line says so: one digit for another."""
        self._version = version
        if self.failure is None:
            try:
                self._file.seek(len(MAGIC))
                self._file.write(b"%d" % version)
                self._file.seek(0, SEEK_END)
            except OSError as error:
                self._fail(error)

    def _write(self, data: bytes, instead: int = 0) -> None:
        """``data`` in place of the file's last ``instead`` bytes; killed in between, the whole rest remains."""
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
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.failure = (
            f"The trace {self.path} ends here, at what was written so far: {error.strerror or error}. "
            "The answer goes on without it."
        )


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
    """The events that led to a turn's state, in their order."""
    if turn.started is not None:
        yield turn.started
    if turn.prefill_ms:
        yield PrefillDone(turn.number, turn.prefill_ms)
    yield from turn.history
    if turn.settled is not None:
        yield turn.settled
    if turn.error is not None:
        yield turn.error
    if turn.finished is not None:
        yield turn.finished


def _version_of(step: Step) -> int:
    """The lowest that can hold it."""
    if is_sourced(step):
        return SOURCE_VERSION
    if is_unsure(step):
        return UNSURE_VERSION
    return PARTIAL_VERSION if is_partial(step) else TREE_VERSION if step.tree else FORMAT_VERSION


def _header(source: str) -> TraceHeader:
    names = ("torch", "triton", "transformers")
    versions = ", ".join([f"Python {platform.python_version()}", *(f"{name} {found}" for name, found in _found(names))])
    created = datetime.now().astimezone().isoformat(timespec="seconds")
    return TraceHeader("dflash-chat", dict(_found(["dflash-chat"])).get("dflash-chat", ""), created, source, versions)


def _found(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    # Imported here: it costs more than everything else that the first frame needs of this module.
    from importlib.metadata import PackageNotFoundError, version

    for name in names:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue
