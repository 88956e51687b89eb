"""Whether a question fits the context, and what the user wants done when it doesn't."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from ..conversation.chat import Chat, Queued
from ..conversation.context import (
    NEARLY_FULL,
    Fit,
    Ruler,
    fit,
    room_words,
    too_long_words,
)
from ..conversation.question_context import Carried, QuestionContext, messages_of
from ..conversation.slash import SlashError
from ..conversation.turn import Turn
from ..source import Capabilities
from ..text.counted import counted
from .face import AskOption, Face, Question

WhenFull = Literal["ask", "drop", "stop"]
"""What to do with a question that doesn't fit."""
Then = Callable[[QuestionContext], None]
"""Asks the question, with what goes with it now that it fits."""


class ContextFit:
    """Looks whether a question fits before it is asked, and tells the user once when the context is nearly full."""

    def __init__(
        self,
        chat: Chat,
        face: Face,
        capabilities: Callable[[], Capabilities],
        start_new: Callable[[], None],
        when_full: WhenFull,
    ) -> None:
        self._chat, self._face = chat, face
        self._start_new, self._when_full = start_new, when_full
        self.ruler = Ruler(lambda ask: capabilities().count(ask), lambda: chat.settings)
        self._warned = False

    @property
    def limit(self) -> int:
        """Tokens that the context holds; 0 where that is not known."""
        ready = self._chat.reducer.ready
        return ready.max_context if ready else 0

    def require(self, text: str, context: QuestionContext, earlier: Sequence[Turn], then: Then) -> None:
        """Calls ``then`` with what goes with the question so that it fits behind ``earlier``, at once or when the user
        has chosen. Raises ``SlashError`` where nothing would help."""
        fitted = fit(earlier, self._chat.system, text, self.limit, self.ruler.prompt, context)
        if fitted.left_out is None:
            raise SlashError(f"{too_long_words(fitted)} Shorten it, or start with a larger --context.")
        if fitted.left_out:
            self._choose(fitted, text, context, earlier, then)
        else:
            then(context)

    def _choose(self, fitted: Fit, text: str, context: QuestionContext, earlier: Sequence[Turn], then: Then) -> None:
        gone = fitted.left_out or ()
        lighter = replace(context, left_out=(*context.left_out, *gone))
        oldest = counted(len(gone), "oldest question") if len(gone) > 1 else "oldest question"
        left = max(fitted.limit - fitted.tokens, 0)
        full = (
            f"With this question the conversation has {counted(fitted.tokens, 'token')}; the context holds "
            f"{fitted.limit:,}, which leaves {left or 'none'} for the answer."
        )
        if self._when_full == "stop":
            raise SlashError(f"{full} --when-full drop leaves the oldest out, /new starts another chat.")
        if self._when_full == "drop":
            self._face.say(f"The {oldest} {'are' if len(gone) > 1 else 'is'} left out: the context is full.")
            then(lighter)
            return

        def chosen(way: str | None) -> None:
            if way == "drop":
                then(lighter)
            elif way == "new":
                answer = next((each.answer for each in reversed(earlier) if each.answer), "")
                self._start_new()
                then(replace(context, carried=Carried("answer", answer) if answer else None))
            else:
                self._face.give_back(
                    [Queued(text, context.files, tuple(text[start:stop] for start, stop in context.pastes))]
                )

        ways = (
            AskOption("d", "drop", f"drop the {oldest}, and go on"),
            AskOption("n", "new", "start a new chat with the last answer"),
        )
        detail = "What is dropped stays in the transcript, marked; the model reads it no more."
        self._face.ask(Question("the context is full", full, ways, "", detail, wanted=False), chosen)

    def after_turn(self) -> None:
        """Tell the user, once, that little room is left. To be called when an answer has ended: the tokens that its
        prompt took make the next estimates better."""
        chat, turn, newest = self._chat, self._chat.reducer.turn, self._chat.newest
        if turn is None or not self.limit:
            return
        if newest is not None and turn.num_prompt_tokens and turn.number == newest.number:
            asked = messages_of(chat.tree.path[:-1], newest.system, newest.question, newest.attached)
            self.ruler.learn(asked, turn.num_prompt_tokens)
        used = turn.snapshot.context_length
        nearly = used >= NEARLY_FULL * self.limit
        if nearly and not self._warned:
            choice = "you choose whether the oldest go or a new chat begins"
            then = f" When a question no longer fits, {choice}." if self._when_full == "ask" else ""
            full = f"The context is {used / self.limit:.0%} full: {room_words(used, self.limit)}.{then}"
            self._face.say(full, "end")
        self._warned = nearly
