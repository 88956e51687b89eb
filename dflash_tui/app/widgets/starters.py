"""Questions to begin with, for a model that is good at few things."""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from dflash_tui.core.figures.labels import ABOUT, BRIEFLY

from .passes import Reason
from .rounds.living_round import LivingRound

LEAST_ROWS, FOR_A_ROUND, AIRY, ROOMY = 22, 24, 32, 42
"""Rows of a screen that has room for DFlash's reason, for a round that lives too, for blank lines, and for a high
reason."""
TAKEN, MOST_HIGH = 28, 26
"""Rows that are not the round's, and its own at most."""


class Starter(Static):
    """One question. A click, or its key, puts it into the prompt."""

    DEFAULT_CSS = """
    Starter { height: 1; width: auto; max-width: 100%; text-wrap: nowrap; text-overflow: ellipsis; }
    Starter:hover { background: $panel; text-style: bold; }
    """

    @dataclass
    class Chosen(Message):
        question: str

    def __init__(self, question: str) -> None:
        super().__init__(f"[$primary]❯[/] {question}")
        self.question = question

    def on_click(self) -> None:
        self.post_message(self.Chosen(self.question))


class Starters(Vertical):
    """The first screen: why DFlash pays off, a round that lives, and questions to begin with; until one is asked."""

    DEFAULT_CSS = """
    Starters { display: none; height: auto; padding: 0 1; }
    Starters > .head { color: $verdict-pending; }
    Starters.-airy > Reason { margin: 1 0 0 0; }
    Starters.-roomy > Reason { height: 4; }
    Starters.-airy > LivingRound { margin: 0 0 1 0; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.questions: tuple[str, ...] = ()

    def offer(self, questions: tuple[str, ...]) -> None:
        """Show these questions; nothing when there are none."""
        if questions and questions != self.questions:
            self.questions = questions
            self.refresh(recompose=True)
            self.call_after_refresh(self.share_room)
        self.display = bool(questions)

    def compose(self) -> ComposeResult:
        if self.questions:
            yield Static(ABOUT, classes="about")
            yield Reason()
            yield LivingRound()
        yield Static("Enter asks the first; → or a click puts one in the box.", classes="head")
        yield from map(Starter, self.questions)

    def on_resize(self) -> None:
        self.share_room()

    def share_room(self) -> None:
        """The round takes what the questions and the introduction above leave it."""
        rows = self.screen.size.height
        airy, roomy = rows >= AIRY, rows >= ROOMY
        self.set_class(airy, "-airy")
        self.set_class(roomy, "-roomy")
        for about in self.query(".about").results(Static):
            about.update(ABOUT if airy else BRIEFLY)
        for reason in self.query(Reason):
            reason.display = rows >= LEAST_ROWS
        for living in self.query(LivingRound):
            living.display = rows >= FOR_A_ROUND
            living.styles.height = max(2, min(rows - TAKEN - 2 * roomy, MOST_HIGH))

    def following(self, text: str) -> str | None:
        """The question after ``text``, the first one for an empty prompt; None for a text of the user's own."""
        if not text:
            return self.questions[0]
        if text not in self.questions:
            return None
        return self.questions[(self.questions.index(text) + 1) % len(self.questions)]
