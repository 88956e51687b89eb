"""Events in, conversation out: the one place where the screen's state changes because the engine said something."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Literal

from engine.events import (
    EngineError,
    EngineReady,
    Event,
    FinishReason,
    LoadProgress,
    Notice,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
)
from engine.rounds.store import RoundStore

from ..figures.labels import accepted_share
from ..figures.speed_up import SpeedUp
from ..rounds.factor import Answered, Around, around_of, costs_of
from ..source import StepBatch
from ..text.counted import counted
from ..text.spans import Span, Spans
from .step_spans import noted, version_spans
from .tree import Tree
from .turn import Turn

Phase = Literal["loading", "ready", "prefill", "streaming", "failed"]


_REASONS: dict[FinishReason, str] = {
    "stop": "",
    "length": "reached the token limit",
    "context": "the context is full: Ctrl+N starts a new chat, /edit takes this question back",
    "stopped": "⏹ stopped",
    "error": "ended by an error",
}


class Reducer:
    """Applies events in order. ``take_spans`` hands out what the transcript gained since the last call."""

    def __init__(self, rounds_of: Callable[[int], RoundStore | None] = lambda turn: None) -> None:
        """``rounds_of``: where the rounds of a turn that begins are kept already, if they are written down."""
        self.tree: Tree[Turn] = Tree()
        """Everything that was asked. Turns that nobody asked here, as where a server is watched, are not in it."""
        self.phase: Phase = "loading"
        self.loading: list[LoadProgress] = []
        """The latest progress of each phase, in the order the phases began."""
        self.ready: EngineReady | None = None
        self.failure: EngineError | None = None
        self.turn: Turn | None = None
        """The turn that runs, or else the last of the path."""
        self.turns: list[Turn] = []
        """Every turn of this chat that was run or looked at, whichever path it is on, in that order."""
        self._numbered: dict[int, Turn] = {}
        self._rounds_of = rounds_of
        self._notices: list[Notice] = []
        self._told_notices = 0
        """How many of them the transcript has."""
        self._spans = Spans()

    @property
    def busy(self) -> bool:
        return self.phase in ("prefill", "streaming")

    def take_spans(self) -> Spans:
        spans, self._spans = self._spans, Spans()
        return spans

    def apply(self, event: Event | StepBatch) -> None:
        match event:
            case Step() | StepBatch():
                self._add(event)
            case LoadProgress():
                self._progress(event)
            case EngineReady():
                self.ready, self.phase = event, "ready"
            case TurnStarted():
                turn = self._begin(event.turn)
                turn.begin(event, self.ready, self._rounds_of(event.turn))
                turn.around = self._around(turn)
                self.phase = "prefill"
            case PrefillDone():
                if self.turn:
                    self.turn.prefill_ms = event.milliseconds
                self.phase = "streaming"
            case TurnFinished():
                self._finish(event)
            case EngineError():
                self._error(event)
            case Notice():
                self._notice(event)

    def _around(self, turn: Turn) -> Around:
        """What the answers so far tell of the target that answers ``turn``, the latest first."""
        decoded = (each for each in reversed(self.turns) if not each.time and each is not turn)
        before = (each for each in decoded if _same_target(each.by, turn.by))
        answered = (Answered(_costs(each), each.speculation, each.rounds, each.around) for each in before)
        return around_of(_costs(turn), answered)

    def show_question(self, text: str, files: Sequence[Span] = ()) -> None:
        """A question that this front end did not ask becomes part of the transcript, with lines for its files."""
        if text or files:
            ending = [Span("\n", "plain"), *files, Span("\n", "plain")] if files else [Span("\n\n", "plain")]
            self._spans.extend(Spans.of([Span(text, "prompt"), *ending]))

    def load_anew(self) -> None:
        """Another model is on its way; what was said stays."""
        self.phase = "loading"
        self.loading = []
        self.ready = self.failure = None

    def forget(self) -> None:
        """A new chat: the last turn's answer and statistics leave the screen."""
        self.turn = None
        self.tree = Tree()
        self.turns.clear()
        self._numbered.clear()
        self._spans = Spans()

    def turn_of(self, number: int) -> Turn | None:
        """The turn with this number, if it was run or looked at."""
        return self._numbered.get(number)

    def look_at(self, number: int) -> Turn | None:
        """The turn with this number, as it was decoded; None where it never was."""
        if number not in self._numbered and number in self.tree and self.tree[number].started is not None:
            self._adopt(self.tree[number])
        return self.turn_of(number)

    def _adopt(self, turn: Turn) -> None:
        """Add a turn to those that are known: one that begins now, or one from a file."""
        self.turns.append(turn)
        self._numbered[turn.number] = turn

    def resume(self, tree: Tree[Turn]) -> None:
        """Go on with an older conversation."""
        self.tree = tree
        self.stand_at(self.look_at(tree.here))

    def stand_at(self, turn: Turn | None) -> None:
        """Make ``turn`` the last one of what the screen shows."""
        self.turn = turn

    def _current(self, number: int | None) -> Turn | None:
        """The turn that the screen shows last, if it has this number."""
        return self.turn if self.turn is not None and self.turn.number == number else None

    def _begin(self, number: int) -> Turn:
        self.turn = self.tree[number] if number in self.tree else Turn(number)
        self._adopt(self.turn)
        return self.turn

    def _progress(self, event: LoadProgress) -> None:
        if self.loading and self.loading[-1].phase == event.phase:
            self.loading[-1] = event
        else:
            self.loading.append(event)

    def _add(self, steps: Step | StepBatch) -> None:
        if turn := self._current(steps.turn):
            self.phase = "streaming"
            self._spans.extend(turn.add(steps) if isinstance(steps, Step) else turn.extend(steps))

    def _notice(self, event: Notice) -> None:
        """Tell a notice once, however often it comes: ahead of a question or behind its answer, never between."""
        if event not in self._notices:
            self._notices.append(event)
        if not self.busy and (event.ahead or not self._asked):
            self._tell_notices()

    @property
    def _asked(self) -> bool:
        """Whether a question is on its way whose turn has not begun."""
        return self.phase != "failed" and bool(self.tree.path) and self.tree.path[-1].running

    def _tell_notices(self) -> None:
        for notice in self._notices[self._told_notices :]:
            advice = f"\n  {notice.advice}" if notice.advice else ""
            self._spans.append(Span(f"{notice.message}{advice}\n\n", "note"))
        self._told_notices = len(self._notices)

    def _finish(self, event: TurnFinished) -> None:
        if self.phase != "failed":
            self.phase = "ready"
        turn = self._current(event.turn) or self._begin(event.turn)
        turn.finish(event, turn.factor)
        version = self.tree.version_of(event.turn, "answer") if event.turn in self.tree else (1, 1)
        self._spans.extend(ending(turn, event, version))
        self._tell_notices()

    def _error(self, event: EngineError) -> None:
        if event.turn is not None:
            turn = self._current(event.turn) or self._begin(event.turn)  # refused before it began
            turn.error = event
        if event.fatal:
            self.failure, self.phase = event, "failed"
        else:
            refused = self._current(event.turn)
            self._spans.append(failure(event, refused.text if refused else ""))


