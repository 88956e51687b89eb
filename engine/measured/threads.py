"""Chooses how many threads a CPU's rounds use: all cores while nobody else wants one, otherwise one fewer. It is tried
now and then, as no system says beforehand what a busy neighbour costs: threads wait for the slowest at every
product."""

from __future__ import annotations

from collections.abc import Callable

WINDOW = 250.0
"""Milliseconds of rounds that are judged together; a trial is shorter."""
TRIAL = 100.0
LEAST_ROUNDS = 3
GAIN_OF_MORE, GAIN_OF_FEWER = 0.8, 0.95
"""The share of the present time that more threads, or fewer, must stay below to be preferred: a quiet core takes a
third of SmolLM2's time, and where all cores are busy times are noise."""
SLOWER = 1.3
"""How many times the last window's time is reason to try without the last core at once, since somebody has taken it."""
HOPELESS = 1.5
"""A trial ends early once its rounds take this many times as long as with the preferred number."""
PATIENCE = 4
"""Windows until the next trial: twice as many after each that changed nothing."""
MOST_PATIENCE = 32
BESIDE_ROWS = 3.5
"""How many rows' worth of work a pass has beside its own rows: SmolLM2's takes 10, 17 and 45 ms with 1, 4 and 16."""


class ThreadChoice:
    """Chooses between two numbers of threads by the time of every round; ``use`` is called with the number from now
    on."""

    def __init__(self, fewer: int, all_cores: int, use: Callable[[int], None]):
        """``fewer`` threads run the rounds at first."""
        self.preferred, self.current = fewer, fewer
        self._both, self._use = (fewer, all_cores), use
        self._pace = 0.0
        """Milliseconds for each row's worth of work with the preferred number; 0 before the first window."""
        self._patience, self._wait = PATIENCE, 1
        self._begin()

    def observe_times(self, milliseconds: float, rows: int) -> None:
        """Learns what a round took whose pass had ``rows`` rows."""
        self._spent += milliseconds
        self._work += BESIDE_ROWS + rows
        self._rounds += 1
        pace, trying = self._spent / self._work, self.current != self.preferred
        ends_early = trying and pace > HOPELESS * self._pace
        enough = self._rounds >= LEAST_ROUNDS and self._spent >= (TRIAL if trying else WINDOW)
        if not (enough or ends_early):
            return
        if trying:
            self._judge(pace)
        else:
            hurry = self.preferred == self._both[1] and pace > SLOWER * self._pace
            self._pace, self._wait = pace, 0 if hurry else self._wait - 1
        self._go_on(self._other if self._wait <= 0 and not trying else self.preferred)

    @property
    def _other(self) -> int:
        return self._both[self.preferred == self._both[0]]

    def _judge(self, pace: float) -> None:
        gain = GAIN_OF_MORE if self.current == self._both[1] else GAIN_OF_FEWER
        if pace < gain * self._pace:
            self.preferred, self._pace, self._patience = self.current, pace, PATIENCE
        else:
            self._patience = min(2 * self._patience, MOST_PATIENCE)
        self._wait = self._patience

    def _go_on(self, threads: int) -> None:
        if threads != self.current:
            self.current = threads
            self._use(threads)
        self._begin()

    def _begin(self) -> None:
        self._spent, self._work, self._rounds = 0.0, 0.0, 0
