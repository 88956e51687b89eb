"""How far behind the terminal is on a slow line. Over SSH, megabytes of buffers hide it and delay every key's echo; so
a question that every terminal answers goes between frames, and no frame is drawn while an answer is overdue."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import inf
from time import monotonic

QUESTION = "\x1b[6n"
"""The control sequence that asks for the cursor's place; Textual's reader gets the answer, which nobody uses."""
SLACK = 0.05
"""Seconds that an answer may take longer than the quickest one did."""
PATIENCE = 5.0
"""Seconds after which an answer is given up: a line that stood still goes on with a fresh question."""


def is_remote() -> bool:
    """Whether the terminal is at the other end of an SSH connection."""
    return bool(os.environ.get("SSH_CONNECTION"))


class Line:
    """Measures how far a terminal is behind: at most one question is on its way. One thread asks, another hears."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._asked = -inf
        self._open = False
        """Whether a question waits for its answer."""
        self._quickest = inf  # until a first answer came: some terminals have none

    def ask(self) -> str:
        """What to write behind a frame: the question, or nothing while one waits for its answer."""
        if self._open and self._age < PATIENCE:
            return ""
        self._asked, self._open = self._clock(), True
        return QUESTION

    def hear(self) -> None:
        """Take note that the terminal has answered the question."""
        if self._open:
            self._quickest = min(self._quickest, self._age)
            self._open = False

    @property
    def expects(self) -> bool:
        """Whether an answer is still to come from a terminal that has answered before."""
        return self._open and self._quickest < inf and self._age < PATIENCE

    @property
    def backed_up(self) -> bool:
        """Whether the terminal has not shown yet what was written before: its answer is overdue."""
        return self.expects and self._age > self._quickest + SLACK

    @property
    def _age(self) -> float:
        """Seconds since the newest question was written."""
        return self._clock() - self._asked
