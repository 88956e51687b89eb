"""Tells how much of a limited time is over."""

from __future__ import annotations

import time
from math import inf


class TrainingClock:
    """The clock of training that ends by time: the learning rate follows ``progress``, from 0 to 1."""

    def __init__(self, seconds: float | None) -> None:
        """``seconds`` None: there is no limit, and progress stays 0."""
        self.seconds = inf if seconds is None else seconds
        self.progress = 0.0

    def start(self) -> None:
        """Starts the clock, or goes on from ``progress``."""
        self.before = self.progress
        self.began: float | None = None
        self.deadline = time.perf_counter() + (1 - self.before) * self.seconds

    def tick(self) -> float:
        """Returns the progress after a step. The first step compiles, so its time doesn't count."""
        now = time.perf_counter()
        if self.began is None:
            self.began = now
        over = now >= self.deadline
        share = 1.0 if over else (now - self.began) / (self.deadline - self.began)
        self.progress = self.before + (1 - self.before) * share
        return self.progress
