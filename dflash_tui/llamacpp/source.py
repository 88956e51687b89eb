"""A GGUF as a source of events: finds or fetches the files, starts llama.cpp with them, and attaches to it."""

from __future__ import annotations

import logging
import secrets
from collections import deque
from dataclasses import replace
from pathlib import Path
from threading import Event as Flag
from threading import Lock, Thread
from time import monotonic

from dflash_tui.attach.source import ServerSource
from dflash_tui.core.advice import as_command
from dflash_tui.core.settings.servers import ServerAddress
from dflash_tui.core.source import Capabilities, Emit, Happening
from engine.commands import NO_DRAFTER, Ask, Close, Command, EngineOptions, Stop
from engine.errors import EngineFailure, failure_of
from engine.events import EngineError, EngineReady, LoadProgress, Notice, TurnFinished
from engine.files.gguf_header import missing_file
from engine.files.pointers import refuse_pointer
from engine.hub.fetching import FetchCancelled, Fetching
from engine.hub.gguf import find_gguf, is_gguf, named_file

from .machine import Machine
from .plan import LlamaPlan, is_companion, make_plan, memory_needed
from .process import LlamaProcess

log = logging.getLogger(__name__)

TEMPLATE = "tokenizer.chat_template"
WITHOUT_TEMPLATE = (
    "has no chat template: it is a base model, which goes on with texts and was not made to answer. llama.cpp marks"
    " questions and answers as other models have them, so it may ramble, show the marks, and find no end."
)
INSTEAD = "For a chat, load the model's instruct version: it or Instruct stands in its name."
LAST_WORDS = 0.5
"""Seconds to wait, after a stream broke, for the news that the child has died."""
JOIN_SECONDS = 5.0


