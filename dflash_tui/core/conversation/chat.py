"""A conversation seen from the front end: what was said, the settings, and which commands the engine gets.

It is a tree (:mod:`.tree`), and every front end moves in it the same way; the record on disk is kept in step:

* :meth:`Chat.ask` asks what follows the end of the path, or with ``parent`` another version of a question;
* :meth:`Chat.ask_again` asks the same question again, maybe with other settings for this answer alone
  (:func:`.retry.parse_retry` reads them as they are typed);
* :meth:`Chat.go` ends the path at any answer, to go on from there; :meth:`Chat.visit` goes to where a branch was left;
  ``Tree.beside`` finds the version before or behind (``Tree.place`` says which of how many is on the path);
* :meth:`Chat.name` names the branch that begins at a question; ``Tree.find`` finds one by number or name;
* ``chat.tree.path`` is what the conversation says now, ``chat.tree.outline()`` the whole of it in the order of a
  drawing, each an :class:`Exchange`; :func:`.transcript.retell` has the text of any part of the path in its looks.

Editing needs no call of its own: show ``tree[n].question`` to be changed, then ``ask(text, parent=tree[n].parent)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from engine.commands import Adjust, Ask, Command, GenerationSettings, Message, Stop
from engine.events import EngineError, EngineReady, FinishReason, TurnFinished, TurnStarted, TurnStatistics

from ..attachments.attachment import Attachment, without_files
from ..files.running import RunResult
from ..sessions.sessions import Conversation, SessionLog
from ..sessions.turn import StoredTurn
from ..settings.presets import Preset
from ..source import Feature, Happening, Rewind
from .folds import behind_question
from .question_context import NOTHING, QuestionContext, messages_of
from .reducer import Reducer, TurnState
from .transcript import recall
from .tree import ROOT, Tree


@dataclass(slots=True)
class Exchange:
    """One question with its answer: a node of the tree."""

    number: int
    question: str
    parent: int = ROOT
    name: str = ""
    system: str | None = None
    answer: str = ""
    """Without one, neither it nor its question is part of what the model reads."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings the answer was decoded with, as in ``TurnStarted``."""
    once: bool = False
    """Whether the settings are for this answer alone."""
    target: str | None = None
    drafter: str | None = None
    """The names of the models that answered."""
    reason: FinishReason | None = None
    """None: it has no end yet, or the program ended within it."""
    figures: TurnStatistics = field(default_factory=TurnStatistics)
    beside: QuestionContext = NOTHING
    """What goes with the question."""
    runs: list[RunResult] = field(default_factory=list)
    """What came of running code blocks of the answer."""

    @property
    def is_whole(self) -> bool:
        """Whether the answer ended by itself: the same question with the same settings would end there again."""
        return self.reason in ("stop", "length", "context")


class Queued(NamedTuple):
    """A question that waits for the answer before it."""

    text: str
    files: tuple[Attachment, ...] = ()
    pasted: tuple[str, ...] = ()
    """Texts in it that were pasted, and folded."""


