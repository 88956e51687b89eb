"""What a replay may say beside events, so that it can go anywhere at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from engine.events import Event, Step

if TYPE_CHECKING:
    from ..conversation.spans import Spans
    from .history import StepHistory


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps of one turn that follow each other. It means what they mean one by one, and costs much less: nobody has to
    decode them."""

    turn: int
    history: StepHistory
    """Holds them, among others."""
    first: int
    """The first step of the turn in ``history``."""
    start: int
    stop: int
    """They are those from ``start`` to before ``stop``."""
    spans: Spans
    """What they add to the transcript."""

    def steps(self) -> Iterator[Step]:
        return islice(self.history.steps(self.start), self.stop - self.start)


@dataclass(frozen=True, slots=True)
class Rewind:
    """Forget everything so far: it is told again from its beginning."""


Happening = Event | Stretch | Rewind
"""What comes from a source: events, and from a replay also jumps."""
