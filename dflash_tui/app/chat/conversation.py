"""The conversation on the screen: its transcript or its answers as Markdown, and what stands there before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Container

from dflash_tui.core.conversation.chat import Chat, Exchange
from dflash_tui.core.conversation.folds import below_answer
from dflash_tui.core.conversation.transcript import marks, question_spans, retell
from dflash_tui.core.conversation.tree import Part
from dflash_tui.core.text.spans import Span, Spans
from engine.events import EngineError, LoadProgress

from ..keymap import Said
from ..widgets.loading import LoadPanel
from ..widgets.rendered import RenderedView
from ..widgets.starters import Starters
from ..widgets.token_log import TokenLog


class Told(NamedTuple):
    """A question in the transcript."""

    exchange: Exchange
    start: int
    """Its first character's place."""


class ConversationView(Container):
    """Keeps the transcript in step with the path of a chat."""

    def __init__(self, chat: Chat, *, id: str) -> None:
        super().__init__(id=id)
        self._chat = chat
        self.said: Said = str
        """Sentences with the keys that the user has."""
        self._told: list[Told] = []
        self._untold: int | None = None
        """From which question on a program has ended that is not shown yet."""

    def compose(self) -> ComposeResult:
        yield LoadPanel(id="load")
        yield TokenLog(id="transcript")
        yield RenderedView(id="rendered")
        yield Starters(id="starters")

    @property
    def transcript(self) -> TokenLog:
        return self.query_one(TokenLog)

    # Loading

    def show_loading(self, phases: list[LoadProgress], beginning: str) -> None:
        """``beginning``: what happens before the first phase."""
        panel = self.query_one(LoadPanel)
        panel.remove_class("-error")
        panel.show_progress(phases, beginning)
        panel.display = True

    def show_loaded(self) -> None:
        self.query_one(LoadPanel).display = False

    def show_failure(self, failure: EngineError) -> None:
        panel = self.query_one(LoadPanel)
        panel.show_error(failure, self.said)
        panel.display = True

    # Adding

    def note(self, text: str) -> None:
        """A remark of the program's own."""
        self.transcript.append([Span(f"{self.said(text)}\n\n", "note")])

    def note_above(self, text: str) -> None:
        """A remark of models that are ready now: above the question that has waited for them."""
        waited = self._chat.busy and bool(self._told)  # a recording's question is not shown from here
        self._cut_to(len(self._told) - waited)
        self.note(text)
        if waited:
            self._show_question()

    def add(self, spans: Spans) -> None:
        """What the source said, with the user's keys where the program itself speaks."""
        if self.said is not str:
            spans = Spans.of(
                span._replace(text=self.said(span.text)) if span.style == "note" else span for span in spans
            )
        self.transcript.append(spans)

    def show_asked(self) -> None:
        """The newest question where it stands in the tree, in the place of what followed its parent."""
        self.show_tokens()
        self.query_one(Starters).display = False
        self._cut_to(min(self._common(), len(self._chat.tree.path) - 1))
        self._show_question()
        self.transcript.follow()

    def _show_question(self) -> None:
        exchange = self._chat.tree.path[-1]
        self._told.append(Told(exchange, self.transcript.length))
        self.transcript.append(question_spans(self._chat.tree, exchange.number))

    def show_program(self, number: int) -> None:
        """A block of this answer has run: what came of it, below the answer."""
        path, place = self._chat.tree.path, self._chat.tree.on_path(number)
        if place is None:
            return
        if self._chat.busy:
            self._untold = place  # until the answer is whole
        elif place == len(path) - 1:
            self.transcript.append(below_answer(path[-1].runs[-1:]))
        else:
            self._retell(place)
            self.transcript.show_character(self._told[place + 1].start, low=True)

    def after_turn(self) -> None:
        """The answer is whole: what came of programs meanwhile has its place now."""
        if self._untold is not None:
            self._retell(min(self._untold, len(self._chat.tree.path)))
            self._untold = None

    # Telling again

    def clear(self) -> None:
        """Nothing of the conversation before stays."""
        self._told.clear()
        self.show_tokens()
        self.transcript.clear()

    def show_path(self) -> None:
        """The path as it is now, from where it differs on."""
        self._retell(self._common())

    def show_withdrawn(self) -> None:
        """The newest question was not asked."""
        common = self._common()
        if common == len(self._chat.tree.path):
            self._cut_to(common)
        else:
            self._retell(0)

    def show_named(self, number: int) -> None:
        """A branch is called otherwise."""
        place = self._chat.tree.on_path(number)
        if place is not None and not self._chat.busy:
            self._retell(place)

    def show_place(self, number: int) -> None:
        """Bring a question of the path into view."""
        if (place := self._chat.tree.on_path(number)) is not None:
            self.transcript.show_character(self._told[place].start)

    def marked(self, place: int) -> tuple[int, Part] | None:
        """What the version mark number ``place`` of the transcript stands beside."""
        found = marks(self._chat)
        return found[place] if place < len(found) else None

    def _common(self) -> int:
        """How many questions of the transcript the path begins with."""
        pairs = zip(self._told, self._chat.tree.path, strict=False)
        fewer = min(len(self._told), len(self._chat.tree.path))
        return next((place for place, (told, now) in enumerate(pairs) if told.exchange is not now), fewer)

    def _cut_to(self, count: int) -> None:
        """Leave the first ``count`` questions with their answers, and what stands above them."""
        if count < len(self._told):
            self.transcript.cut(self._told[count].start)
            del self._told[count:]

    def _retell(self, start: int) -> None:
        """The path from its question number ``start`` on, counted from 0, as it is now."""
        self.show_tokens()
        self._cut_to(start)
        for exchange, spans in zip(self._chat.tree.path[start:], retell(self._chat, start), strict=True):
            self._told.append(Told(exchange, self.transcript.length))
            self.transcript.append(spans)
        self.transcript.follow()

    # Tokens, or Markdown

    @property
    def rendered(self) -> bool:
        """Finished answers are shown as Markdown."""
        return not self.transcript.display

    def show_rendered(self) -> None:
        self.transcript.display = False
        self.query_one(RenderedView).show(self._chat.words)

    def show_tokens(self) -> None:
        if self.rendered:
            self.transcript.display = True
            self.query_one(RenderedView).hide()

    # Beginning

    def offer(self, questions: Sequence[str]) -> None:
        """To whoever begins a chat with a pair that is good at few things."""
        self.query_one(Starters).offer(tuple(questions))

    def show_beginning(self) -> None:
        """An introduction that has no room is read from its first line, until something is asked."""
        if self.query_one(Starters).display:
            self.transcript.scroll_home(animate=False, immediate=True)

    def following_starter(self, text: str) -> str | None:
        starters = self.query_one(Starters)
        return starters.following(text) if starters.display else None
