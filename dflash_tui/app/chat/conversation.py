"""The conversation on the screen: its transcript or its answers as Markdown, and what stands there before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Container, ScrollableContainer
from textual.scroll_view import ScrollView

from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.conversation.transcript import around_answers, marks, question_spans, retell
from dflash_tui.core.conversation.tree import NodePart
from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.text.spans import Span, Spans
from engine.events import EngineError, LoadProgress

from ..widgets.loading import LoadPanel
from ..widgets.rendered import RenderedView
from ..widgets.starters import Starters
from ..widgets.token_log import TokenLog


class Told(NamedTuple):
    """Where in the transcript a question stands, and what it looked like when it was written there."""

    exchange: Turn
    start: int
    """The place of its first character in the transcript."""


class ConversationView(Container):
    """Keeps the transcript in step with the path of a chat."""

    def __init__(self, chat: Chat, *, id: str) -> None:
        super().__init__(id=id)
        self._chat = chat
        self._answers: list[Told] = []

    def compose(self) -> ComposeResult:
        yield LoadPanel(id="load")
        yield TokenLog(id="transcript")
        yield RenderedView(id="rendered")
        yield Starters(id="starters")

    @property
    def transcript(self) -> TokenLog:
        return self.query_one(TokenLog)

    @property
    def scrolling(self) -> ScrollableContainer | ScrollView:
        """What scrolls: the transcript, or the answers drawn."""
        return self.query_one(RenderedView) if self.rendered else self.transcript

    # Loading

    def show_loading(self, phases: list[LoadProgress], beginning: str) -> None:
        """Show how far the models are loaded; ``beginning`` says what happens before the first phase."""
        panel = self.query_one(LoadPanel)
        panel.remove_class("-error")
        panel.show_progress(phases, beginning)
        panel.display = True

    def show_loaded(self) -> None:
        self.query_one(LoadPanel).display = False

    def show_failure(self, failure: EngineError, said: bool) -> None:
        """``said``: whether there is a conversation that stays."""
        panel = self.query_one(LoadPanel)
        panel.show_error(failure, said)
        panel.display = True

    # Adding

    def note(self, text: str) -> None:
        """Add a remark of the program's own to the transcript."""
        self.transcript.append([Span(f"{text}\n\n", "note")])

    def note_above(self, text: str) -> None:
        """Add a remark about the models that have just become ready, above the question that waited for them."""
        waited = self._chat.busy and bool(self._answers)  # a recording's question is not shown from here
        self._cut_to(len(self._answers) - waited)
        self.note(text)
        if waited:
            self._show_question()

    def add(self, spans: Spans) -> None:
        """Add text that the source said."""
        self.transcript.append(spans)

    def show_asked(self) -> None:
        """Add the newest question to the transcript, in the place of what followed its parent in the tree."""
        self.show_tokens()
        self.query_one(Starters).display = False
        self._cut_to(min(self._common(), len(self._chat.tree.path) - 1))
        self._show_question()
        self.transcript.follow()

    def _show_question(self) -> None:
        exchange = self._chat.tree.path[-1]
        self._answers.append(Told(exchange, self.transcript.length))
        self.transcript.append(question_spans(self._chat.tree, exchange.number))

    # Telling again

    def clear(self) -> None:
        """Empty the transcript."""
        self._answers.clear()
        self.show_tokens()
        self.transcript.clear()

    def show_path(self) -> None:
        """Show the chat's path through the tree as it is now, rewriting the transcript from where it differs on."""
        self.retell(self._common())

    def show_withdrawn(self) -> None:
        """Take the newest question out of the transcript: it was not asked after all."""
        common = self._common()
        if common == len(self._chat.tree.path):
            self._cut_to(common)
        else:
            self.retell(0)

    def show_named(self, number: int) -> None:
        """Show the new name of the branch at question ``number``."""
        depth = self._chat.tree.on_path(number)
        if depth is not None and not self._chat.busy:
            self.retell(depth)

    def show_place(self, number: int) -> None:
        """Bring a question of the path into view."""
        if (depth := self._chat.tree.on_path(number)) is not None:
            self.transcript.show_character(self._answers[depth].start)

    def go_to_question(self, by: int) -> None:
        """Scroll to the question before (-1) or behind (1) the one at the top of the view."""
        if self.rendered:
            self.query_one(RenderedView).scroll_to_question(by)
        else:
            self.transcript.scroll_among([answer.start for answer in self._answers], by)

    def marked(self, index: int) -> tuple[int, NodePart] | None:
        """The turn, and whether its question or its answer, that the transcript's version mark ``index`` belongs to."""
        versions = marks(self._chat)
        return versions[index] if index < len(versions) else None

    def _common(self) -> int:
        """How many questions of the transcript the path begins with."""
        pairs = zip(self._answers, self._chat.tree.path, strict=False)
        fewer = min(len(self._answers), len(self._chat.tree.path))
        return next((index for index, (answer, now) in enumerate(pairs) if answer.exchange is not now), fewer)

    def _cut_to(self, count: int) -> None:
        """Leave the first ``count`` questions with their answers, and what stands above them."""
        if count < len(self._answers):
            self.transcript.cut(self._answers[count].start)
            del self._answers[count:]

    def retell(self, start: int) -> None:
        """Rewrite the transcript from question ``start`` of the path on, counted from 0."""
        self.show_tokens()
        self._cut_to(start)
        for exchange, spans in zip(self._chat.tree.path[start:], retell(self._chat, start), strict=True):
            self._answers.append(Told(exchange, self.transcript.length))
            self.transcript.append(spans)
        self.transcript.follow()

    # Tokens, or Markdown

    @property
    def rendered(self) -> bool:
        """Whether finished answers are shown as Markdown."""
        return not self.transcript.display

    def show_rendered(self) -> None:
        self.transcript.display = False
        self.query_one(RenderedView).show(around_answers(self._chat))

    def show_tokens(self) -> None:
        if self.rendered:
            self.transcript.display = True
            self.query_one(RenderedView).hide()

    # Beginning

    def offer(self, questions: Sequence[str]) -> None:
        """Offer questions to begin with; for a pair of models that is good at few things."""
        self.query_one(Starters).offer(tuple(questions))

    def show_beginning(self) -> None:
        """Scroll to the first line of an introduction that has no room, until something is asked."""
        if self.query_one(Starters).display:
            self.transcript.scroll_home(animate=False, immediate=True)

    def following_starter(self, text: str) -> str | None:
        starters = self.query_one(Starters)
        return starters.following(text) if starters.display else None
