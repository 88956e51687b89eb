"""What all dialects share: making steps of the tokens that arrived, and the report of a turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.events import (
    MICROSECONDS,
    DraftToken,
    EmittedToken,
    Step,
    TurnStatistics,
    Verdict,
    rounded,
)
from engine.rounds.statistics import TurnMeter

from ..reading import ChannelText, Chunk, PromptUsage

WIDEST = 255
"""The most tokens that a round drafts or that an event stands for."""


HELD = EmittedToken(None, "", "unknown", "control", None)
"""A token that the server counted and whose text comes with a later one's, since it ends inside a character, or inside
what might have become a stop word."""


class Texts:
    """Holds the text that arrived and that no token carries yet. A token's text is of one channel; the rest waits for
    the next token."""

    def __init__(self) -> None:
        self._pieces: deque[ChannelText] = deque()

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def put(self, pieces: Iterable[ChannelText]) -> None:
        self._pieces.extend(pieces)

    def take(self) -> ChannelText | None:
        """Takes everything up to the next change of channel; None when nothing waits."""
        if not self._pieces:
            return None
        channel, text = self._pieces.popleft()
        while self._pieces and self._pieces[0][0] == channel:
            text += self._pieces.popleft()[1]
        return channel, text

    def take_all(self) -> list[ChannelText]:
        pieces = list(self._pieces)
        self._pieces.clear()
        return pieces

    def token(self) -> EmittedToken:
        """Makes the next token, with the text that waits for it; without a text it is ``control``."""
        channel, text = self.take() or ("control", "")
        return EmittedToken(None, text, "unknown", channel, None)


class StepMaker:
    """Makes the steps of a turn, one after the other."""

    def __init__(self, turn: int, temperature: float) -> None:
        self.turn = turn
        self.made: list[Step] = []
        self.prompt = PromptUsage()
        self.temperature = temperature
        self._context = 0
        self._widest = 1

    def make(
        self,
        emitted: Sequence[EmittedToken],
        drafted: int,
        accepted: int,
        time: float,
        total_ms: float,
    ) -> Step:
        """Makes one round's step. ``accepted`` is the server's count, which includes what the end of the answer cut
        off; ``time`` is in seconds since the question, ``total_ms`` the round's duration."""
        accepted = min(accepted, drafted)
        self._context += len(emitted)
        self._widest = max(self._widest, drafted + 1)
        step = Step(
            turn=self.turn,
            index=len(self.made),
            time=rounded(max(time, 0.0), 1000 * MICROSECONDS),
            draft=_draft(emitted, drafted, accepted),
            num_accepted=accepted,
            emitted=tuple(emitted),
            verify_width=drafted + 1,
            draft_ms=None,
            verify_ms=None,
            total_ms=rounded(max(total_ms, 0.0), MICROSECONDS),
            context_length=self.prompt.tokens and self.prompt.tokens + self._context,  # 0: not known
            block_size=self._widest,
            temperature=self.temperature,
        )
        self.made.append(step)
        return step

    def statistics(self) -> TurnStatistics:
        meter = TurnMeter()
        for step in self.made:
            meter.add(step)
        return meter.statistics(self.prompt.tokens, self.prompt.reused)


def _draft(emitted: Sequence[EmittedToken], drafted: int, accepted: int) -> tuple[DraftToken, ...]:
    """The round's draft. Only drafts that became text are known; the others are ``UNKNOWN_DRAFT``."""
    accepted_drafts = [
        DraftToken(token.id, token.text, None, token.probability) if token.verdict == "accepted" else UNKNOWN_DRAFT
        for token in emitted[:accepted]
    ]
    return (*accepted_drafts, *(UNKNOWN_DRAFT for _ in range(drafted - len(accepted_drafts))))


UNKNOWN_DRAFT = DraftToken(None, None, None)


def verdicts(num_tokens: int, drafted: int, accepted: int) -> list[Verdict]:
    """The verdicts of the first ``num_tokens`` tokens of a round, which may have been cut off."""
    if not drafted:
        return ["plain"] * num_tokens
    last: Verdict = "corrected" if accepted < drafted else "bonus"
    return [*["accepted"] * min(accepted, num_tokens), *[last] * (num_tokens > accepted)]  # type: ignore[list-item]


@dataclass(frozen=True, slots=True)
class TurnReport:
    """The figures of a finished turn."""

    statistics: TurnStatistics
    counted: bool = True
    """Whether the server said how many tokens were drafted and accepted."""


class StreamRounds(ABC):
    """Turns the events of one answer's stream into steps. Pure: it knows no clock and no connection."""

    def __init__(self, steps: StepMaker) -> None:
        self.steps = steps
        self._texts = Texts()

    def take(self, chunk: Chunk) -> list[Step]:
        """Takes one event; returns the steps that are known with it."""
        before = len(self.steps.made)
        self._read(chunk)
        return self.steps.made[before:]

    def end(self) -> list[Step]:
        """Ends the stream; returns the last steps."""
        before = len(self.steps.made)
        self._finish()
        return self.steps.made[before:]

    @abstractmethod
    def report(self) -> TurnReport:
        """The report of the turn, once it has ended."""

    @abstractmethod
    def _read(self, chunk: Chunk) -> None: ...

    @abstractmethod
    def _finish(self) -> None: ...
