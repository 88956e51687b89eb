"""Questions to begin with, for a model that is good at few things."""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static


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
    """Shown until the first question is asked."""

    DEFAULT_CSS = """
    Starters { display: none; height: auto; padding: 0 1; }
    Starters > .head { color: $verdict-pending; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.questions: tuple[str, ...] = ()

    def offer(self, questions: tuple[str, ...]) -> None:
        """Show these; none: nothing."""
        if questions and questions != self.questions:
            self.questions = questions
            self.refresh(recompose=True)
        self.display = bool(questions)

    def compose(self) -> ComposeResult:
        yield Static("Try one of these: → or a click brings it into the prompt.", classes="head")
        yield from map(Starter, self.questions)

    def following(self, text: str) -> str | None:
        """The question after ``text``, the first one for an empty prompt; None for a text of the user's own."""
        if not text:
            return self.questions[0]
        if text not in self.questions:
            return None
        return self.questions[(self.questions.index(text) + 1) % len(self.questions)]
