"""How far behind the terminal is on a slow line. Over SSH, megabytes of buffers hide it and delay every key's echo; so
a question that every terminal answers goes between frames, and no frame is drawn while an answer is overdue."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import inf
from time import monotonic

QUESTION = "\x1b[6n"
"""Where is the cursor? Textual reads the answer, and nobody here needs to know."""
SLACK = 0.05
"""Seconds that an answer may take longer than the quickest one did."""
PATIENCE = 5.0
"""Seconds after which an answer is given up: a line that stood still goes on with a fresh question."""


def is_remote() -> bool:
    """The terminal is at the other end of an SSH connection."""
    return bool(os.environ.get("SSH_CONNECTION"))


class Line:
    """Has at most one question on its way. One thread asks, another hears."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._asked = -inf
        self._open = False
        """A question has no answer yet."""
        self._quickest = inf  # until a first answer came: some terminals have none

    def ask(self) -> str:
        """What to write behind a frame: the question, or nothing while one waits for its answer."""
        if self._open and self._age < PATIENCE:
            return ""
        self._asked, self._open = self._clock(), True
        return QUESTION

    def hear(self) -> None:
        """An answer has come."""
        if self._open:
            self._quickest = min(self._quickest, self._age)
            self._open = False

    @property
    def expects(self) -> bool:
        """An answer is still to come from a terminal that gives them."""
        return self._open and self._quickest < inf and self._age < PATIENCE

    @property
    def backed_up(self) -> bool:
        """What was written before is still on its way."""
        return self.expects and self._age > self._quickest + SLACK

    @property
    def _age(self) -> float:
        """Seconds since the newest question."""
        return self._clock() - self._asked
