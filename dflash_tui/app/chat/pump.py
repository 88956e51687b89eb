"""The frame loop: takes what the engine said, applies it, and lets the screen draw, as often as the screen may."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress

from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.governor import FrameGovernor
from dflash_tui.core.source import Happening, Rewind, StepBatch
from engine.events import EngineReady, Step, TurnFinished

CPU_SHARE, GPU_SHARE = 0.07, 0.3
"""What the screen may use of one core while an answer streams: beside an engine on the CPU, and on a GPU."""
IDLE_INTERVAL = 0.1
BACKED_UP_INTERVAL = 0.005
"""Seconds between two looks whether the terminal has taken what was written."""
GAUGE_INTERVAL = 0.2
"""Seconds between two looks at the gauges: people can't read figures faster."""
STILL_SECONDS = 0.06
"""Seconds that the screen stays as it is after a question, unless the answer begins before."""
MAX_EVENTS = 1024
"""Events applied in one frame at most; the rest wait for the next one."""


class FramePump:
    """Never works per token: a frame takes whatever arrived since the one before."""

    def __init__(
        self,
        chat: Chat,
        queue: EventQueue,
        draw: Callable[[list[Happening], bool], None],
        backed_up: Callable[[], bool] = lambda: False,
    ) -> None:
        """``draw`` gets events that were applied and whether the gauges are due. While the terminal is ``backed_up``
        there are no frames: dozens would wait in the line, and every key's echo behind them."""
        self.governor = FrameGovernor(CPU_SHARE)
        self.lively = False
        """Whether something moves on the screen although no answer runs."""
        self._chat = chat
        self._queue = queue
        self._draw = draw
        self._backed_up = backed_up
        self._hurried = asyncio.Event()
        self._stillness = ExitStack()
        self._still = False
        self._gauges_due = 0.0
        self._undrawn: list[Happening] = []
        """The newest round, where the gauges have not shown it yet; else empty."""
        self._spent = time.thread_time()

    def on_gpu(self, gpu: bool) -> None:
        """Say whether the engine works on a GPU: then frames may take more of the CPU."""
        self.governor.share = GPU_SHARE if gpu else CPU_SHARE

    def hurry(self) -> None:
        """Draw now: the user waits to see that a key was heard, or that an answer has ended."""
        self._hurried.set()

    def keep_still(self, pause: AbstractContextManager[object]) -> None:
        """No frame until the awaited answer has begun, or for a moment; meanwhile inside ``pause``. Drawing while the
        engine reads a short prompt costs it the interpreter's lock and doubles the time to the first token."""
        self._stillness.enter_context(pause)
        self._still = True
        asyncio.get_running_loop().call_later(STILL_SECONDS, self.hurry)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has been closed, while the engine works on its last round
                loop.call_soon_threadsafe(self.hurry)

        self._queue.wake = wake
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.interval):
                    await self._hurried.wait()
            if self._still and not self._hurried.is_set():
                continue
            while self._backed_up():
                await asyncio.sleep(BACKED_UP_INTERVAL)
            self._hurried.clear()
            self.frame()

    @property
    def interval(self) -> float:
        """Seconds until the next frame."""
        return self.governor.interval if self._chat.busy or self.lively else IDLE_INTERVAL

    def frame(self) -> None:
        """Draw one frame now."""
        self._still = False
        self._stillness.close()
        self._measure()
        events: list[Happening] = []
        jumped = False
        for event in self._queue.take(MAX_EVENTS):
            if events and isinstance(events[-1], EngineReady | TurnFinished | Rewind):
                # The screen has something to say at that place of the transcript, before what comes behind it.
                self._draw(events, False)
                events = []
            self._chat.apply(event)
            events.append(event)
            jumped |= isinstance(event, StepBatch)
        now = time.monotonic()
        gauges = jumped or now >= self._gauges_due or not self._chat.busy
        if gauges and (events or self._undrawn):
            self._gauges_due = now + GAUGE_INTERVAL
            events = events or self._undrawn  # told again: it came between two looks at the gauges
            self._undrawn = []
        elif events and isinstance(events[-1], Step):
            self._undrawn = events[-1:]
        self._draw(events, gauges)

    def _measure(self) -> None:
        """Measure what the screen costs: all that this thread did since the last frame. Textual draws in between."""
        spent = time.thread_time()
        if self._chat.busy or self.lively:
            self.governor.observe(spent - self._spent)
        self._spent = spent
