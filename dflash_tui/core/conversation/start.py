"""What a chat begins with, beside its models and settings: earlier questions, an older conversation, suggestions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.events import EngineReady

from ..sessions.prompts import PromptHistory
from ..sessions.sessions import Conversation
from ..source import SourceFactory, Wanted


@dataclass(frozen=True, slots=True)
class Models:
    """What may answer beside the model that the chat begins with."""

    make: Callable[[str, str], SourceFactory]
    """A model by its name, a folder, a server's URL or name, with another drafter where the second is not
    empty; raises ``Failure``."""
    names: Callable[[], Sequence[str]]
    """Names of models that are known: for completion."""
    first: str = ""
    """What the chat begins with, as it was named."""
    free: Callable[[], None] = lambda: None
    """Gives back what a model held that has ended."""


@dataclass(frozen=True, slots=True)
class Start:
    questions: PromptHistory = field(default_factory=lambda: PromptHistory(None))
    """Questions asked before, in this conversation and others."""
    conversation: Conversation | None = None
    """The conversation to go on with; the event queue's log writes to its file. None to begin a new one."""
    choose: bool = False
    """Whether to ask at once which conversation to resume."""
    wanted: Wanted = field(default_factory=dict)
    """The settings that the user asked for on the command line."""
    system: str | None = None
    """The system prompt that was asked for."""
    files: tuple[str, ...] = ()
    """Paths that go with the first question."""
    models: Models | None = None
    """The models that one can switch to; None where there are none."""


STARTERS = (
    "Write a quicksort in Python",
    "create a single-file HTML animation of a drone swarm",
    "What is speculative decoding?",
    "Tom has 12 apples and buys 7 more. How many does he have?",
)
"""Questions that the bundled pair answers well, for people who meet it for the first time."""
STARTERS_OF = {
    "SmolLM2-135M-Instruct": (
        "hi",
        "What is photosynthesis?",
        "Give me three tips for sleeping well",
        "What is the capital of France?",
    ),
}
"""Such questions for other targets that introduce themselves, by the last part of their names on the hub."""


def starters_of(ready: EngineReady | None) -> tuple[str, ...]:
    """Questions to suggest: some for a pair that introduces itself, since it is good at few things; none otherwise."""
    if ready is None or not ready.banner:
        return ()
    return STARTERS_OF.get(ready.target.rpartition("/")[2], STARTERS)