def _same_target(one: EngineReady | None, other: EngineReady | None) -> bool:
    """Whether both are one target on one device in one dtype, whatever drafter stands beside it: then a token costs the
    same without speculation. False where either is None."""
    if one is None or other is None:
        return False
    named = ((each.target, each.target_hash, each.device, each.dtype, each.server) for each in (one, other))
    return len(set(named)) == 1


def _costs(turn: Turn) -> Hashable:
    settings = turn.started.settings if turn.started is not None else {}
    return costs_of(settings, turn.by.drafter if turn.by is not None else None)


def failure(event: EngineError, begun: str) -> Span:
    """An error behind as much of an answer as there is."""
    hint = f"\n  {event.hint}" if event.hint else ""
    gap = "\n\n" if begun and not begun.endswith("\n") else ""
    return Span(f"{gap}✗ {event.message}{hint}\n", "error")


def ending(turn: Turn, event: TurnFinished, version: tuple[int, int]) -> Spans:
    """What stands under an answer. ``version``: which version it is of how many."""
    gap = "" if not event.text else "\n" if event.text.endswith("\n") or turn.failure else "\n\n"
    if event.reason == "error" and not (event.text or event.thought):
        return Spans.of(noted("", version_spans(*version), "\n"))  # the error has said all that there is
    return Spans.of(noted(f"{gap}{turn_summary(event, turn.speed_up)}", version_spans(*version), "\n\n"))


def turn_summary(event: TurnFinished, faster: SpeedUp | None = None) -> str:
    """One line under an answer: how many times as fast it came, what it cost, and why it ended if not by itself."""
    facts = event.statistics
    speed = f"{facts.tok_s:.0f} tok/s" if facts.tok_s > 0 else ""
    gain = faster.words if faster is not None else ""
    parts = (counted(facts.num_tokens, "token"), gain, speed, accepted_share(facts), _REASONS[event.reason])
    return " · ".join(filter(None, parts))
