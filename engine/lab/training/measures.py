"""Computes figures of speculative decoding from recorded rounds, whoever ran them: the batched loop here, or the
engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...speculation.calibration import NUM_BINS, bin_of
from .generation import GeneratedAnswer, GeneratedRound


@dataclass(frozen=True, slots=True)
class Speculation:
    """Figures over all cycles except the last of each answer, which the answer's end cuts short."""

    cycles: int
    tau: float
    """Mean acceptance length, bonus token counted."""
    full: float
    """Share of cycles that accepted the whole block."""
    short: float
    """Share of cycles that yielded at most two tokens."""
    by_position: tuple[float, ...]
    """Share of cycles that accepted the draft at each position of the block, and so all before it."""


def speculation(answers: Iterable[GeneratedAnswer], block_size: int) -> Speculation:
    """Adds up the figures of answers that were drafted in blocks of this size."""
    lengths = [round.accepted + 1 for answer in answers for round in answer.rounds[:-1]]
    count = max(len(lengths), 1)
    return Speculation(
        cycles=len(lengths),
        tau=sum(lengths) / count,
        full=sum(length == block_size for length in lengths) / count,
        short=sum(length <= 2 for length in lengths) / count,
        by_position=tuple(
            round(sum(length > position for length in lengths) / count, 4) for position in range(1, block_size)
        ),
    )


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Drafts whose probability lay in one tenth of [0, 1], and how often the target accepted them."""

    drafts: int
    predicted: float
    """The drafter's mean probability of these drafts."""
    accepted: float
    """The share that the target accepted, of those that it came to judge."""


def calibration(answers: Iterable[GeneratedAnswer]) -> list[CalibrationBin]:
    """Ten bins of the drafter's probability. A draft counts if every draft before it was accepted: later ones
    continue a text that the target never wrote."""
    judged = [pair for answer in answers for round in answer.rounds[:-1] for pair in _judged(round)]
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(NUM_BINS)]
    for probability, accepted in judged:
        bins[bin_of(probability)].append((probability, accepted))
    return [_bin(members) for members in bins]


def _judged(round: GeneratedRound) -> Sequence[tuple[float, bool]]:
    return [(p, slot < round.accepted) for slot, p in enumerate(round.probabilities[: round.accepted + 1])]


def _bin(members: list[tuple[float, bool]]) -> CalibrationBin:
    count = max(len(members), 1)
    return CalibrationBin(
        drafts=len(members),
        predicted=sum(p for p, _ in members) / count,
        accepted=sum(hit for _, hit in members) / count,
    )
