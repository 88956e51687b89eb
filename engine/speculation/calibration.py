"""Learns from the text what a drafter's confidence and a match's length are worth. Standard library only."""

from __future__ import annotations

from bisect import bisect_right

from .lookup import LONGEST, SHORTEST

NUM_BINS = 10
PRIOR_WEIGHT = 4.0
"""How many observations the drafter's own confidence counts for."""
MEMORY = 0.98
"""The factor by which a bin's past fades at each new observation in it: about the last fifty count."""


class Calibration:
    """What the drafter's confidence is worth on this text: ten bins count how often a draft was accepted, given that
    those before it were. Without observations the confidence is the estimate."""

    def __init__(self) -> None:
        self.accepted = [0.0] * NUM_BINS
        """Per bin, how many of the drafts that were reached were accepted; old ones fade."""
        self.confidence = [0.0] * NUM_BINS
        """Per bin, the sum of those drafts' confidences."""

    def chance(self, confidence: float) -> float:
        """The chance that a draft of this confidence is accepted once it is reached, in [0, 1]."""
        index = bin_of(confidence)
        # The bin tells how far off its drafts were on average; within the bin the confidence still ranks them.
        expected = self.confidence[index] + PRIOR_WEIGHT * confidence
        successes = self.accepted[index] + PRIOR_WEIGHT * confidence
        return min(confidence * successes / expected, 1.0) if expected > 0 else confidence

    def copy(self) -> Calibration:
        other = Calibration()
        other.accepted, other.confidence = list(self.accepted), list(self.confidence)
        return other

    def observe(self, confidence: float, accepted: bool) -> None:
        index = bin_of(confidence)
        self.accepted[index] = MEMORY * self.accepted[index] + accepted
        self.confidence[index] = MEMORY * self.confidence[index] + confidence


def bin_of(confidence: float) -> int:
    """The number of a confidence's bin; bins are even: [0, 0.1), [0.1, 0.2), … [0.9, 1]."""
    return min(int(confidence * NUM_BINS), NUM_BINS - 1)


POOLED_WEIGHT = 4.0
"""The sum of confidences in choices behind the first that counts as seen and come true beforehand: about thirty of
them."""


class PooledCalibration(Calibration):
    """Calibrates choices behind the first: they are seldom right, so that one bin alone would learn little. All bins
    share what is learned."""

    def __init__(self) -> None:
        super().__init__()
        self.accepted = [POOLED_WEIGHT] * NUM_BINS
        self.confidence = [POOLED_WEIGHT] * NUM_BINS

    def observe(self, confidence: float, accepted: bool) -> None:
        for index in range(NUM_BINS):
            self.accepted[index] = MEMORY * self.accepted[index] + accepted
            self.confidence[index] = MEMORY * self.confidence[index] + confidence


LENGTHS = (SHORTEST, 4, 5, 6, 8, 10, 13, 17, 24, LONGEST)
"""The match length, in tokens, at which each bin begins."""
BIN_OF = tuple(bisect_right(LENGTHS, length) for length in range(LONGEST + 1))
"""By match length: its bin, counted from 1; 0 for a match that is too short."""
OFTEN = (0.35, 0.45, 0.52, 0.6, 0.68, 0.75, 0.8, 0.85, 0.9, 0.93)
"""By bin, how often the token that followed a match followed again: measured on Python sources, less a tenth where
prose is below them."""
MOST_CHANCE = 0.98
"""The most that a chance may be before this text was seen to confirm it."""
MATCH_MEMORY = 0.95
SHARED_MEMORY = 0.95
"""The factors by which the past fades at each new observation: in one bin, and in what all bins share."""
BIN_WEIGHT, SHARED_WEIGHT = 4.0, 4.0
"""How many observations ``OFTEN`` counts for, in each bin and in the factor of all bins together."""


class MatchCalibration:
    """Learns how likely a looked up token is to be right once it is reached, by the tokens that matched before it.
    Every round teaches it, whatever was verified. What is seen at one length says something of all: the bins share a
    factor."""

    def __init__(self) -> None:
        self.right = [0.0] * len(LENGTHS)
        """Per bin, how many tokens were right; old ones fade."""
        self.seen = [0.0] * len(LENGTHS)
        self.shared_right, self.shared_expected = 0.0, 0.0
        """In all bins: tokens that were right, and tokens that ``OFTEN`` made expect."""

    def chance(self, length: int) -> float:
        """The chance of the token behind a match of ``length``; 0 for one that is too short."""
        index = BIN_OF[length] - 1
        if index < 0:
            return 0.0
        factor = (self.shared_right + SHARED_WEIGHT) / (self.shared_expected + SHARED_WEIGHT)
        before = min(OFTEN[index] * factor, MOST_CHANCE)
        return (self.right[index] + BIN_WEIGHT * before) / (self.seen[index] + BIN_WEIGHT)

    def chances(self) -> tuple[float, ...]:
        """The chance at each match length, from 0 to ``LONGEST``."""
        by_bin = [0.0, *map(self.chance, LENGTHS)]
        return tuple(by_bin[index] for index in BIN_OF)

    def observe(self, length: int, right: bool) -> None:
        index = BIN_OF[min(length, LONGEST)] - 1
        self.right[index] = MATCH_MEMORY * self.right[index] + right
        self.seen[index] = MATCH_MEMORY * self.seen[index] + 1
        self.shared_right = SHARED_MEMORY * self.shared_right + right
        self.shared_expected = SHARED_MEMORY * self.shared_expected + OFTEN[index]
