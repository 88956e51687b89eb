"""A thread for what may block: whoever hands it over goes on, and can still be told to end."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Condition, Thread

Job = Callable[[], None]


class Writer:
    """Does one job after the other; the first that fails is the last."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._left = 0
        self._failure: Exception | None = None
        self._news = Condition()
        self._thread: Thread | None = None

    @property
    def idle(self) -> bool:
        """Whether all that was handed over is done."""
        return self._left == 0

    def hand_over(self, job: Job) -> None:
        """Have a job done behind the others. Raises what an earlier one failed with."""
        self.raise_failure()
        with self._news:
            self._left += 1
        self._jobs.put(job)
        if self._thread is None:
            self._thread = Thread(target=self._work, name="writer", daemon=True)
            self._thread.start()

    def done(self, seconds: float | None = None) -> bool:
        """Waits at most ``seconds`` (None: without limit) and returns whether all jobs are done. Raises what a job
        failed with."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._news:
            while self._left and self._failure is None:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._news.wait(left)
            self.raise_failure()
        return True

    def raise_failure(self) -> None:
        """Raise what a job failed with, if one has."""
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        while True:
            try:
                self._jobs.get()()
            except Exception as error:
                with self._news:
                    self._failure = error
                    self._news.notify_all()
                return
            with self._news:
                self._left -= 1
                self._news.notify_all()
