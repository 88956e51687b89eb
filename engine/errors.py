"""Failures that people meet: what happened, and what to do next. The next step is *advice*, which each front end words
in its own way (:func:`worded`) and maps to an exit code. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .events import ErrorKind


@dataclass(frozen=True, slots=True)
class Option:
    """Advice to set a field of ``EngineOptions`` to a value that would help; without a value, to set the field at
    all."""

    name: str
    value: object = None

    def __str__(self) -> str:
        return f"the option {self.name}" if self.value is None else f"{self.name}={self.value!r}"


@dataclass(frozen=True, slots=True)
class Load:
    """Advice to load another pair: a folder or a name on the hub; None is the bundled pair."""

    target: str | None = None

    def __str__(self) -> str:
        return "engine.load()" if self.target is None else f'engine.load("{self.target}")'


@dataclass(frozen=True, slots=True)
class Fetch:
    """Advice to download what is missing of a model."""

    name: str

    def __str__(self) -> str:
        return f"fetch {self.name}"


@dataclass(frozen=True, slots=True)
class Attach:
    """Advice to ask a server."""

    url: str

    def __str__(self) -> str:
        return f"ask {self.url}"


@dataclass(frozen=True, slots=True)
class Reinstall:
    """Advice to install the program again, since a part of it is missing."""

    def __str__(self) -> str:
        return "install the package again"


Advice = Option | Load | Fetch | Attach | Reinstall

Text = str | tuple[str | Advice, ...]
"""Words for people, with advice where a front end has its own words."""

Words = Callable[[Advice], str]
"""How a front end says a piece of advice; ``str`` says it to whoever writes Python."""


def worded(text: Text, words: Words = str) -> str:
    if isinstance(text, str):
        return text
    return "".join(piece if isinstance(piece, str) else words(piece) for piece in text)


class EngineFailure(Exception):
    """A failure with a next step. ``str()`` is what happened; it and ``hint`` are in the words of the library."""

    kind: ErrorKind = "generation"

    def __init__(self, message: Text, hint: Text = "") -> None:
        super().__init__(worded(message))
        self._message = message
        self._hint = hint

    @property
    def hint(self) -> str:
        """What to do next."""
        return worded(self._hint)

    @property
    def advice(self) -> tuple[Advice, ...]:
        """The options and models that ``hint`` names, for programs."""
        return () if isinstance(self._hint, str) else tuple(piece for piece in self._hint if not isinstance(piece, str))

    def in_words(self, words: Words) -> tuple[str, str]:
        """What happened and what to do next, as a front end says it."""
        return worded(self._message, words), worded(self._hint, words)


class UsageFailure(EngineFailure):
    """The request can't be served as asked: an empty prompt, a prompt longer than the context."""

    kind = "usage"


class WeightsFailure(EngineFailure):
    """Weights are missing, truncated, or not what their config says."""

    kind = "weights"


class DeviceFailure(EngineFailure):
    """No usable GPU, or not enough memory."""

    kind = "device"


_NO_MEMORY = re.compile("(?i)can(?:'t|not) allocate memory|not enough memory|map segment from shared object$")
"""Matches how libraries report a lack of memory without raising ``MemoryError``: PyTorch, the system and its loader."""


def failure_of(error: Exception) -> EngineFailure:
    """The failure to show for any exception: the exception itself if it was meant for people."""
    if isinstance(error, EngineFailure):
        return error
    if type(error).__name__ == "OutOfMemoryError":
        return DeviceFailure("The GPU ran out of memory.", "Close other programs on it, or ask with less context.")
    if isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
        return DeviceFailure(
            "The memory of this machine, or what this program may have of it, ran out.",
            "Close other programs, or allow more (ulimit -v, a container's limit), or ask with less context.",
        )
    if isinstance(error, ImportError):
        what = f"A package that the engine needs can't be imported: {error}."
        return EngineFailure(what, (Reinstall(), ": make chat."))
    return EngineFailure(
        f"The engine failed: {type(error).__name__}: {error}",
        "Ask again; if it happens again, please report it with this message.",
    )
