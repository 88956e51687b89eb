"""Going through the rounds of a conversation: from one to the next, to a rejection, to one with so many accepted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from engine.rounds.store import RoundStore


@dataclass(frozen=True, slots=True)
class Position:
    """A round of one turn, and the token under the cursor if there is one."""

    turn: int
    """The turn's number."""
    step: int
    token: int | None = None
    """A token of the turn; the step is the one that emitted it."""


class RecordedTurn(Protocol):
    """A turn whose rounds were kept."""

    @property
    def number(self) -> int: ...

    @property
    def rounds(self) -> RoundStore: ...


class Traveller:
    """Finds places, or None. Turns without a round are passed over; growing ones are read as they are."""

    def __init__(self, turns: Callable[[], Sequence[RecordedTurn]]) -> None:
        """``turns`` gives the turns of the conversation, oldest first."""
        self._turns = turns

    @property
    def turns(self) -> list[RecordedTurn]:
        return [turn for turn in self._turns() if len(turn.rounds)]

    def rounds(self, turn: int) -> RoundStore | None:
        return next((each.rounds for each in self._turns() if each.number == turn), None)

    def latest(self) -> Position | None:
        turns = self.turns
        return Position(turns[-1].number, len(turns[-1].rounds) - 1) if turns else None

    def at(self, turn: int, step: int) -> Position | None:
        """Round ``step`` of a turn, or the nearest that is there."""
        rounds = self.rounds(turn)
        return Position(turn, min(max(step, 0), len(rounds) - 1)) if rounds else None

    def beginning(self, turn: int) -> Position | None:
        """The first round of a turn that has a draft to look at; without any the one behind the prompt."""
        rounds = self.rounds(turn)
        drafted = (index for index, step in enumerate(rounds or ()) if step.draft)
        return self.at(turn, next(drafted, 1))

    def of_token(self, turn: int, token: int) -> Position | None:
        rounds = self.rounds(turn)
        if rounds is None or not 0 <= token < rounds.num_tokens:
            return None
        return Position(turn, rounds.step_of_token(token), token)

    def next_token(self, here: Position, direction: int) -> Position | None:
        """The token beside the cursor's; without a cursor, the round's first or last."""
        rounds = self.rounds(here.turn)
        if rounds is None:
            return None
        if here.token is not None:
            return self.of_token(here.turn, here.token + direction)
        edge = rounds.tokens_before(here.step) if direction > 0 else rounds.emitted_sum[here.step] - 1
        return replace(here, token=edge)

    def next_step(self, here: Position, direction: int) -> Position | None:
        """The round before (-1) or behind (1), in the neighbouring turn if need be."""
        return self._search(here, direction, lambda rounds, step: True)

    def next_rejection(self, here: Position, direction: int) -> Position | None:
        """The nearest round in that direction whose draft was corrected."""
        return self._search(here, direction, lambda rounds, step: rounds.was_corrected(step))

    def next_with(self, here: Position, accepted: int) -> Position | None:
        """The next speculative round of this turn that accepted so many drafts; from the start again after the last."""
        rounds = self.rounds(here.turn)
        if rounds is None:
            return None
        count = len(rounds)
        order = ((here.step + 1 + ahead) % count for ahead in range(count))
        matching = (step for step in order if rounds.verified[step] and rounds.accepted[step] == accepted)
        step = next(matching, None)
        return None if step is None else Position(here.turn, step)

    def _search(self, here: Position, direction: int, wanted: Callable[[RoundStore, int], bool]) -> Position | None:
        for turn in self.turns[::direction]:
            if (turn.number - here.turn) * direction < 0:
                continue
            steps = range(len(turn.rounds))
            if turn.number == here.turn:
                steps = steps[here.step + 1 :] if direction > 0 else steps[: here.step]
            step_index = next((step for step in steps[::direction] if wanted(turn.rounds, step)), None)
            if step_index is not None:
                return Position(turn.number, step_index)
        return None
