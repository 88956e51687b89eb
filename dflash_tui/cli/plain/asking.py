"""How a question is asked in the chat in lines: its files, its room in the context, its place in the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dflash_tui.core.attachments.attachment import counted
from dflash_tui.core.attachments.mentions import as_asked, attach
from dflash_tui.core.attachments.reading import Reader
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
from engine.commands import Ask, GenerationSettings
from engine.events import TurnFinished

if TYPE_CHECKING:
    from .chat import PlainChat


class Asking:
    """Looks before a question is asked; says when the context is nearly full."""

    def __init__(self, plain: PlainChat, when_full: str) -> None:
        self._plain = plain
        self._when_full = when_full
        self.ruler = Ruler(lambda ask: plain.engine.capabilities.count(ask), lambda: plain.chat.settings)
        self._reader = Reader(self.ruler.text)
        self._warned = False

    @property
    def limit(self) -> int:
        """Tokens that the context holds; 0 where that is not known."""
        ready = self._plain.chat.reducer.ready
        return ready.max_context if ready else 0

    def ask(self, text: str, parent: int | None = None) -> None:
        """Ask what follows the path, or another version of a question that followed ``parent``, and read the answer
        out. Raises ``AttachmentError`` and ``SlashError``."""
        plain = self._plain
        plain.require("ask")
        mentioned = attach(text, self._reader.read)
        files = self._reader.counted(mentioned.files, self.limit)
        for file in files:
            plain.say(f"(with {file.name}, {counted(file.num_lines, 'line')})")
        if mentioned.strange:
            plain.say(f"There is no file {mentioned.strange[0]}: what you wrote goes as it stands.")
        question = as_asked(text)
        tree = plain.chat.tree
        said = tree.path if parent is None else tree.path_to(parent)
        beside = self._fitting(question, Beside(files), said)
        if beside is not None:  # behind that question, or where the chat is new by now
            plain.chat.ask(question, parent=parent if plain.chat.tree is tree else None, beside=beside)
            plain.follow()

    def ask_again(self, number: int, settings: GenerationSettings | None) -> None:
        """Another version of an answer, with ``settings`` for it alone."""
        self._plain.require("ask")
        self._plain.chat.ask_again(number, settings)
        self._plain.follow()

    def _fitting(self, text: str, beside: Beside, said: Sequence[Exchange]) -> Beside | None:
        """What goes with the question so that it fits; None when the user leaves it. Raises ``SlashError`` where
        nothing would help."""
        found = fit(said, self._plain.chat.system, text, self.limit, self.ruler.prompt, beside)
        if found.left_out is None:
            raise SlashError(f"{too_long_words(found)} Shorten it, or start with a larger --context.")
        if not found.left_out:
            return beside
        return self._chosen(found, text, replace(beside, left_out=(*beside.left_out, *found.left_out)), beside, said)

    def _chosen(
        self, found: Fit, text: str, lighter: Beside, beside: Beside, said: Sequence[Exchange]
    ) -> Beside | None:
        plain, gone = self._plain, found.left_out or ()
        full = f"With this question the conversation has {found.tokens:,} tokens; the context holds {found.limit:,}."
        if not plain.asks_back:
            if self._when_full == "stop":
                raise SlashError(f"{full} --when-full drop leaves the oldest out, /new starts another chat.")
            plain.say(f"The oldest {counted(len(gone), 'question')} are left out: the context is full.")
            return lighter
        plain.say(
            f"{full} drop leaves the oldest {counted(len(gone), 'question')} out; summary keeps a summary of them, "
            "which the model writes now; new starts a chat with the last answer. Enter alone asks nothing."
        )
        match plain.choose("drop, summary or new: "):
            case "drop" | "d":
                return lighter
            case "summary" | "s":
                return replace(lighter, carried=self._summary(said, gone) or lighter.carried)
            case "new" | "n":
                answer = next((each.answer for each in reversed(said) if each.answer), "")
                plain.take("/new")
                return replace(beside, left_out=(), carried=Carried("answer", answer) if answer else None)
        plain.say(f"Not asked: {text}")
        return None

    def _summary(self, said: Sequence[Exchange], gone: tuple[int, ...]) -> Carried | None:
        plain = self._plain
        messages = summary_request(said, gone, plain.chat.system, self.limit, self.ruler.prompt)
        most = summary_tokens(self.limit)
        settings = replace(plain.chat.settings, temperature=0.0, thinking=False, max_new_tokens=most)
        text = ""
        for event in plain.aside(Ask(plain.chat.next_turn, messages, settings)):
            if isinstance(event, TurnFinished):
                text = event.text.strip()
        plain.say(f"The summary: {text}" if text else "There is no summary: the oldest questions go without.")
        return Carried("summary", text) if text else None

    def after_turn(self) -> None:
        """Say, once, that little room is left; what a prompt took is what the next is measured by."""
        chat, newest = self._plain.chat, self._plain.chat.newest
        turn = chat.reducer.turn
        if turn is None or not self.limit:
            return
        if newest is not None and turn.num_prompt_tokens and turn.number == newest.number:
            asked = messages_of(chat.tree.path[:-1], newest.system, newest.question, newest.beside)
            self.ruler.learn(asked, turn.num_prompt_tokens)
        used = turn.snapshot.context_length
        nearly = used >= NEARLY_FULL * self.limit
        if nearly and not self._warned:
            self._plain.say(f"The context is {used / self.limit:.0%} full: {room_words(used, self.limit)}.")
        self._warned = nearly
