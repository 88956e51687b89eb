"""What decoding is told and what it yields, and the seam between the two ways of running its rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .commands import GenerationSettings
from .events import FinishReason, Verdict
from .width import Choice

if TYPE_CHECKING:
    from .decoder import Turn

Poll = Callable[[], GenerationSettings | None]
"""Asked before every round and every piece of the prompt: the settings in force, or None to stop."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids to continue."""

    ids: tuple[int, ...]
    stable_length: int
    """The first so many ids will stand in the next turn's prompt as well; the generation prompt may not."""


@dataclass(frozen=True, slots=True)
class PrefillStarted:
    num_reused: int
    """How many of the prompt's tokens the caches still hold."""


@dataclass(frozen=True, slots=True)
class Prefilled:
    milliseconds: float


class Outcome(NamedTuple):
    """What a round found out; times in milliseconds."""

    emitted: tuple[int, ...]
    probabilities: tuple[float, ...]
    """What the target gave each emitted token."""
    verify_width: int
    total_ms: float
    draft_ids: tuple[int, ...] = ()
    draft_probabilities: tuple[float, ...] = ()
    """What the drafter gave each draft."""
    target_probabilities: tuple[float, ...] = ()
    """What the target gave each draft, up to the first that was not accepted."""
    num_accepted: int = 0
    draft_ms: float = 0.0
    verify_ms: float = 0.0
    choice: Choice | None = None
    """Why so much of the draft was verified, where a policy chose."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did: its ``Outcome``, and where that left the turn."""

    draft_ids: tuple[int, ...]
    draft_probabilities: tuple[float, ...]
    """What the drafter gave each draft."""
    target_probabilities: tuple[float, ...]
    """What the target gave each draft, up to the first that was not accepted."""
    num_accepted: int
    emitted: tuple[int, ...]
    probabilities: tuple[float, ...]
    """What the target gave each emitted token."""
    verify_width: int
    draft_ms: float
    verify_ms: float
    total_ms: float
    choice: Choice | None
    context_length: int
    settings: GenerationSettings
    finish: FinishReason | None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One per emitted token: the accepted drafts, then what the target added of its own."""
        verified = self.verify_width - 1
        own: Verdict = "plain" if verified < 1 else "corrected" if self.num_accepted < verified else "bonus"
        return tuple("accepted" if index < self.num_accepted else own for index in range(len(self.emitted)))


class Rounds(Protocol):
    """How the rounds of a turn are run, once its prompt is in the caches and its first token is sampled."""

    def run(self, turn: Turn, poll: Poll) -> Iterator[Round]:
        """Yields rounds until one has a ``finish``, or ``poll``, asked before each, says stop."""
