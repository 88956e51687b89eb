"""The conversation on the chat screen: asking, waiting questions, older conversations, and the two ways to show it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dflash_tui.core.conversation.chat import Exchange
from dflash_tui.core.conversation.slash import SlashError
from dflash_tui.core.conversation.transcript import recall
from dflash_tui.core.sessions.archive import reopen
from dflash_tui.core.sessions.sessions import Conversation
from dflash_tui.core.source import Feature
from dflash_tui.core.text.fences import describe_blocks
from dflash_tui.core.text.spans import Span

from .widgets.prompt import Prompt
from .widgets.queued import QueuedQuestions
from .widgets.rendered import RenderedView
from .widgets.starters import Starters
from .widgets.token_log import TokenLog

if TYPE_CHECKING:
    from .screens.chat import ChatScreen


class Talk:
    """Keeps the chat, its record on disk and what the screen shows of it in step."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._edited: Exchange | None = None
        """The question that is being edited."""
        self._resumed: Conversation | None = None
        """An older conversation whose model has not been compared with the present one yet."""

    @property
    def _log(self) -> TokenLog:
        return self._screen.query_one(TokenLog)

    @property
    def _prompt(self) -> Prompt:
        return self._screen.query_one(Prompt)

    def note(self, text: str) -> None:
        """A remark of the program's own in the transcript."""
        self._log.append([Span(f"{self._screen.said(text)}\n\n", "note")])

    def introduce(self, banner: str) -> None:
        """What a pair says of itself, above a question that waited for it; and what to ask it."""
        waiting = [exchange.question for exchange in self._screen.chat.exchanges if not exchange.answered]
        if banner and len(waiting) == len(self._screen.chat.exchanges):
            self._log.clear()
            self.note(banner)
            for question in waiting:
                self._show_question(question)
        self._offer_starters()

    def _offer_starters(self) -> None:
        """To whoever begins a chat with a pair that is good at few things."""
        screen, ready = self._screen, self._screen.chat.reducer.ready
        begins = ready is not None and bool(ready.banner) and not screen.chat.exchanges
        screen.query_one(Starters).display = begins and screen.source.capabilities.can("ask")

    def _show_question(self, text: str) -> None:
        self._log.append([Span(text, "prompt"), Span("\n\n", "plain")])

    def require_idle(self) -> None:
        """Raises ``SlashError`` while an answer runs, and where no question can be asked."""
        self.require("ask")
        if self._screen.chat.busy:
            raise SlashError("An answer is on its way. Esc stops it first.")

    def require(self, feature: Feature) -> None:
        """Raises ``SlashError`` with the reason where the source of the events lacks this."""
        if reason := self._screen.source.capabilities.refused.get(feature):
            raise SlashError(reason)

    # Asking

    def ask(self, text: str) -> None:
        """Send a question, after the answer that runs. Raises ``SlashError`` when none can be asked any more."""
        screen = self._screen
        self.require("ask")
        if screen.chat.reducer.phase == "failed":
            who = "The engine has ended and" if self._screen.source.capabilities.local else "The server"
            raise SlashError(f"{who} can't answer. The message above says what to do.")
        if screen.chat.busy:
            screen.chat.queued.append(text)
            self._draw_queue()
            return
        self._edited = None
        self.show_tokens()
        screen.query_one(Starters).display = False
        self._show_question(text)
        self._log.follow()
        # Before the engine hears of it: the record must not miss the question of an answer.
        screen.queue.log.user(screen.chat.next_turn, text, screen.chat.system)
        screen.chat.ask(text)
        screen.drawing.draw_status()
        if not screen.chat.waiting:
            screen.pump.keep_still(screen.app.batch_update())

    def after_turn(self) -> None:
        """The answer is whole: say which code it holds, and go on with the queue."""
        chat = self._screen.chat
        turn = chat.reducer.turn
        if turn is not None and (blocks := describe_blocks(turn.text)):
            self.note(blocks)
        following = chat.next_queued()
        if following is not None:
            self.ask(following)
        elif not chat.busy:
            self.return_queue()
        self._draw_queue()

    def return_queue(self) -> None:
        """After a stop, a single waiting question goes back into an empty prompt; others can be recalled."""
        waiting = self._screen.chat.take_queued()
        self._draw_queue()
        if len(waiting) == 1 and not self._prompt.text:
            self._prompt.fill(waiting[0])
        elif waiting:
            what = "1 question was" if len(waiting) == 1 else f"{len(waiting)} questions were"
            self.note(f"{what} not asked; ↑ brings back one after the other")

    def take_queued(self) -> str | None:
        """The newest question that waits, which waits no more."""
        queued = self._screen.chat.queued
        text = queued.pop() if queued else None
        self._draw_queue()
        return text

    def _draw_queue(self) -> None:
        self._screen.query_one(QueuedQuestions).show(self._screen.chat.queued)

    # Asking again

    def take_back(self) -> Exchange:
        """Undo the newest question. Raises ``SlashError`` when there is none, or an answer runs."""
        self.require_idle()
        exchange = self._screen.chat.take_back()
        if exchange is None:
            raise SlashError("There is no question to take back yet.")
        self._screen.queue.log.take_back(exchange.turn)
        self.note("↺ taken back")
        return exchange

    def edit(self) -> None:
        """Take the newest question back into the prompt, until it is asked or put back."""
        exchange = self.take_back()
        self._prompt.put_aside()
        self._prompt.fill(exchange.question)
        self._edited = exchange

    def put_back(self) -> bool:
        """Undo :meth:`edit`; False when nothing is being edited. What was written meanwhile can be recalled with ↑."""
        exchange, self._edited = self._edited, None
        if exchange is None:
            return False
        self._screen.chat.put_back(exchange)
        self._screen.queue.log.put_back(exchange.turn)
        self.note("↻ put back")
        if self._prompt.unfolded != exchange.question:
            self._prompt.put_aside()
        self._prompt.fill("")
        return True

    # Other conversations

    def new(self) -> None:
        """Raises ``SlashError`` while an answer runs."""
        self.require_idle()
        self._screen.queue.renew_log(self._screen.chat.reducer.ready)
        self._screen.chat.new()
        self._begin()
        self._offer_starters()
        self._screen.drawing.draw_gauges()
        self._screen.drawing.draw_status()

    def resume(self, path: Path) -> None:
        """Go on with this file's conversation. ``SlashError`` or ``ArchiveError``: the present one stays."""
        self.require_idle()
        if path == self._screen.queue.log.path:
            raise SlashError("That is the conversation on the screen.")
        conversation, log = reopen(path)
        self._screen.queue.renew_log(self._screen.chat.reducer.ready, log)
        self.show_resumed(conversation)
        self.tell_other_model()
        self._screen.drawing.draw_gauges()
        self._screen.drawing.draw_status()

    def show_resumed(self, conversation: Conversation) -> None:
        """Have ``conversation`` in the place of the present one; its record is open already."""
        self._screen.chat.resume(conversation)
        self._begin()
        self._resumed = conversation
        self._screen.query_one(Starters).display = False
        self._log.append(recall(conversation, self._screen.chat.reducer))
        self._log.follow()

    def _begin(self) -> None:
        """Nothing of the conversation before stays."""
        self._edited = self._resumed = None
        self.show_tokens()
        self._draw_queue()
        self._log.clear()

    def tell_other_model(self) -> None:
        """A resumed conversation says so, once, when another model goes on with it."""
        ready, resumed = self._screen.chat.reducer.ready, self._resumed
        if ready is None or resumed is None:
            return
        self._resumed = None
        if resumed.target not in (None, ready.target):
            self.note(f"So far this was a conversation with {resumed.target}. {ready.target} goes on.")

    # Tokens, or Markdown

    @property
    def rendered(self) -> bool:
        """Finished answers are shown as Markdown."""
        return not self._log.display

    def show_rendered(self) -> None:
        self._log.display = False
        self._screen.query_one(RenderedView).show(self._screen.chat.messages)

    def show_tokens(self) -> None:
        if self.rendered:
            self._log.display = True
            self._screen.query_one(RenderedView).hide()