class Chat:
    """Turns the user's wishes into commands and the engine's events into state. Questions wait for loading models, a
    stop for its question to begin."""

    def __init__(
        self,
        settings: GenerationSettings,
        send: Callable[[Command], None],
        log: Callable[[], SessionLog] = SessionLog.nowhere,
    ) -> None:
        """``log``: the record of the conversation that is on now."""
        self.settings = settings
        self.reducer = Reducer()
        self.tree: Tree[Exchange] = Tree()
        self.system: str | None = None
        self.stored: dict[int, StoredTurn] = {}
        """Turns of an older conversation that have not been looked at yet."""
        self.queued: list[Queued] = []
        """Questions to ask when the answer that runs has ended by itself, oldest first."""
        self._send = send
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
        self._listed: tuple[list[Exchange], int, list[TurnState]] = ([], 0, [])
        """What ``turns`` returned last, and for which path and how many known turns."""
        self._follow_tree()

    def _follow_tree(self) -> None:
        self.reducer.place_of = lambda turn: self.tree.place(turn, "answer") if turn in self.tree else (1, 1)
        self.reducer.asked = lambda: self._asked is not None

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

    @property
    def next_turn(self) -> int:
        return self._turns + 1

    # What was said

    @property
    def messages(self) -> list[Message]:
        """The path as the model reads it; a question without an answer stands in it only while it is asked."""
        said = [message for message in messages_of(self.tree.path, None) if message.role != "system"]
        newest = self.newest
        if newest is not None and self._asked is not None and newest.number == self._asked.turn:
            said.append(Message("user", newest.beside.prompt(newest.question)))
        return said

    @property
    def answers(self) -> list[str]:
        """Every answer of the path, oldest first, for saving code."""
        return [exchange.answer for exchange in self.tree.path if exchange.answer]

    @property
    def turns(self) -> list[TurnState]:
        """The path's turns, oldest first, as far as they were run or told here. Every frame looks at them."""
        path, known, turns = self._listed
        if path is not self.tree.path or known != len(self.reducer.turns):
            states = (self.reducer.turn_of(exchange.number) for exchange in self.tree.path)
            turns = [state for state in states if state is not None]
            self._listed = (self.tree.path, len(self.reducer.turns), turns)
        return turns

    def state_of(self, number: int) -> TurnState | None:
        """A turn as it was decoded; None where only its text was kept."""
        state, stored = self.reducer.turn_of(number), self.stored.get(number)
        if state is None and stored is not None and (recalled := recall(stored)) is not None:
            state = recalled[0]
            self.reducer.adopt(state)
        return state

    @property
    def newest(self) -> Exchange | None:
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
        beside: QuestionContext = NOTHING,
    ) -> int:
        """Ask what follows the end of the path, or the turn ``parent``; returns the turn's number. ``settings``: for
        this answer alone; ``beside``: what goes with the question. Must not be called while ``busy``."""
        self._turns += 1
        elsewhere = parent is not None and parent != self.tree.here
        # Before the engine hears of it: the record must not miss the question of an answer.
        self._log().user(
            self._turns,
            text,
            self.system,
            parent=parent if elsewhere else None,
            once=settings is not None,
            beside=beside,
        )
        self._before = self.tree.here
        used = settings or self.settings
        follows = self.tree.here if parent is None else parent
        exchange = Exchange(self._turns, text, follows, "", self.system, settings=used.to_dict(), beside=beside)
        exchange.once = settings is not None
        self.tree.add(exchange)
        self._asked = Ask(self._turns, messages_of(self.tree.path, self.system, text, beside), used, compares=True)
        self._sent = self._stopping = self._ended_well = False
        if self.reducer.ready is not None:
            self._send_question()
        return self._turns

    def ask_again(self, number: int, settings: GenerationSettings | None = None) -> int:
        """Another version of an answer: the same question once more, with ``settings`` for this answer alone."""
        exchange = self.tree[number]
        return self.ask(exchange.question, parent=exchange.parent, settings=settings, beside=exchange.beside)

    def add_run(self, number: int, result: RunResult) -> None:
        """Record what came of running a code block of a turn's answer."""
        self.tree[number].runs.append(result)
        self._log().ran(number, result)

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
            self._send(Stop())
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
        self.reducer.stand_at(self.state_of(number))

    def _take_system(self) -> None:
        """Take over the system prompt under which the last answer of the path was written."""
        answered = (exchange for exchange in reversed(self.tree.path) if exchange.answer)
        self.system = next((exchange.system for exchange in answered), self.system)

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
                self._send(change)
            else:
                self._asked = replace(self._asked, settings=self._asked.settings.with_changes(change))

    def take_preset(
        self, preset: Preset | None, at_start: GenerationSettings, require: Callable[[Feature], None]
    ) -> None:
        """Its system prompt and settings from the next question on; None: ``at_start`` and no system prompt.
        ``require`` raises for what the source lacks; then nothing changes."""
        wanted = at_start if preset is None else preset.applied(self.settings)
        if preset is not None and preset.system is not None:
            require("system")
        for name, value in wanted.to_dict().items():
            if value != getattr(self.settings, name):
                require(cast(Feature, name))  # features have the names of settings
        if preset is None or preset.system is not None:
            self.system = None if preset is None else preset.system
        self.settings = wanted

    # Other conversations

    def new(self, *, renumber: bool = True) -> None:
        """Forget the conversation. Must not be called while ``busy``. ``renumber``: its first answer is number 1."""
        self._turns = 0 if renumber else self._turns
        self.tree = Tree()
        self.stored = {}
        self.queued.clear()
        self.reducer.forget()

    def resume(self, conversation: Conversation) -> None:
        """Go on with an older conversation in the place of this one. Must not be called while ``busy``."""
        self.new(renumber=False)
        self._turns = max(self._turns, conversation.last_turn)
        for turn in conversation.tree:
            self.tree.add(_exchange(turn))
            self.stored[turn.number] = turn
        self.tree.adopt(conversation.tree)
        self._take_system()
        self.reducer.stand_at(self.state_of(self.tree.here))

    def apply(self, event: Happening) -> None:
        if isinstance(event, Rewind):
            self._rewind()
            return
        if isinstance(event, TurnStarted) and (self._asked is None or self._asked.turn != event.turn):
            self._watch(event)
        self.reducer.apply(event)
        if isinstance(event, EngineReady):
            self._send_question()
        elif isinstance(event, TurnStarted):
            self._begin(event)
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
        self.reducer = Reducer()
        self._follow_tree()

    def _begin(self, event: TurnStarted) -> None:
        if event.turn in self.tree and (ready := self.reducer.ready) is not None:
            exchange = self.tree[event.turn]
            exchange.settings, exchange.target, exchange.drafter = event.settings, ready.target, ready.drafter
        if self._stopping:
            # The engine may have dropped a stop that reached it before the question.
            self._send(Stop())

    def _watch(self, event: TurnStarted) -> None:
        """Add a turn that begins without having been asked here: a replay's."""
        question, files = without_files(event.question)
        beside = QuestionContext(files)
        self.reducer.show_question(question, behind_question(beside))
        if event.turn > self._turns:
            self._turns = event.turn
            self.tree.add(Exchange(event.turn, question, self.tree.here, beside=beside))

    def _finish(self, event: TurnFinished) -> None:
        if event.turn in self.tree and (self._asked is None or self._asked.turn == event.turn):
            exchange = self.tree[event.turn]
            exchange.answer, exchange.reason, exchange.figures = event.text, event.reason, event.statistics
        if self._asked is not None and self._asked.turn == event.turn:
            self._asked = None
            self._stopping = False
            self._ended_well = event.reason in ("stop", "length")

    def _keep_speed_up(self, number: int) -> None:
        """Write down how many times as fast an answer was: later there may be more, or less, to count it with."""
        turn = self.reducer.turn_of(number)
        if turn is not None and turn.speed_up is not None and number in self.tree:
            self._log().speed_up(number, turn.speed_up)


def _exchange(turn: StoredTurn) -> Exchange:
    """The node of the tree for a turn that was read from a file."""
    settings = turn.started.settings if turn.started is not None else {}
    known = (turn.number, turn.question, turn.parent, turn.name, turn.system, turn.answer, settings, turn.once)
    target, drafter = (turn.by.target, turn.by.drafter) if turn.by is not None else (None, None)
    return Exchange(*known, target, drafter, turn.reason, turn.figures, turn.beside, list(turn.runs))
