"""Where events come from, and the seam for another source: the engine of this process, a recorded run
(``dflash_tui/sources.py`` makes both), or a server. A front end asks what a :class:`Source` *can*, never what it *is*,
sends commands, and hears events through the factory's callback, on the source's thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Literal, Protocol

from engine.commands import Ask, Command
from engine.events import Event, Step

from .settings.decoding import SETTINGS, SettingName

if TYPE_CHECKING:
    from engine.rounds.store import RoundStore

    from .text.spans import Spans

Feature = SettingName | Literal["ask", "system", "drafts", "draft_probabilities", "verdicts"]
"""What a source may lack: questions, a setting, what was drafted, how sure the drafter was, which tokens were."""
ASKING: tuple[Feature, ...] = ("ask", "system", *(setting.name for setting in SETTINGS))
"""What only whoever asks can use: a source that is looked at lacks all of it."""


Count = Callable[[Ask], int | None]
"""Tokens of the prompt that a question makes; None where nobody can tell, or not yet. May be asked from any thread."""


def _not_known(_ask: Ask) -> int | None:
    return None


def described(banner: str) -> str:
    """What a model says that it is, without what it could when it said so."""
    return banner.partition(". ")[0].rstrip(".")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a source can do. They may change until its ``EngineReady``: a server has to be asked."""

    refused: Mapping[Feature, str] = field(default_factory=dict)
    """The features that it lacks, each with the reason in words for the user who tries it."""
    local: bool = True
    """Whether it computes on this machine, so that this machine's card and processor are worth watching."""
    placeholder: str = ""
    """What the empty prompt says, when something other than usual."""
    leaving: str = ""
    """What ends with the screen besides an answer: said to whoever leaves, who then has to say so again."""
    count: Count = _not_known
    models: Mapping[str, SourceFactory] = field(default_factory=dict)
    """What a server has, by the names that it knows: any of it can answer in this one's place."""

    def can(self, feature: Feature) -> bool:
        return feature not in self.refused

    def lacks(self, wanted: Wanted) -> dict[str, str]:
        """The flags that can't be followed, and why."""
        return {flag: self.refused[feature] for feature, flag in wanted.items() if feature in self.refused}


Wanted = Mapping[Feature, str]
"""Features that the user asked for, and by which flags: what the source lacks of them has to be told."""


class PlayedRecord(Protocol):
    """What a source that plays a record offers beside: any place of it can be gone to, at any pace."""

    name: str
    pace: float
    """How fast it plays, as a multiple of the recorded pace."""
    played: int
    """Rounds handed out so far."""
    playing: bool

    @property
    def length(self) -> int | None:
        """Rounds in all; None until it has been read."""

    @property
    def origin(self) -> str:
        """A sentence that says when and where the recording was made; empty when that is not known."""

    @property
    def ended(self) -> bool:
        """Whether everything was handed out."""

    def set_playing(self, playing: bool) -> None: ...

    def set_pace(self, pace: float) -> None: ...

    def seek(self, played: int) -> None:
        """Go to where ``played`` rounds are out. What that takes has been handed out when this returns."""

    def seek_round(self, turn: int, index: int) -> None: ...

    def steps_of_turn(self, turn: int) -> range: ...


class Source(Protocol):
    """See :class:`engine.service.EngineService` for the commands that it takes and the events it answers with."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def recording(self) -> PlayedRecord | None:
        """The record that is played; None for what happens now."""

    def start(self) -> None: ...

    def send(self, command: Command) -> None: ...

    def join(self, timeout: float | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class StepBatch:
    """Steps of one turn in a row, from a recording: as if one by one, without decoding them."""

    turn: int
    rounds: RoundStore
    """Holds the steps, among others."""
    first: int
    """The first step of the turn in ``rounds``."""
    start: int
    stop: int
    """The steps are those of ``rounds`` from ``start`` to before ``stop``."""
    spans: Spans
    """What they add to the transcript."""

    def steps(self) -> Iterator[Step]:
        return islice(self.rounds.steps(self.start), self.stop - self.start)


@dataclass(frozen=True, slots=True)
class Rewind:
    """Forget everything so far: it is told again from its beginning. Only a recording says it."""


Happening = Event | StepBatch | Rewind
"""What a source says: events, and jumps of a recording."""
Emit = Callable[[Happening], None]
SourceFactory = Callable[[Emit], Source]


def events_only(take: Callable[[Event], None]) -> Emit:
    """A callback for a source that hands on events to ``take`` and leaves out jumps, for whoever never seeks."""

    def emit(happening: Happening) -> None:
        if not isinstance(happening, StepBatch | Rewind):
            take(happening)

    return emit
