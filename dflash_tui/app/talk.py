"""The conversation on the chat screen: asking, waiting questions, older conversations, and the two ways to show it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.widgets import Static

from dflash_tui.core.attachments.attachment import Attachment
from dflash_tui.core.conversation.beside import Beside
from dflash_tui.core.conversation.chat import Exchange, Queued
from dflash_tui.core.conversation.folds import below_answer, folds
from dflash_tui.core.conversation.slash import SlashError
from dflash_tui.core.conversation.start import starters_of
from dflash_tui.core.conversation.transcript import marks, question_spans, retell
from dflash_tui.core.conversation.tree import Part
from dflash_tui.core.sessions.archive import reopen
from dflash_tui.core.sessions.restoring import restored
from dflash_tui.core.sessions.sessions import Conversation
from dflash_tui.core.source import Feature
from dflash_tui.core.text.fences import describe_blocks
from dflash_tui.core.text.spans import Span
from engine.commands import GenerationSettings

from .screens.unfolded import UnfoldedScreen
from .widgets.prompt import Prompt
from .widgets.queued import QueuedQuestions
from .widgets.rendered import RenderedView
from .widgets.slider import BlockSlider, TemperatureSlider
from .widgets.starters import Starters
from .widgets.token_log import TokenLog

if TYPE_CHECKING:
    from .screens.chat import ChatScreen


class Talk:
    """Keeps the chat, its record on disk and what the screen shows of it in step."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._edited: int | None = None
        """The question that is being edited."""
        self._turned: tuple[int, Part] | None = None
        """The version that was turned to last, until another question is asked."""
        self._starts: list[int] = []
        """Where each question of the path begins in the transcript."""
        self._untold: int | None = None
        """From which question on a program has ended that is not shown yet."""
        self._resumed: Conversation | None = None
        """An older conversation whose model has not been compared with the present one yet."""

    @property
    def _log(self) -> TokenLog:
        return self._screen.query_one(TokenLog)

    @property
    def _prompt(self) -> Prompt:
        return self._screen.query_one(Prompt)

    def note(self, text: str) -> None:
        """A remark of the program's own."""
        self._log.append([Span(f"{self._screen.said(text)}\n\n", "note")])

    def note_above(self, text: str) -> None:
        """A remark of models that are ready now: above the question that has waited for them."""
        waited = self._screen.chat.busy and bool(self._starts)  # a recording's question is not shown from here
        self._cut_to(len(self._starts) - waited)
        self.note(text)
        if waited:
            self._show_question(self._screen.chat.tree.here)

    def introduce(self, banner: str) -> None:
        """What a pair says of itself, above a question that waited for it; and what to ask it."""
        tree = self._screen.chat.tree
        if banner and not any(exchange.answer for exchange in tree.path):
            self.note_above(banner)
        self._offer_starters()

    def _offer_starters(self) -> None:
        """To whoever begins a chat with a pair that is good at few things."""
        begins = not self._screen.chat.tree and self._screen.source.capabilities.can("ask")
        self._screen.query_one(Starters).offer(starters_of(self._screen.chat.reducer.ready) if begins else ())

    def _show_question(self, number: int) -> None:
        self._starts.append(self._log.length)
        self._log.append(question_spans(self._screen.chat.tree, number))

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

    def ask(self, text: str, files: tuple[Attachment, ...] = ()) -> None:
        """Send a question with its files, after the answer that runs. Raises ``SlashError`` when none can be asked any
        more, or this one doesn't fit the context by any means."""
        screen = self._screen
        self.require("ask")
        if screen.chat.reducer.phase == "failed":
            who = "The engine has ended and" if self._screen.source.capabilities.local else "The server"
            raise SlashError(f"{who} can't answer. The message above says what to do.")
        if screen.chat.busy:
            screen.chat.queued.append(Queued(text, files))
            self._draw_queue()
            return
        edited, tree = self._edited, screen.chat.tree
        parent = tree.here if edited is None else tree[edited].parent

        def fits(beside: Beside) -> None:
            """Behind that question, or where the chat is new by now."""
            follows = parent if screen.chat.tree is tree else None
            self._show_asked(lambda: screen.chat.ask(text, parent=follows, beside=beside))

        beside = Beside(files)
        if screen.room.require(text, beside, tree.path_to(parent), fits):
            fits(beside)

    def ask_again(self, number: int, settings: GenerationSettings | None = None) -> None:
        """Another version of an answer, with ``settings`` for it alone. Raises ``SlashError`` while an answer runs."""
        self.require_idle()
        self._show_asked(lambda: self._screen.chat.ask_again(number, settings))

    def _show_asked(self, ask: Callable[[], int]) -> None:
        """The question where it stands in the tree, in the place of what followed its parent."""
        screen, before = self._screen, list(self._screen.chat.tree.path)
        self._end_edit()
        self._turned = None
        self.show_tokens()
        screen.query_one(Starters).display = False
        number = ask()
        self._cut_to(_common(before, screen.chat.tree.path))
        self._show_question(number)
        self._log.follow()
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
        if self._untold is not None:
            self._retell(min(self._untold, len(chat.tree.path)))
            self._untold = None
        self._screen.room.after_turn()
        if following is not None:
            self._ask_queued(following)
        elif not chat.busy:
            self.return_queue()
        self._draw_queue()

    def _ask_queued(self, queued: Queued) -> None:
        try:
            self.ask(*queued)
        except SlashError as error:
            self._prompt.give_back(queued.text)
            self._screen.notify(str(error), severity="error", timeout=8, markup=False)

    def return_queue(self) -> None:
        """After a stop, a single waiting question goes back into an empty prompt; others can be recalled."""
        waiting = self._screen.chat.take_queued()
        self._draw_queue()
        if len(waiting) == 1 and not self._prompt.text:
            self._prompt.fill(waiting[0].text)
        elif waiting:
            what = "1 question was" if len(waiting) == 1 else f"{len(waiting)} questions were"
            self.note(f"{what} not asked; ↑ brings back one after the other")

    def take_queued(self) -> str | None:
        """The newest question that waits, which waits no more."""
        queued = self._screen.chat.queued
        text = queued.pop().text if queued else None
        self._draw_queue()
        return text

    def _draw_queue(self) -> None:
        self._screen.query_one(QueuedQuestions).show([each.text for each in self._screen.chat.queued])

    # Versions

    def withdraw(self) -> None:
        """The question that waited for the models was not asked."""
        chat = self._screen.chat
        if len(self._starts) > len(chat.tree.path):
            self._cut_to(len(chat.tree.path))
        else:
            self._retell(0)
        self.note("⏹ not asked; ↑ brings the question back")

    def chosen(self, words: str) -> Exchange:
        """The question that ``words`` names by number or branch, the newest without. Raises ``SlashError``."""
        chat = self._screen.chat
        found = chat.tree.find(words) if words else chat.newest
        if found is None:
            missing = f"There is no question or branch “{words}”. /tree shows them all."
            raise SlashError(missing if words else "There is no question yet.")
        return found

    def edit(self, number: int) -> None:
        """Bring a question into the prompt, to be asked as another version of it."""
        self.require_idle()
        self.leave_edit()
        self._prompt.put_aside()
        self._prompt.fill(self._screen.chat.tree[number].question)
        self._edited = number
        self._screen.query_one("#mark", Static).update("✎")
        self._prompt.focus()

    def leave_edit(self) -> bool:
        """The question that is being edited stays as it was; False when none is. What was written meanwhile can be
        recalled with ↑."""
        edited = self._end_edit()
        if edited is None:
            return False
        if self._prompt.unfolded != self._screen.chat.tree[edited].question:
            self._prompt.put_aside()
        self._prompt.fill("")
        return True

    def _end_edit(self) -> int | None:
        """The question that was being edited."""
        edited, self._edited = self._edited, None
        self._screen.query_one("#mark", Static).update("❯")
        return edited

    def go(self, number: int, *, below: bool = False) -> None:
        """End the path at a turn, or where a path through it ended last. Raises ``SlashError`` while an answer runs."""
        self.require_idle()
        screen, before = self._screen, list(self._screen.chat.tree.path)
        if below:
            screen.chat.visit(number)
        else:
            screen.chat.go(number)
        if screen.viewer.place is not None:
            screen.viewer.go_live()
        self._retell(_common(before, screen.chat.tree.path))
        screen.drawing.draw_gauges()
        screen.drawing.draw_status()

    def show_place(self, number: int) -> None:
        """Bring a question into view, on the path if it is there and else where its branch was left. Raises
        ``SlashError`` while an answer runs, or when it is gone."""
        chat = self._screen.chat
        if number not in chat.tree:
            raise SlashError(f"There is no question {number} in this conversation any more.")
        if chat.tree.on_path(number) is None:
            self.go(number, below=True)
        if (place := chat.tree.on_path(number)) is not None:
            self._log.show_character(self._starts[place])

    def turn_over(self, number: int, part: Part, by: int) -> None:
        """Go to the version beside a question or an answer. Raises ``SlashError`` behind the ends."""
        beside = self._screen.chat.tree.beside(number, part, by)
        if beside is None:
            _, count = self._screen.chat.tree.place(number, part)
            end = "last" if by > 0 else "first"
            raise SlashError(
                f"That is the {end} of {count} versions." if count > 1 else f"This {part} has one version."
            )
        self.go(beside.number, below=True)
        self._turned = (beside.number, part)
        if part == "question":
            self.show_place(beside.number)

    def marked(self, place: int) -> tuple[int, Part] | None:
        """What the version mark number ``place`` of the transcript stands beside."""
        found = marks(self._screen.chat)
        return found[place] if place < len(found) else None

    def turnable(self, by: int = 0) -> tuple[int, Part]:
        """What the keys for versions turn over: what they turned last, so that the other key undoes it, else the lowest
        mark of the transcript, of those with a version on that side if any has. Raises ``SlashError``."""
        self.require_idle()
        tree, found = self._screen.chat.tree, marks(self._screen.chat)
        if not found:
            raise SlashError("Nothing here has versions yet: /retry asks again, /edit changes a question.")
        nearest = [*(mark for mark in found if mark == self._turned), *reversed(found)]
        return next((mark for mark in nearest if by and tree.beside(*mark, by)), nearest[0])

    def name(self, number: int, text: str) -> None:
        """Call the branch that begins at a question so."""
        chat = self._screen.chat
        chat.name(text, number)
        place = chat.tree.on_path(number)
        if place is not None and not chat.busy:
            self._retell(place)

    def show_run(self, number: int) -> None:
        """A block of this answer has run: what came of it, below the answer."""
        tree = self._screen.chat.tree
        path, place = tree.path, tree.on_path(number)
        if place is None:
            return
        if self._screen.chat.busy:
            self._untold = place  # until the answer is whole
        elif place == len(path) - 1:
            self._log.append(below_answer(path[-1].runs[-1:]))
        else:
            self._retell(place)
            self._log.show_character(self._starts[place + 1], low=True)

    def unfold(self, place: int | None = None) -> None:
        """Show what stands behind the line number ``place`` of the transcript that is folded, the last one without.
        Raises ``SlashError`` where nothing is."""
        found = folds(self._screen.chat.tree.path)
        if not found:
            raise SlashError("Nothing is folded: neither a paste nor a file, nor the output of /run.")
        place = len(found) - 1 if place is None else min(place, len(found) - 1)
        self._screen.app.push_screen(UnfoldedScreen(found, place))

    def _cut_to(self, count: int) -> None:
        """Leave the first ``count`` questions with their answers, and what stands above them."""
        if count < len(self._starts):
            self._log.cut(self._starts[count])
            del self._starts[count:]

    def _retell(self, start: int) -> None:
        """The path from its question number ``start`` on, counted from 0, as it is now."""
        self.show_tokens()
        self._cut_to(start)
        for spans in retell(self._screen.chat, start):
            self._starts.append(self._log.length)
            self._log.append(spans)
        self._log.follow()

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
        self._restore(conversation)
        self.tell_other_model()
        self._screen.drawing.draw_gauges()
        self._screen.drawing.draw_status()

    def show_resumed(self, conversation: Conversation) -> None:
        """Have ``conversation`` in the place of the present one; its record is open already."""
        self._screen.chat.resume(conversation)
        self._begin()
        self._resumed = conversation
        self._screen.query_one(Starters).display = False
        self._retell(0)
        if conversation.damaged:
            lines = "1 line" if conversation.damaged == 1 else f"{conversation.damaged} lines"
            self.note(f"{lines} of its file could not be read; the rest is here.")

    def _restore(self, conversation: Conversation) -> None:
        """It goes on with the settings that it was left with."""
        screen = self._screen
        screen.chat.settings = restored(screen.chat.settings, conversation.settings)
        screen.query_one(BlockSlider).show(screen.chat.settings.block_size)
        screen.query_one(TemperatureSlider).value = screen.chat.settings.temperature

    def _begin(self) -> None:
        """Nothing of the conversation before stays."""
        self._resumed = None
        self._end_edit()
        self._starts.clear()
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
        self._screen.query_one(RenderedView).show(self._screen.chat.words)

    def show_tokens(self) -> None:
        if self.rendered:
            self._log.display = True
            self._screen.query_one(RenderedView).hide()


def _common(before: Sequence[Exchange], now: Sequence[Exchange]) -> int:
    """How many questions two paths begin with together."""
    pairs = zip(before, now, strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one is not other), min(len(before), len(now)))
