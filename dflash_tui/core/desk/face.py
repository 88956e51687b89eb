"""What a desk asks of whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from ..conversation.chat import Queued
    from ..conversation.turn import Turn
    from ..race.race import Race
    from ..text.fences import CodeBlock

Result = TypeVar("Result")


MessagePlace = Literal["notice", "end", "waiting"]
"""Where a screen puts a sentence: in a notice that passes; behind what was said; above a question that waits for a
model."""

Change = Literal[
    "settings",
    "queue",
    "asked",
    "withdrawn",
    "path",
    "place",
    "named",
    "new",
    "resumed",
    "loading",
    "source",
]
"""What is different now. ``settings``: they, or the system prompt; ``queue``: the questions that wait; ``asked``,
``withdrawn``: a question was sent, or taken back unsent; ``path``: the way through the tree; ``place``: the question to
look at; ``named``: a branch's name; ``new``, ``resumed``: another conversation,
empty or an older one; ``loading``, ``source``: a model is let go, another was made."""


@dataclass(frozen=True, slots=True)
class AskOption:
    """One answer to a question of the program's."""

    key: str
    """The key that chooses it on a screen."""
    value: str
    """What is typed in lines, and what the desk hears."""
    words: str


@dataclass(frozen=True, slots=True)
class Question:
    """Something that only the user can decide."""

    title: str
    text: str
    ways: tuple[AskOption, ...]
    """The first is the one that does no harm."""
    otherwise: str
    """A sentence that says how things stand when none of them is chosen."""
    detail: str = ""
    wanted: bool = True
    """Whether the user has asked for it. Otherwise a key may be meant for the prompt."""

    @property
    def is_consent(self) -> bool:
        return {way.value for way in self.ways} == {"yes", "no"}


class View(Protocol):
    """Something to look at that a face may show in its own way."""

    def lines(self) -> Iterable[str]:
        """The view in words, for a face without pictures. Raises ``SlashError`` where there is nothing to show."""


class Face(Protocol):
    """A screen, or lines. Every method is called on the face's own thread, and returns at once or when it is done:
    what a face hands back it hands to ``then``."""

    def say(self, text: str, where: MessagePlace = "notice", *, grave: bool = False) -> None:
        """Say a sentence of the program's own. ``grave``: something that was wanted could not be done."""

    def saved(self, paths: Sequence[Path], remark: str = "", offer: str | None = None) -> None:
        """Say which files were written. ``offer``: a follow-up command to mention, or ""; None for a message that a
        face whose notices pass need not keep."""

    def ask(self, question: Question, then: Callable[[str | None], None]) -> None:
        """Have the user choose; ``then`` gets the way's value, or None. ``SlashError`` where nobody can be asked."""

    def show(self, view: View) -> None:
        """Show a view: as pictures, or as its lines."""

    def changed(self, change: Change, number: int = 0) -> None:
        """Show the chat as it is now. ``number``: of the question that the change is about."""

    def give_back(self, questions: Sequence[Queued]) -> None:
        """Say that these questions were not asked, and keep their words and pastes for the user."""

    def reword(self, exchange: Turn) -> None:
        """Let the user write a question anew: while that goes on the desk is ``editing`` it, or it is asked at once."""

    def copy(self, what: str, block: CodeBlock) -> None:
        """Put a code block, which a sentence calls ``what``, into the clipboard. ``SlashError`` where there is none."""

    def wait(
        self, work: Callable[[], Result], then: Callable[[Result], None], stop: Callable[[], object] | None = None
    ) -> None:
        """Do what takes its time, on another thread where the face has something else to do; then call ``then`` with
        what it returned. ``stop`` ends it early, when the user wants that."""

    def race(self, create: Callable[[], Race]) -> None:
        """Run a race, beside the conversation, and show what comes of it. ``create`` makes one that has not begun."""
