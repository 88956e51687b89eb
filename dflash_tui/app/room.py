"""Room in the context: whether a question fits, and what the user wants to do when it doesn't."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from dflash_tui.core.attachments.attachment import counted
from dflash_tui.core.conversation.beside import Beside, Carried, messages_of
from dflash_tui.core.conversation.chat import Exchange
from dflash_tui.core.conversation.context import (
    NEARLY_FULL,
    Fit,
    Ruler,
    fit,
    room_words,
    summary_request,
    summary_tokens,
    too_long_words,
)
from dflash_tui.core.conversation.slash import SlashError
from engine.commands import Ask

from .screens.asking import AskScreen, Way
from .screens.summing import SummaryScreen
from .widgets.prompt import Prompt

if TYPE_CHECKING:
    from .screens.chat import ChatScreen

Then = Callable[[Beside], None]
"""Asks a question that fits now."""


class Room:
    """Looks before a question is asked; says when the context is nearly full."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self.ruler = Ruler(lambda ask: screen.source.capabilities.count(ask), lambda: screen.chat.settings)
        self._warned = False

    @property
    def limit(self) -> int:
        """Tokens that the context holds; 0 where that is not known."""
        ready = self._screen.chat.reducer.ready
        return ready.max_context if ready else 0

    def require(self, text: str, beside: Beside, said: list[Exchange], then: Then) -> bool:
        """Whether the question fits behind ``said``, so that it can be asked now. Otherwise the user chooses, and
        ``then`` asks it as it fits. Raises ``SlashError`` where nothing would help."""
        system = self._screen.chat.system
        found = fit(said, system, text, self.limit, self.ruler.prompt, beside)
        if found.left_out is None:
            raise SlashError(f"{too_long_words(found)} Shorten it, or start with a larger --context.")
        if not found.left_out:
            return True
        self._ask(text, beside, said, then, found)
        return False

    def _ask(self, text: str, beside: Beside, said: list[Exchange], then: Then, found: Fit) -> None:
        gone = found.left_out or ()
        questions = counted(len(gone), "oldest question") if len(gone) > 1 else "oldest question"
        ways = [
            Way("d", f"drop the {questions}, and go on", "drop"),
            Way("s", "keep a summary of what goes, which the model writes now", "summary"),
            Way("n", "start a new chat with the last answer", "new"),
        ]
        question = (
            f"With this question the conversation has {found.tokens:,} tokens; the context holds {found.limit:,}."
        )

        def chosen(way: str | None) -> None:
            if way is None:
                self._screen.query_one(Prompt).give_back(text)
            elif way == "new":
                self._start_new(beside, said, then)
            elif way == "summary":
                self._sum_up(text, replace(beside, left_out=(*beside.left_out, *gone)), said, gone, then)
            else:
                then(replace(beside, left_out=(*beside.left_out, *gone)))

        detail = "What is dropped stays in the transcript, marked; the model reads it no more."
        self._screen.app.push_screen(AskScreen("the context is full", question, ways, detail, at_once=False), chosen)

    def _start_new(self, beside: Beside, said: list[Exchange], then: Then) -> None:
        answer = next((each.answer for each in reversed(said) if each.answer), "")
        self._screen.talk.new()
        then(replace(beside, left_out=(), carried=Carried("answer", answer) if answer else None))

    def _sum_up(self, text: str, beside: Beside, said: list[Exchange], gone: tuple[int, ...], then: Then) -> None:
        screen = self._screen
        messages = summary_request(said, gone, screen.chat.system, self.limit, self.ruler.prompt)
        most = summary_tokens(self.limit)
        settings = replace(screen.chat.settings, temperature=0.0, thinking=False, max_new_tokens=most)

        def done(summary: str | None) -> None:
            if summary is None:
                screen.notify("There is no summary: the oldest questions went without.", severity="warning", timeout=5)
            summed = replace(beside, carried=Carried("summary", summary) if summary else beside.carried)
            fits = fit(said, screen.chat.system, text, self.limit, self.ruler.prompt, summed).fits
            then(summed if fits else beside)

        ask = Ask(screen.chat.next_turn, messages, settings)
        screen.app.push_screen(SummaryScreen(ask, screen.source.send, screen.queue), done)

    def after_turn(self) -> None:
        """Say, once, that little room is left; what a prompt took is what the next is measured by."""
        chat = self._screen.chat
        turn = chat.reducer.turn
        if turn is None or not self.limit:
            return
        newest = chat.newest
        if newest is not None and turn.num_prompt_tokens and turn.number == newest.number:
            asked = messages_of(chat.tree.path[:-1], newest.system, newest.question, newest.beside)
            self.ruler.learn(asked, turn.num_prompt_tokens)
        used = turn.snapshot.context_length
        nearly = used >= NEARLY_FULL * self.limit
        if nearly and not self._warned:
            words = room_words(used, self.limit)
            self._screen.talk.note(
                f"The context is {used / self.limit:.0%} full: {words}. When a question no longer fits, you choose "
                "whether the oldest go, a summary of them stays, or a new chat begins."
            )
        self._warned = nearly