class LlamaSource:
    """Runs llama.cpp: an implementation of :class:`dflash_tui.core.source.Source`. A child that dies is started again
    by the next question."""

    recording = None

    def __init__(self, options: EngineOptions, emit: Emit) -> None:
        self._options, self._emit = options, emit
        self._lock = Lock()
        self._waiting: deque[Ask] = deque()
        """Questions that were asked before the server was there."""
        self._stopped: deque[Ask] = deque()
        """Questions among those that were stopped before the server was there."""
        self._server: ServerSource | None = None
        self._process: LlamaProcess | None = None
        self._plan: LlamaPlan | None = None
        self._closing, self._told_ready = False, False
        self._news = Flag()
        self._thread = Thread(target=self._main, name="llama.cpp", daemon=True)

    @property
    def capabilities(self) -> Capabilities:
        server = self._server
        return Capabilities() if server is None else replace(server.capabilities, local=True, models={})

    def start(self) -> None:
        self._thread.start()

    def send(self, command: Command) -> None:
        with self._lock:
            alive = self._server is not None and self._process is not None and not self._process.ended.is_set()
            if isinstance(command, Close):
                self._closing = True
                self._news.set()
            elif isinstance(command, Ask) and not alive:
                self._waiting.append(command)
                self._news.set()
                return
            elif isinstance(command, Stop) and self._waiting:
                stopped = [ask for ask in self._waiting if command.turn in (None, ask.turn)]
                self._stopped.extend(stopped)
                self._waiting = deque(ask for ask in self._waiting if ask not in stopped)
                if stopped:
                    return
            if self._server is not None:
                self._server.send(command)

    def join(self, timeout: float | None = None) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def _main(self) -> None:
        try:
            self._run()
        except FetchCancelled:
            pass
        except Exception as error:
            if not self._closing:
                self._tell_failure(error)
        finally:
            self._end()

    def _run(self) -> None:
        self._begin()
        while not self._closing:
            self._news.wait()
            self._news.clear()
            with self._lock:
                asked = bool(self._waiting)
            if asked and not self._closing:
                self._begin_again()

    def _begin(self) -> None:
        """Starts llama.cpp; returns when it has been attached to. Raises an ``EngineFailure``."""
        started = monotonic()
        for name in (self._options.target, self._options.drafter):
            # Before anybody installs llama.cpp for a file that isn't there.
            path = named_file(name) if name is not None and is_gguf(name) else None
            if path is not None and not path.exists():
                refuse_pointer(path)
                raise missing_file(path)
        self._process = process = LlamaProcess()
        if self._plan is None:
            self._plan = self._make_plan(process.machine())
        else:
            process.machine()
        plan = self._plan
        for remark in plan.remarks:
            self._emit(LoadProgress(remark, 0, 0, remark=True))
        key = secrets.token_urlsafe(24)
        url = process.serve(plan.orders(key), lambda: self._loading(process, plan))
        if self._closing:
            raise FetchCancelled
        address = ServerAddress(url, dialect="llama.cpp", key=key, direct=True)
        self._tell_stopped()
        with self._lock:
            self._server = ServerSource(address, lambda event: self.hear(event, plan, monotonic() - started))
            self._server.start()
            while self._waiting:
                self._server.send(self._waiting.popleft())

    def _begin_again(self) -> None:
        """Starts a child that has died again, for a question that waits. If that fails, this question alone fails."""
        self._end()
        self._emit(LoadProgress("starting llama.cpp again", 0, 0))
        try:
            self._begin()
        except Exception as error:
            if self._closing:
                return
            with self._lock:
                asked, self._waiting = self._waiting, deque()
            for ask in asked:
                self._tell_failure(error, ask.turn)
                self._emit(TurnFinished(ask.turn, "error", ""))

    def _make_plan(self, machine: Machine) -> LlamaPlan:
        options = self._options
        fetching = Fetching(options.offline, progress=self._fetching, cancelled=lambda: self._closing)
        drafts = options.drafter != NO_DRAFTER
        target, remarks = find_gguf(str(options.target), machine.memory, is_companion, fetching)
        drafter: Path | None = None
        if drafts and options.drafter is not None:
            drafter, more = find_gguf(options.drafter, machine.memory, lambda _name: False, fetching)
            remarks += more
        for remark in remarks:
            self._emit(LoadProgress(remark, 0, 0, remark=True))
        return make_plan(target, drafter, machine, options.max_context, options.device, drafts=drafts)

    def _fetching(self, done: int, total: int, rate: float) -> None:
        self._tell_stopped()
        self._emit(LoadProgress("downloading", done, total, "bytes", rate))

    def _tell_stopped(self) -> None:
        with self._lock:
            stopped, self._stopped = self._stopped, deque()
        for ask in stopped:
            self._emit(TurnFinished(ask.turn, "stopped", ""))

    def _loading(self, process: LlamaProcess, plan: LlamaPlan) -> None:
        if self._closing:
            raise FetchCancelled
        self._tell_stopped()
        total = memory_needed((plan.model, plan.drafter), plan.context)
        held = min(process.resident(), total)
        name = f"loading {plan.model.path.name}"
        self._emit(LoadProgress(name, held, total, "bytes") if held else LoadProgress(name, 0, 0))

    def hear(self, event: Happening, plan: LlamaPlan, seconds: float) -> None:
        """Passes on an event of the server, with what only this side knows of it. Runs on the thread that asks the
        server."""
        match event:
            case EngineReady():
                if self._told_ready:
                    return
                self._told_ready = True
                self._emit(self._ready(event, plan, seconds))
                if not plan.model.keys.get(TEMPLATE):
                    self._emit(Notice(f"{plan.model.path.name} {WITHOUT_TEMPLATE}", INSTEAD))
                return
            case Notice() if not plan.drafting.startswith("draft"):
                return  # nothing drafts, or looking up found nothing: as planned
            case EngineError() if self._process is not None and self._process.ended.wait(LAST_WORDS):
                failure = failure_of(self._process.reason())
                event = replace(self._as_event(failure, event.turn), fatal=False)
        self._emit(event)

    def _ready(self, event: EngineReady, plan: LlamaPlan, seconds: float) -> EngineReady:
        model = plan.model
        return replace(
            event,
            target=model.name,
            drafter=plan.drafter_name,
            device=", ".join(plan.gpus) or "cpu",
            dtype=model.quantisation or event.dtype,
            max_block_size=plan.draft_length + 1,
            max_context=plan.context,
            load_seconds=round(seconds, 3),
            banner=f"llama.cpp runs as: {plan.line()}",
            server="",
            dialect=f"llama.cpp (xllamacpp {plan.version})",
        )

    def _tell_failure(self, error: Exception, turn: int | None = None) -> None:
        if not isinstance(error, EngineFailure):
            log.exception("unexpected error while running llama.cpp")
        self._emit(self._as_event(failure_of(error), turn))

    def _as_event(self, failure: EngineFailure, turn: int | None) -> EngineError:
        return EngineError(failure.kind, *failure.in_words(as_command), fatal=turn is None, turn=turn)

    def _end(self) -> None:
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.send(Close())
            server.join(JOIN_SECONDS)
        if self._process is not None:
            self._process.end()
