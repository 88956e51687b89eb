"""A pair in a program of your own: ``engine.load`` and what it returns. No thread, no queue.

Importing this module imports no library; :func:`load` imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, TypedDict, Unpack

from .commands import Ask, AttentionBackend, EngineOptions, GenerationSettings, Message, Settings, WeightChoice
from .errors import UsageFailure, failure_of
from .events import EngineReady, Event, LoadProgress, Step
from .files.working_folder import require_folder

if TYPE_CHECKING:
    from .runner import Runner


class Options(TypedDict, total=False):
    """Keywords of :func:`load`: the fields of ``EngineOptions`` but for ``target``; their meaning stands there."""

    drafter: str | None
    device: str
    max_context: int | None
    offline: bool
    attention_backend: AttentionBackend
    noise_embed_scale: float | None
    weights: WeightChoice
    time_rounds: bool


Prompt = str | Sequence[Message]
"""A question, or a conversation that ends with one."""


def load(
    target: str | None = None, progress: Callable[[LoadProgress], None] | None = None, **options: Unpack[Options]
) -> Pair:
    """Loads a target and its drafter, downloading what is missing.

    ``target`` is a folder or a model's name on the hub; None is the bundled pair. ``progress`` is told of every step.
    Raises ``EngineFailure``: ``WeightsFailure`` for a pair that isn't there or is damaged, ``DeviceFailure`` where it
    doesn't fit, ``UsageFailure`` for options that can't be had, and in a working folder that is gone.
    """
    require_folder()
    from .service import load_runner

    ready: list[EngineReady] = []

    def emit(event: Event) -> None:
        if isinstance(event, EngineReady):
            ready.append(event)
        elif isinstance(event, LoadProgress) and progress is not None:
            progress(event)

    try:
        runner = load_runner(EngineOptions(target, **options), emit)
    except Exception as error:
        _raise(error)
    assert runner is not None, "nothing cancels this"
    return Pair(runner, ready[-1])


class Pair:
    """A loaded target, perhaps with a drafter, that answers one question at a time. Not for several threads at once.

    ``with`` gives its memory back at the end; :meth:`close` does so by hand.
    """

    def __init__(self, runner: Runner, ready: EngineReady) -> None:
        self.ready = ready
        """What was loaded, and where."""
        self._runner: Runner | None = runner
        self._running: Generator[Event] | None = None
        self._turns = 0

    def generate(self, prompt: Prompt, **settings: Unpack[Settings]) -> Generator[Event]:
        """The events of one answer, as they happen: ``TurnStarted``, ``PrefillDone``, a ``Step`` for every round,
        ``TurnFinished``.

        What the conversation shares with the one before is not computed again. Closing the generator, or asking the
        next question, ends the answer after the round in flight. Raises ``ValueError`` for settings out of range;
        the generator raises ``EngineFailure``, ``UsageFailure`` for no message at all, or a prompt that doesn't fit.
        """
        messages = (Message("user", prompt),) if isinstance(prompt, str) else tuple(prompt)
        self._stop()
        self._turns += 1
        self._running = self._turn(Ask(self._turns, messages, GenerationSettings(**settings)))
        return self._running

    def answer(self, prompt: Prompt, **settings: Unpack[Settings]) -> str:
        """The text of one answer, without the model's thinking. Settings and errors are those of :meth:`generate`."""
        return "".join(text(event) for event in self.generate(prompt, **settings))

    def close(self) -> None:
        """Frees the models. Nothing can be asked any more; a second call does nothing."""
        from .service import free_memory

        self._stop()
        self._runner = None
        free_memory()

    def __enter__(self) -> Pair:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _stop(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None

    def _turn(self, ask: Ask) -> Generator[Event]:
        if self._runner is None:
            raise UsageFailure("This pair was closed.", "Load it again.")
        try:
            yield from self._runner.answer(ask, list)
        except Exception as error:
            if not isinstance(error, UsageFailure):  # a question that couldn't be asked has touched nothing
                self._runner.forget()
            _raise(error)


def text(event: Event) -> str:
    """What an event adds to the answer: a ``Step``'s tokens; nothing for thoughts, markup and other events."""
    return event.text() if isinstance(event, Step) else ""


def _raise(error: Exception) -> NoReturn:
    """Raises the error as a failure with a next step, chained to the error where it had none."""
    failure = failure_of(error)
    if failure is error:
        raise error
    raise failure from error
