"""Slow motion: a clock that walks through the rounds of an answer at a fraction of the engine's pace, and what of a
round can be seen at each moment. It only reads the rounds: the engine doesn't wait for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from engine.rounds.store import RoundStore

Phase = Literal["block", "draft", "verify", "judge", "emit"]
"""The block's places, empty and all at once; the drafts, all at once; the target's choices beside them; accepted and
rejected part; the tokens join the text."""
PHASES: tuple[Phase, ...] = get_args(Phase)
MOMENT = 0.12
"""The share of a round that each of the last three phases gets: nobody would see their real time."""
SLOWEST, FULL = 0.01, 1.0
"""Paces: a hundredth of the engine's, and the engine's own."""
LEAST_PHASE = 0.03
"""Seconds of the engine that a phase counts for at least: on a fast machine it would be over before anybody saw it."""


@dataclass(slots=True)
class Player:
    """Stands at a phase of a step of one answer."""

    rounds: RoundStore
    step: int
    passed: float = 0.0
    """How much of the round's time has passed, in [0, 1]."""

    @property
    def phase(self) -> Phase:
        starts = phase_starts(self.rounds, self.step)
        return PHASES[max(index for index, start in enumerate(starts) if self.passed >= start)]

    @property
    def at_end(self) -> bool:
        """Whether all of the last round so far has been shown."""
        return self.step >= len(self.rounds) - 1 and self.passed >= 1

    def advance(self, seconds: float, pace: float, least: float = 0.0) -> None:
        """Let ``seconds`` pass for the viewer, at ``pace`` times the engine's speed. Stops behind the last round. A
        phase counts for ``least`` seconds of the engine at least."""
        left = seconds * pace
        while left > 0 and not self.at_end:
            if self.passed >= 1:
                self.step, self.passed = self.step + 1, 0.0
            starts = (*phase_starts(self.rounds, self.step), 1.0)
            end = next(start for start in starts if start > self.passed)
            share = end - max(start for start in starts if start <= self.passed)
            length = max(share * round_seconds(self.rounds, self.step), least)
            missing = (end - self.passed) / share * length
            self.passed = end if left >= missing else min(self.passed + left / length * share, end)
            left -= missing

    def show_from(self, phase: Phase) -> None:
        """Go to where a phase of this round begins."""
        self.passed = phase_starts(self.rounds, self.step)[PHASES.index(phase)]

    def next_phase(self) -> None:
        """Go to the beginning of the next phase, which may be the next round's first."""
        index = PHASES.index(self.phase) + 1
        if index < len(PHASES):
            self.show_from(PHASES[index])
        elif self.step + 1 < len(self.rounds):
            self.step, self.passed = self.step + 1, 0.0

    def previous_phase(self) -> None:
        """Go to the beginning of the phase before, which may be the last one of the round before."""
        index = PHASES.index(self.phase) - 1
        if index >= 0:
            self.show_from(PHASES[index])
        elif self.step > 0:
            self.step -= 1
            self.show_from(PHASES[-1])


def round_seconds(rounds: RoundStore, step: int) -> float:
    """Seconds from the end of the round before to the end of round ``step``; the first one lasts as long as it took."""
    before = rounds.time[step - 1] if step else rounds.time[0] - rounds.total_us[0]
    return max(rounds.time[step] - before, 1) / 1e6


def phase_starts(rounds: RoundStore, step: int) -> tuple[float, ...]:
    """Where each phase begins, as a share of the round: the block is empty while the drafter works, and the drafts are
    alone while the target does; each half of the time where it isn't known."""
    drafting, verifying = (rounds.draft_us[step], rounds.verify_us[step]) if rounds.is_timed(step) else (1, 1)
    passes = 1 - 3 * MOMENT
    drafted = passes * drafting / max(drafting + verifying, 1)
    return 0.0, drafted, passes, passes + MOMENT, passes + 2 * MOMENT


@dataclass(slots=True)
class Quiz:
    """“How many will be kept?”, asked once per round."""

    asked: bool = False
    """Whether the viewer was asked and has not guessed yet."""
    guess: int | None = None
    """What was said about the round on show."""
    num_answers: int = 0
    num_right: int = 0
    total_off: int = 0

    def ask(self) -> None:
        self.asked, self.guess = True, None

    def forget(self) -> None:
        """Another round is on show; the score stays."""
        self.asked, self.guess = False, None

    def answer(self, guess: int, accepted: int) -> None:
        self.asked, self.guess = False, guess
        self.num_answers += 1
        self.num_right += guess == accepted
        self.total_off += abs(guess - accepted)

    @property
    def score(self) -> str:
        """The game's score, such as ``3 of 5 right, off by 1.2 on average``; empty before the first answer."""
        if not self.num_answers:
            return ""
        return (
            f"{self.num_right} of {self.num_answers} right, off by {self.total_off / self.num_answers:.1f} on average"
        )
