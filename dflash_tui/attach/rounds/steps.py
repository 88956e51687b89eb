"""What all dialects share: steps made of tokens that arrived, and what a turn comes to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from engine.events import (
    MICROSECONDS,
    Channel,
    DraftToken,
    EmittedToken,
    Settled,
    Step,
    TurnStatistics,
    Verdict,
    rounded,
)
from engine.statistics import TurnMeter

from ..chunks import Chunk, Piece, Prompt

WIDEST = 255
"""No round drafts more tokens, and no event stands for more of them."""


@dataclass(frozen=True, slots=True)
class Token:
    """One that the server counted."""

    text: str = ""
    channel: Channel = "answer"
    id: int | None = None
    probability: float | None = None
    held: bool = False
    """Its text came with a later token's: it ends inside a character, or inside what might have become a stop word."""

    def emitted(self, verdict: Verdict) -> EmittedToken:
        return EmittedToken(self.id, self.text, verdict, self.channel, self.probability)


class Texts:
    """Text that arrived and no token carries yet. A token's text is of one channel; what is more waits for the next."""

    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque()

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def put(self, pieces: Iterable[Piece]) -> None:
        self._pieces.extend(pieces)

    def take(self) -> Piece | None:
        """Everything up to the next change of channel; None when nothing waits."""
        if not self._pieces:
            return None
        channel, text = self._pieces.popleft()
        while self._pieces and self._pieces[0][0] == channel:
            text += self._pieces.popleft()[1]
        return channel, text

    def take_all(self) -> list[Piece]:
        pieces = list(self._pieces)
        self._pieces.clear()
        return pieces

    def token(self, id: int | None = None, probability: float | None = None) -> Token:
        """The next token, with the text that waits for it; markup without a text."""
        piece = self.take()
        return Token("", "control", id, probability) if piece is None else Token(piece[1], piece[0], id, probability)


class Steps:
    """Makes the steps of a turn, one after the other."""

    def __init__(self, turn: int, temperature: float) -> None:
        self.turn = turn
        self.made: list[Step] = []
        self.prompt = Prompt()
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
        provisional: bool = False,
    ) -> Step:
        """One round. ``accepted`` is the server's count: also what the end of the answer cut off."""
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
            context_length=self.prompt.tokens + self._context,
            block_size=self._widest,
            temperature=self.temperature,
            provisional=provisional,
        )
        self.made.append(step)
        return step

    def statistics(self) -> TurnStatistics:
        meter = TurnMeter(self.prompt.tokens, self.prompt.reused)
        for step in self.made:
            meter.add(step)
        return meter.statistics()

    def again(self) -> Steps:
        """An empty record of the same turn, to tell it anew."""
        fresh = Steps(self.turn, self.temperature)
        fresh.prompt = self.prompt
        return fresh


def _draft(emitted: Sequence[EmittedToken], drafted: int, accepted: int) -> tuple[DraftToken, ...]:
    """Of drafts only those are known that became text."""
    kept = [
        DraftToken(token.id, token.text, None, token.probability) if token.verdict == "accepted" else UNKNOWN_DRAFT
        for token in emitted[:accepted]
    ]
    return (*kept, *(UNKNOWN_DRAFT for _ in range(drafted - len(kept))))


UNKNOWN_DRAFT = DraftToken(None, None, None)


def verdicts(num_tokens: int, drafted: int, accepted: int) -> list[Verdict]:
    """Of the first ``num_tokens`` tokens of a round: it may have been cut off."""
    if not drafted:
        return ["plain"] * num_tokens
    last: Verdict = "corrected" if accepted < drafted else "bonus"
    return [*["accepted"] * min(accepted, num_tokens), *[last] * (num_tokens > accepted)]  # type: ignore[list-item]


@dataclass(frozen=True, slots=True)
class Report:
    """What a turn came to."""

    statistics: TurnStatistics
    settled: Settled | None = None
    counted: bool = True
    """The server said how many tokens were drafted and accepted."""


class Rounds(Protocol):
    """Turns the events of one answer's stream into steps. Pure: it knows no clock and no connection."""

    steps: Steps

    def take(self, chunk: Chunk) -> list[Step]:
        """The steps that are known with this event."""

    def end(self, whole: bool) -> list[Step]:
        """The last ones. Not ``whole``: it was stopped, or broke off."""

    def report(self) -> Report:
        """After the end."""


def with_counts(
    own: TurnStatistics, tokens: int | None, drafted: int | None, accepted: int | None, rounds: int | None = None
) -> TurnStatistics:
    """``own`` figures where the server has none; everywhere else the server's."""
    spec = own.num_spec_steps if rounds is None else rounds
    kept = own.num_accepted_draft_tokens if accepted is None else accepted
    return replace(
        own,
        num_tokens=own.num_tokens if tokens is None else tokens,
        num_spec_steps=spec,
        num_draft_tokens=own.num_draft_tokens if drafted is None else drafted,
        num_accepted_draft_tokens=kept,
        mean_acceptance_length=1 + kept / spec if spec else 0.0,
    )
