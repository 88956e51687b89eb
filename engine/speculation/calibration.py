"""What a drafter's confidence is worth, learned from what was accepted. Standard library only."""

from __future__ import annotations

NUM_BINS = 10
PRIOR_WEIGHT = 4.0
"""How many observations the drafter's own word is worth against what was seen."""
MEMORY = 0.98
"""Weight that a bin's past keeps at each new observation in it: about the last fifty count."""


class Calibration:
    """What the drafter's confidence is worth on this text: ten bins count how often a draft was accepted, given that
    those before it were. Without observations the confidence is the estimate."""

    def __init__(self) -> None:
        self.accepted = [0.0] * NUM_BINS
        """Per bin, over the drafts that were reached, old ones fading: how many were accepted."""
        self.confidence = [0.0] * NUM_BINS
        """And what their confidences add up to."""

    def chance(self, confidence: float) -> float:
        """How likely a draft of this confidence is to be accepted once it is reached, in [0, 1]."""
        index = bin_of(confidence)
        # The bin says how far its drafts were off, on average; within the bin the confidence still ranks them.
        expected = self.confidence[index] + PRIOR_WEIGHT * confidence
        found = self.accepted[index] + PRIOR_WEIGHT * confidence
        return min(confidence * found / expected, 1.0) if expected > 0 else confidence

    def copy(self) -> Calibration:
        other = Calibration()
        other.accepted, other.confidence = list(self.accepted), list(self.confidence)
        return other

    def observe(self, confidence: float, accepted: bool) -> None:
        index = bin_of(confidence)
        self.accepted[index] = MEMORY * self.accepted[index] + accepted
        self.confidence[index] = MEMORY * self.confidence[index] + confidence


def bin_of(confidence: float) -> int:
    """Bins are even in confidence: [0, 0.1), [0.1, 0.2), … [0.9, 1]."""
    return min(int(confidence * NUM_BINS), NUM_BINS - 1)


POOLED_WEIGHT = 4.0
"""Confidence in choices behind the first that counts as seen and come true beforehand: about thirty of them."""


class PooledCalibration(Calibration):
    """For choices behind the first: seldom right, so one bin alone would learn little. All bins learn alike."""

    def __init__(self) -> None:
        super().__init__()
        self.accepted = [POOLED_WEIGHT] * NUM_BINS
        self.confidence = [POOLED_WEIGHT] * NUM_BINS

    def observe(self, confidence: float, accepted: bool) -> None:
        for index in range(NUM_BINS):
            self.accepted[index] = MEMORY * self.accepted[index] + accepted
            self.confidence[index] = MEMORY * self.confidence[index] + confidence
