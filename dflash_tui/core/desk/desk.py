"""The desk at which a chat is held: a conversation, whoever answers, the record, and what can be done with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.commands import Close, Command, GenerationSettings, Stop
from engine.errors import EngineFailure
from engine.events import EngineReady

from ..attachments.attachment import Attachment
from ..conversation.chat import Chat, Queued
from ..conversation.question_context import QuestionContext, pastes_in
from ..conversation.retry import Retry
from ..conversation.slash import SlashError
from ..conversation.start import Start
from ..conversation.transcript import marks
from ..conversation.tree import NodePart
from ..conversation.turn import Turn
from ..failures import Failure
from ..sessions.archive import reopen
from ..sessions.sessions import Conversation
from ..settings.decoding import restored
from ..source import Feature, Source, SourceFactory
from ..text.counted import counted
from .context_fit import ContextFit, WhenFull
from .event_queue import EventQueue
from .face import Face
from .makers import Makers
from .model_switch import ModelSwitch
from .question_files import QuestionFiles


class Desk:
    """Does what the user asks for in a chat, and tells its face what has changed. What can't be done raises
    ``SlashError`` or ``Failure`` with words for people."""

    def __init__(
        self,
        source: SourceFactory,
        settings: GenerationSettings,
        queue: EventQueue,
        begin: Start,
        out_dir: Path,
        face: Face,
        when_full: WhenFull = "ask",
    ) -> None:
        """``queue`` carries the source's events to whoever applies them to ``chat``, and has the record of them."""
        self.begin, self.out_dir, self.queue, self.face = begin, out_dir, queue, face
        self.models = ModelSwitch(source, begin.models, queue.put, face)
        self.chat = Chat(settings, self._send, lambda: queue.log, queue.rounds_of)
        self.fit = ContextFit(self.chat, face, lambda: self.source.capabilities, self.new, when_full)
        self.files = QuestionFiles(self.chat, self.fit, face.say)
        self.makers = Makers(self.chat)
        self.editing: int | None = None
        """The number of the question that the user is writing anew; None while there is none."""
        self._turned: tuple[int, NodePart] | None = None
        """The version that was turned to last, until another question is asked."""
        self._told_of_makers = ""
        """What was said last of how a model's makers sample."""
        self.resumed: Conversation | None = None
        """An older conversation whose model has not been compared with the present one yet."""

    @property
    def source(self) -> Source:
        """The source that answers now."""
        return self.models.source

    @property
    def ready(self) -> EngineReady | None:
        """The model that answers, as it introduced itself; None while it loads."""
        return self.chat.reducer.ready

    def _send(self, command: Command) -> None:
        self.source.send(command)

    def begin_chat(self) -> None:
        """Show the conversation that goes on, if one does, and take over the system prompt that was asked for."""
        if self.begin.conversation is not None:
            self._resume(self.begin.conversation)
        self.chat.system = self.begin.system or self.chat.system

    def leave(self) -> None:
        """Tell the source to end the answer that runs, and itself."""
        self.source.send(Stop())
        self.source.send(Close())

    # What can be done now

    def require(self, feature: Feature) -> None:
        """Raise ``SlashError`` with the reason where the source lacks this."""
        if reason := self.source.capabilities.refused.get(feature):
            raise SlashError(reason)

    def require_idle(self) -> None:
        """Raise ``SlashError`` while an answer runs, and where no question can be asked."""
        self.require("ask")
        if self.chat.busy:
            raise SlashError("An answer is on its way. Esc stops it first.")

    def chosen(self, words: str) -> Turn:
        """The question that ``words`` names by number or branch, the newest without. Raises ``SlashError``."""
        chosen = self.chat.tree.find(words) if words else self.chat.newest
        if chosen is None:
            missing = f"There is no question or branch {words}. /tree lists them all."
            raise SlashError(missing if words else "There is no question yet.")
        return chosen

    def answers(self) -> list[str]:
        """Every answer of the path, newest first, the running one included."""
        turn = self.chat.reducer.turn
        running = [turn.text] if turn is not None and turn.running else []
        return [*running, *reversed(self.chat.answers)]

    # Asking

    def ask(
        self,
        text: str,
        files: tuple[Attachment, ...] = (),
        pasted: tuple[str, ...] = (),
        *,
        version_of: int | None = None,
    ) -> None:
        """Ask a question with its files, after the answer that runs; or as another version of a question, by default of
        the one that is being edited. Raises ``SlashError`` when none can be asked any more, or this one doesn't fit."""
        chat = self.chat
        self.require("ask")
        if chat.reducer.phase == "failed":
            who = "The engine has ended and" if self.source.capabilities.local else "The server"
            raise SlashError(f"{who} can't answer. The message above says what to do.")
        if chat.busy:
            chat.queued.append(Queued(text, files, pasted))
            self.face.changed("queue")
            return
        edited, tree = self.editing if version_of is None else version_of, chat.tree
        parent = tree.here if edited is None else tree[edited].parent

        def fits(context: QuestionContext) -> None:
            """Asks at the place that was meant; where a new chat has begun since, at the beginning of that."""
            chat.ask(text, parent=parent if chat.tree is tree else None, context=context)
            self._asked()

        self.fit.require(text, QuestionContext(files, pastes=pastes_in(text, pasted)), tree.path_to(parent), fits)

    def _asked(self) -> None:
        self.editing = self._turned = None
        self.face.changed("asked", self.chat.tree.here)

    def ask_again(self, again: Retry) -> None:
        """Ask a question once more. The same seed would give the same answer, so without settings the next one is used;
        greedy decoding has none."""
        self.require_idle()
        chat, earlier = self.chat, self.chosen(again.which)
        for feature in again.features:
            self.require(feature)
        if again.drafter:
            self.models.switch(chat, "", again.drafter)  # the question waits for it
        if again.settings is None and chat.settings.temperature == 0:
            if earlier.is_whole:
                self.face.say("At temperature 0 the same question has the same answer; /temp 0.7 lets it vary.")
        elif again.settings is None and self.source.capabilities.can("seed"):
            chat.adjust(seed=chat.next_seed(earlier.number))
        chat.ask_again(earlier.number, again.settings)
        self._asked()

    def stop(self) -> bool:
        """End the answer that runs; False when none does. What waited behind it is the user's again."""
        waiting = self.chat.waiting
        if not self.chat.stop():
            return False
        if waiting:
            self.face.changed("withdrawn")
        self.return_queue()
        return True

    def return_queue(self) -> None:
        """Give the questions back that waited for an answer which was stopped."""
        waiting = self.chat.take_queued()
        self.face.changed("queue")
        self._give_back(waiting)

    def _give_back(self, questions: Sequence[Queued]) -> None:
        """Let the user have these again, with their pastes, and their files as they were."""
        if questions:
            self.files.give_back(questions)
            self.face.give_back(questions)

    def take_queued(self) -> Queued | None:
        """Take the newest question that waits out of the queue; None where none waits."""
        queued = self.chat.queued.pop() if self.chat.queued else None
        if queued is not None:
            self.files.give_back([queued])
        self.face.changed("queue")
        return queued

    def edit(self, number: int) -> None:
        """Let the user write a question anew, to be asked as another version of it."""
        self.require_idle()
        self.face.reword(self.chat.tree[number])

    # What the source said

    def after_turn(self) -> None:
        """Go on with the questions that wait. To be called when an answer has ended and is shown."""
        following = self.chat.next_queued()
        self.fit.after_turn()
        if following is not None:
            try:
                self.ask(*following)
            except SlashError as error:
                self.face.say(str(error), grave=True)
                self._give_back([following])
        elif not self.chat.busy and self.chat.queued:
            self.return_queue()
        self.face.changed("queue")

    def became_ready(self, ready: EngineReady) -> None:
        """Take note that a source can answer; whoever applies events calls this."""
        self._tell_other_model()
        self.models.ready(self.chat, ready)
        if (words := self.makers.words(ready)) and words != self._told_of_makers:
            self._told_of_makers = words
            self.face.say(words, "end")

    # The tree

    def go(self, number: int, *, below: bool = False) -> None:
        """End the path at a turn, or where a path through it ended last. Raises ``SlashError`` while an answer runs."""
        self.require_idle()
        if below:
            self.chat.visit(number)
        else:
            self.chat.go(number)
        self.face.changed("path")

    def turn_over(self, number: int, which: NodePart, by: int) -> None:
        """Go to the version beside a question or an answer. Raises ``SlashError`` behind the ends."""
        neighbour = self.chat.tree.neighbour(number, which, by)
        if neighbour is None:
            index, count = self.chat.tree.version_of(number, which)
            raise SlashError(
                f"There are {count} versions of this {which}, and this is version {index}."
                if count > 1
                else f"This {which} has one version."
            )
        self.go(neighbour.number, below=True)
        self._turned = (neighbour.number, which)
        if which == "question":
            self.face.changed("place", neighbour.number)

    def visit(self, number: int) -> None:
        """Bring a question into view, on the path if it is there and else where its branch was left. Raises
        ``SlashError`` while an answer runs, or when it is gone."""
        if number not in self.chat.tree:
            raise SlashError(f"There is no question {number} in this conversation any more.")
        if self.chat.tree.on_path(number) is None:
            self.go(number, below=True)
        self.face.changed("place", number)

    def turnable(self, by: int = 0) -> tuple[int, NodePart]:
        """The turn and the part of it whose versions the keys step through: what they changed last, so that the other
        key undoes it, else the newest answer or question, of those with a version in direction ``by`` (-1 or 1) if any
        has one. Raises ``SlashError`` where nothing has versions."""
        self.require_idle()
        tree, versions = self.chat.tree, marks(self.chat)
        if not versions:
            raise SlashError("Nothing here has versions yet: /retry asks again, /edit changes a question.")
        nearest = [*(mark for mark in versions if mark == self._turned), *reversed(versions)]
        return next((mark for mark in nearest if by and tree.neighbour(*mark, by)), nearest[0])

    def name(self, number: int, text: str) -> None:
        """Name the branch that begins at question ``number``; an empty ``text`` takes its name away."""
        self.chat.name(text, number)
        self.face.changed("named", number)

    # Settings

    def adjust(self, **changes: Any) -> None:
        """Change settings: see ``Chat.adjust``."""
        self.chat.adjust(**changes)
        self.face.changed("settings")

    # Other conversations

    def new(self) -> None:
        """Begin an empty conversation. Raises ``SlashError`` while an answer runs."""
        self.require_idle()
        self.queue.renew_log()
        self.chat.new(renumber=self.queue.trace is None)  # which tells all turns of a run by their numbers
        self._forget()
        self.face.changed("new")

    def resume(self, path: Path) -> None:
        """Go on with this file's conversation, and the settings that it was left with. ``SlashError`` or ``Failure``:
        the present one stays."""
        self.require_idle()
        if path == self.queue.log.path:
            raise SlashError("That is this conversation.")
        conversation, log = reopen(path)
        self.queue.renew_log(log)
        self._resume(conversation)
        self.chat.settings = restored(self.chat.settings, conversation.settings)
        self.face.changed("settings")
        self._tell_other_model()

    def _resume(self, conversation: Conversation) -> None:
        self.chat.resume(conversation)
        self._forget()
        self.resumed = conversation
        self.face.changed("resumed")
        if conversation.damaged:
            self.face.say(
                f"{counted(conversation.damaged, 'line')} of its file could not be read; the rest is here.", "end"
            )
        for problem in conversation.passed_over:
            self.face.say(f"A later conversation could not be gone on with: {problem}", "end")

    def _forget(self) -> None:
        """Drop what belonged to the conversation before."""
        self.editing = self._turned = self.resumed = None

    def _tell_other_model(self) -> None:
        """A resumed conversation says so, once, when another model goes on with it."""
        ready, resumed = self.ready, self.resumed
        if ready is None or resumed is None:
            return
        self.resumed = None
        if resumed.target not in (None, ready.target):
            self.face.say(f"So far this was a conversation with {resumed.target}. {ready.target} goes on.", "end")


REFUSALS = (SlashError, ValueError, Failure, EngineFailure)
"""What says in words for people why something can't be done."""


def refusal(error: Exception) -> str:
    """An error's message as a sentence, and what to do next."""
    if type(error) is ValueError:
        text = str(error).rstrip(".")
        return f"{text[:1].upper()}{text[1:]}."
    hint = error.hint if isinstance(error, Failure) else ""
    return f"{error} {hint}" if hint else str(error)
