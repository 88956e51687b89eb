"""A conversation seen from the front end: what was said, the settings, and which commands the engine gets.

It is a tree (:mod:`.tree`), and every front end moves in it the same way; the record on disk is kept in step:

* :meth:`Chat.ask` asks what follows the end of the path, or with ``parent`` another version of a question;
* :meth:`Chat.ask_again` asks the same question again, maybe with other settings for this answer alone
  (:func:`.retry.parse_retry` reads them as they are typed);
* :meth:`Chat.go` ends the path at any answer, to go on from there; :meth:`Chat.visit` goes to where a branch was left;
  ``Tree.neighbour`` finds the version before or behind (``Tree.version_of`` says which of how many is on the path);
* :meth:`Chat.name` names the branch that begins at a question; ``Tree.find`` finds one by number or name;
* ``chat.tree.path`` is what the conversation says now, ``chat.tree.outline()`` the whole of it in the order of a
  drawing, each a :class:`Turn`; :func:`.transcript.retell` has the text of any part of the path in its looks.

Editing needs no call of its own: show ``tree[n].question`` to be changed, then ``ask(text, parent=tree[n].parent)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from engine.commands import Adjust, Ask, Command, GenerationSettings, Message, Stop
from engine.events import EngineError, EngineReady, TurnFinished, TurnStarted
from engine.rounds.store import RoundStore

from ..attachments.attachment import Attachment, without_files
from ..sessions.sessions import Conversation, SessionLog
from ..source import Happening, Rewind
from .folds import behind_question
from .question_context import NOTHING, QuestionContext, messages_of
from .reducer import Reducer
from .tree import ROOT, Tree
from .turn import Turn


class Queued(NamedTuple):
    """A question that waits for the answer before it."""

    text: str
    files: tuple[Attachment, ...] = ()
    pasted: tuple[str, ...] = ()
    """Texts in it that were pasted, and folded."""


class Chat:
    """Turns the user's wishes into commands and the engine's events into state. Questions wait for loading models."""

    def __init__(
        self,
        settings: GenerationSettings,
        send: Callable[[Command], None],
        log: Callable[[], SessionLog] = SessionLog.nowhere,
        rounds_of: Callable[[int], RoundStore | None] = lambda turn: None,
    ) -> None:
        """``log``: the record of the conversation that is on now; ``rounds_of``: that of a turn's rounds."""
        self.settings = settings
        self.reducer = Reducer(rounds_of)
        self.system: str | None = None
        self.queued: list[Queued] = []
        """Questions to ask when the answer that runs has ended by itself, oldest first."""
        self._send, self._rounds_of = send, rounds_of
        self._log = log
        self._turns = 0
        self._asked: Ask | None = None
        self._before = ROOT
        """The number of the turn at which the path ended before that question."""
        self._sent = False
        self._stopping = False
        self._ended_well = False
        self.unasked: int | None = None
        """The number of a question that waited for a model which couldn't be had."""
        self._listed: tuple[list[Turn], int, list[Turn]] = ([], 0, [])
        """What ``turns`` returned last, and for which path and how many known turns."""

    @property
    def tree(self) -> Tree[Turn]:
        """Everything that was asked."""
        return self.reducer.tree

    @property
    def busy(self) -> bool:
        """Whether a question is on its way or being answered, whoever asked it."""
        return self._asked is not None or self.reducer.busy

    @property
    def stopping(self) -> bool:
        return self._stopping

    @property
    def waiting(self) -> bool:
        """Whether a question waits for the models to load."""
        return self._asked is not None and not self._sent

    # What was said

    @property
    def messages(self) -> list[Message]:
        """The path as the model reads it; a question without an answer stands in it only while it is asked."""
        earlier = [message for message in messages_of(self.tree.path, None) if message.role != "system"]
        newest = self.newest
        if newest is not None and self._asked is not None and newest.number == self._asked.turn:
            earlier.append(Message("user", newest.attached.prompt(newest.question)))
        return earlier

    @property
    def answers(self) -> list[str]:
        """Every answer of the path, oldest first, for saving code."""
        return [turn.answer for turn in self.tree.path if turn.answer]

    @property
    def turns(self) -> list[Turn]:
        """The path's turns, oldest first, as far as they were run or told here. Every frame looks at them."""
        path, known, turns = self._listed
        if path is not self.tree.path or known != len(self.reducer.turns):
            turns = [turn for turn in self.tree.path if self.reducer.turn_of(turn.number) is not None]
            self._listed = (self.tree.path, len(self.reducer.turns), turns)
        return turns

    @property
    def newest(self) -> Turn | None:
        """The last question of the path."""
        return self.tree.path[-1] if self.tree.path else None

    # Questions that wait

    def next_queued(self) -> Queued | None:
        """Take the next queued question; None while an answer runs or after one that was stopped or failed."""
        if self.busy or not self.queued or not self._ended_well:
            return None
        return self.queued.pop(0)

    def take_queued(self) -> list[Queued]:
        """Empty the queue."""
        taken, self.queued = self.queued, []
        return taken

    # Asking

    def ask(
        self,
        text: str,
        *,
        parent: int | None = None,
        settings: GenerationSettings | None = None,
        context: QuestionContext = NOTHING,
    ) -> int:
        """Ask what follows the end of the path, or the turn ``parent``; returns the turn's number. ``settings``: for
        this answer alone; ``context``: what goes with the question. Must not be called while ``busy``."""
        self._turns += 1
        elsewhere = parent is not None and parent != self.tree.here
        # Before the engine hears of it: the record must not miss the question of an answer.
        self._log().user(
            self._turns,
            text,
            self.system,
            parent=parent if elsewhere else None,
            once=settings is not None,
            context=context,
        )
        self._before = self.tree.here
        used = settings or self.settings
        follows = self.tree.here if parent is None else parent
        turn = Turn(
            self._turns, text, follows, "", self.system, settings=used.to_dict(), attached=context, running=True
        )
        turn.once = settings is not None
        self.tree.add(turn)
        self._asked = Ask(self._turns, messages_of(self.tree.path, self.system, text, context), used, compares=True)
        self._sent = self._stopping = self._ended_well = False
        if self.reducer.ready is not None:
            self._send_question()
        return self._turns

    def ask_again(self, number: int, settings: GenerationSettings | None = None) -> int:
        """Another version of an answer: the same question once more, with ``settings`` for this answer alone."""
        turn = self.tree[number]
        return self.ask(turn.question, parent=turn.parent, settings=settings, context=turn.attached)

    def next_seed(self, number: int) -> int:
        """A seed that no version of this answer was decoded with."""
        seeds = (each.settings.get("seed") for each in self.tree.versions(number, "answer"))
        return 1 + max([self.settings.seed, *(seed for seed in seeds if isinstance(seed, int))])

    def stop(self) -> bool:
        """End the running turn after its round in flight. False when nothing runs."""
        if self._asked is None:
            return False
        if not self._sent:
            self.withdraw(self._asked.turn)
            return True
        if not self._stopping:
            self._stopping = True
            self._send(Stop(self._asked.turn))
        return True

    def withdraw(self, turn: int) -> None:
        """Take back the newest question, which was never sent."""
        self._asked = self.unasked = None
        self._log().take_back(turn)
        self.tree.withdraw(turn)
        if self.tree.here != self._before:
            self.go(self._before)

    # Moving in the tree; not while ``busy``

    def go(self, number: int) -> None:
        """End the path at a turn, or at ``ROOT``: the next question follows it, under its system prompt. ``KeyError``
        if there is none."""
        if number != self.tree.here:
            self.tree.go(number)
            self._log().here(number)
        self._take_system()
        self.reducer.stand_at(self.reducer.look_at(number))

    def _take_system(self) -> None:
        """Take over the system prompt under which the last answer of the path was written."""
        answered = (turn for turn in reversed(self.tree.path) if turn.answer)
        self.system = next((turn.system for turn in answered), self.system)

    def visit(self, number: int) -> None:
        """Go to where a path through this turn ended last. ``KeyError``."""
        self.go(self.tree.end_below(number))

    def name(self, text: str, number: int) -> None:
        """Name the branch that begins at a turn; an empty ``text`` takes its name away."""
        self.tree[number].name = text
        self._log().branch(number, text)

    # Settings

    def adjust(self, **changes: Any) -> None:
        """Change settings from the next question on, and those that ``Adjust`` knows at once. Raises ``ValueError`` in
        words for people when out of range."""
        self.settings = replace(self.settings, **changes)
        change = Adjust(**{name: changes[name] for name in Adjust.__dataclass_fields__.keys() & changes.keys()})
        if change != Adjust() and self._asked is not None:
            if self._sent:
                self._send(replace(change, turn=self._asked.turn))
            else:
                self._asked = replace(self._asked, settings=self._asked.settings.with_changes(change))

    # Other conversations

    def new(self, *, renumber: bool = True) -> None:
        """Forget the conversation. Must not be called while ``busy``. ``renumber``: its first answer is number 1."""
        self._turns = 0 if renumber else self._turns
        self.queued.clear()
        self.reducer.forget()

    def resume(self, conversation: Conversation) -> None:
        """Go on with an older conversation in the place of this one. Must not be called while ``busy``."""
        self.new(renumber=False)
        self._turns = max(self._turns, conversation.last_turn)
        self.reducer.resume(conversation.tree)
        self._take_system()

    def apply(self, event: Happening) -> None:
        if isinstance(event, Rewind):
            self._rewind()
            return
        if isinstance(event, TurnStarted) and (self._asked is None or self._asked.turn != event.turn):
            self._watch(event)
        self.reducer.apply(event)
        if isinstance(event, EngineReady):
            self._send_question()
        elif isinstance(event, TurnFinished):
            self._finish(event)
            self._keep_speed_up(event.turn)
        elif isinstance(event, EngineError) and event.fatal:
            self.unasked = self._asked.turn if self._asked is not None and not self._sent else None
            self._asked, self._stopping = None, False

    def _send_question(self) -> None:
        if self._asked is not None and not self._sent:
            self._sent = True
            self._send(self._asked)

    def _rewind(self) -> None:
        self.new()
        self._turns = 0
        self.reducer = Reducer(self._rounds_of)

    def _watch(self, event: TurnStarted) -> None:
        """Add a turn that begins without having been asked here: a replay's."""
        question, files = without_files(event.question)
        context = QuestionContext(files)
        self.reducer.show_question(question, behind_question(context))
        if event.turn > self._turns:
            self._turns = event.turn
            self.tree.add(Turn(event.turn, question, self.tree.here, running=True, attached=context))

    def _finish(self, event: TurnFinished) -> None:
        if self._asked is not None and self._asked.turn == event.turn:
            self._asked = None
            self._stopping = False
            self._ended_well = event.reason in ("stop", "length")

    def _keep_speed_up(self, number: int) -> None:
        """Write down how many times as fast an answer was: later there may be more, or less, to count it with."""
        turn = self.reducer.turn_of(number)
        if turn is not None and turn.speed_up is not None and number in self.tree:
            self._log().speed_up(number, turn.speed_up)
