"""The engine thread: commands in, events out. Owns the models; failures become ``EngineError``."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from .commands import Adjust, Ask, Close, Command, EngineOptions, Stop
from .errors import Option, UsageFailure, Words, failure_of, worded
from .events import EngineError, EngineReady, Event, Notice, Step, TurnFinished
from .gc_pause import gc_paused
from .threads import NativeThread

if TYPE_CHECKING:
    from .runner import Runner

WITHOUT_TORCH = ("jinja2", "triton.language", "numpy", "tokenizers")
"""Libraries that the engine imports anyway, and that need no torch. What is Python comes first: the others wait for the
linker."""

log = logging.getLogger(__name__)


def load_runner(
    options: EngineOptions, emit: Callable[[Event], None], cancelled: Callable[[], bool] = lambda: False
) -> Runner | None:
    """Imports torch and loads a pair on the calling thread, telling of it as it goes; None when cancelled meanwhile."""
    from .loading.cuda_context import link_torch, wake_gpu
    from .loading.precompile import precompiler_process

    # All of it runs beside the imports, of which those without torch come first.
    if options.device != "cpu":
        wake_gpu()
        link_torch()
    with precompiler_process(options) as compiler:
        with gc_paused():
            for name in WITHOUT_TORCH:
                with suppress(ImportError):  # whoever needs it will say so
                    import_module(name)
            from .runner import Runner

        return Runner.load(options, emit, cancelled, compiler)


def free_memory() -> None:
    """Frees the memory of a model whose service has ended and was joined."""
    gc.unfreeze()
    gc.collect()
    if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


class EngineService:
    """A loaded pair behind a command queue. ``emit`` gets every event in order on the engine's thread and should return
    at once; ``words`` says how the front end names options and models in an ``EngineError``."""

    def __init__(self, options: EngineOptions, emit: Callable[[Event], None], words: Words = str) -> None:
        self._options = options
        self._emit = emit
        self._words = words
        self._commands: SimpleQueue[Command] = SimpleQueue()
        self._waiting: list[Ask] = []
        self._closing = False
        self._runner: Runner | None = None
        self._thread = NativeThread(self._main, "engine")

    def start(self) -> None:
        """Begins to load; ``EngineReady`` or a fatal ``EngineError`` follows."""
        self._thread.start()

    def send(self, command: Command) -> None:
        """Sends a command from any thread. Never blocks. Questions are answered one after the other."""
        self._commands.put(command)

    def join(self, timeout: float | None = None) -> None:
        """Waits for the thread to end, after ``Close`` or a fatal error."""
        self._thread.join(timeout)

    def count(self, ask: Ask) -> int | None:
        """Tokens of the prompt that a question makes, from any thread and while another is answered; None before
        ``EngineReady``, and for what is no prompt."""
        try:
            return None if self._runner is None else self._runner.tokenizer.count(ask)
        except Exception:  # the template takes no such conversation; asking it will say why
            return None

    def _main(self) -> None:
        ready: list[Event] = []

        def tell(event: Event) -> None:
            """Emits an event, but keeps ``EngineReady`` until the runner is set, since :meth:`count` is called from
            then on."""
            ready.append(event) if isinstance(event, EngineReady) else self._emit(event)

        try:
            runner = load_runner(self._options, tell, self._closed_while_loading)
        except Exception as error:
            self._emit(self._as_event(error, fatal=True))
            return
        if runner is None:
            return
        self._runner = runner
        for event in ready:
            self._emit(event)
        if runner.decoder.drafter is None and self._options.drafter is None:
            advice = worded((Option("drafter"), " names one."), self._words)
            words = "No drafter is known for this target: only what stands in the text can be guessed."
            self._emit(Notice(words, advice))
        if not runner.decoder.target.config.stop_token_ids:
            words = "No token is known that ends this model's answers: they go on until the context is full."
            advice = "eos_token_id in its generation_config.json names one, or eos_token in its tokenizer_config.json."
            self._emit(Notice(words, advice))
        while not self._closing:
            self._handle(runner, self._waiting.pop(0) if self._waiting else self._next(runner))

    def _next(self, runner: Runner) -> Command:
        """The next command. Until one comes, the runner does what can wait, in small pieces."""
        while self._commands.empty() and (done := next(runner.while_idle, runner)) is not runner:
            if isinstance(done, Notice):
                self._emit(done)
        return self._commands.get()

    def _handle(self, runner: Runner, command: Command) -> None:
        if isinstance(command, Close):
            self._closing = True
        elif isinstance(command, Ask):
            self._answer(runner, command)
        # Stop and Adjust concern a turn that runs or waits; none does here.

    def _answer(self, runner: Runner, ask: Ask) -> None:
        texts: list[str] = []
        try:
            for event in runner.answer(ask, lambda: self._drain(ask.turn)):
                if isinstance(event, Step):
                    texts.append(event.text())
                self._emit(event)
        except Exception as error:
            if not isinstance(error, UsageFailure):  # a question that couldn't be asked has touched nothing
                runner.forget()
            self._emit(self._as_event(error, turn=ask.turn))
            self._emit(TurnFinished(ask.turn, "error", "".join(texts)))

    def _drain(self, turn: int | None = None) -> list[Adjust] | None:
        """The commands that arrived for the running ``turn`` since the last round: adjustments, or None to stop it.
        None runs while models load: then a stop that names no turn withdraws all that wait."""
        changes: list[Adjust] = []
        while True:
            try:
                command = self._commands.get_nowait()
            except Empty:
                return changes
            match command:
                case Close():
                    self._closing = True
                    return None
                case Stop() if command.turn in (None, turn):
                    return None
                case Stop():
                    self._withdraw(ask for ask in self._waiting if ask.turn == command.turn)
                case Adjust():
                    changes += [command] if command.turn in (None, turn) else []
                case Ask():
                    self._waiting.append(command)

    def _withdraw(self, asked: Iterable[Ask]) -> None:
        """Ends questions whose turns have not begun."""
        for ask in tuple(asked):
            self._waiting.remove(ask)
            self._emit(TurnFinished(ask.turn, "stopped", ""))

    def _closed_while_loading(self) -> bool:
        """Looks at the commands between two phases of loading: questions wait, and a stop withdraws them. True once it
        is closed."""
        if self._drain() is None and not self._closing:
            self._withdraw(self._waiting)
        return self._closing

    def _as_event(self, error: Exception, *, fatal: bool = False, turn: int | None = None) -> EngineError:
        failure = failure_of(error)
        if failure is not error:
            log.exception("unexpected error in the engine", exc_info=error)
        return EngineError(failure.kind, *failure.in_words(self._words), fatal, turn)
