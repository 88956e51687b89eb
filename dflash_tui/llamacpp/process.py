"""Runs llama.cpp's server as a child process: starts it, tells it what to do, listens to it, and ends it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

from dflash_tui.core.platforms import MAC, apart, resident
from engine.environment import child_environment

from .failures import failed_to_import, missing_package, reason_of
from .machine import Machine, free_memory

log = logging.getLogger("llama.cpp")

CHILD = Path(__file__).with_name("child.py")
TAIL = 200
"""Lines of its log that are kept, to say why it failed."""
LOOK_SECONDS = 0.2
"""Seconds between two looks at how far loading has come."""
END_SECONDS = 2.0
"""Seconds that it gets to end by itself."""
KEPT = 0.1
"""The share of the free memory that is left to everything else."""

Message = dict[str, Any]


class LlamaProcess:
    """One child process. On Linux the child also ends with the thread that started it, so that thread has to stay
    alive."""

    def __init__(self) -> None:
        self._tail: deque[str] = deque(maxlen=TAIL)
        self._messages: SimpleQueue[Message | None] = SimpleQueue()
        self._ended = Event()
        self._loading = True
        self._wanted = False
        """Whether we ended it ourselves."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=child_environment(),
            **apart(),  # Ctrl+C in the terminal is for us alone
        )
        self._readers = [Thread(target=read, name="llama.cpp", daemon=True) for read in (self._listen, self._read_log)]
        for reader in self._readers:
            reader.start()

    @property
    def ended(self) -> Event:
        """Set when the process has ended, for whatever reason."""
        return self._ended

    def machine(self) -> Machine:
        """Asks the child what a model can run on. Raises an ``EngineFailure`` where llama.cpp is missing or built for
        another processor."""
        message = self._next(lambda: None)
        if (error := message.get("missing")) is not None:
            raise missing_package() if "xllamacpp" in error else failed_to_import(error)
        devices = message.get("devices", [])
        gpus = [device for device in devices if device["gpu"]]
        on_gpus = sum(device["free"] for device in gpus)
        memory = free_memory() or max((device["free"] for device in devices if not device["gpu"]), default=0)
        # On a Mac they are one memory, of which the GPU gets a part.
        memory = (on_gpus or memory) if MAC else memory + on_gpus
        names = tuple(device["name"] for device in gpus)
        return Machine(int(memory * (1 - KEPT)), names, str(message.get("version", "")))

    def serve(self, orders: Message, waiting: Callable[[], None]) -> str:
        """Starts the server by a plan's orders and returns its address once the model is loaded; ``waiting`` is called
        meanwhile. Raises an ``EngineFailure`` that says why it doesn't start."""
        assert self._process.stdin is not None
        with suppress(OSError):  # it has died, which the next message tells
            self._process.stdin.write(json.dumps(orders).encode() + b"\n")
            self._process.stdin.flush()
        message = self._next(waiting)
        if "url" not in message:
            self._ended.wait(END_SECONDS)
            raise self.reason()
        self._loading = False
        return str(message["url"])

    def resident(self) -> int:
        """Bytes of memory that the child holds; 0 where that isn't known."""
        return resident(self._process.pid)

    def reason(self) -> Exception:
        """Why the process ended, from its exit code and its log."""
        return reason_of(self._process.poll(), list(self._tail))

    def end(self) -> None:
        self._wanted = True
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        if self._loading:  # it doesn't look at its stdin before the server runs
            self._process.kill()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join(END_SECONDS)

    def _next(self, waiting: Callable[[], None]) -> Message:
        while True:
            try:
                message = self._messages.get(timeout=LOOK_SECONDS)
            except Empty:
                waiting()
                continue
            if message is None:
                raise self.reason()
            return message

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            for line in stdout:
                with suppress(ValueError):  # a library may print, too
                    message = json.loads(line)
                    if isinstance(message, dict):
                        self._messages.put(message)
        code = self._process.wait()
        self._readers[1].join(END_SECONDS)  # its last words
        if not self._wanted and code:
            log.error("llama.cpp ended with exit code %d", code)
        self._ended.set()
        self._messages.put(None)

    def _read_log(self) -> None:
        """Reads the child's log: all of it while the model loads, later only warnings."""
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for raw in lines:
                line = raw.decode("utf-8", "replace").rstrip()
                self._tail.append(line)
                log.log(logging.WARNING if self._loading or _warns(line) else logging.INFO, "%s", line)


def _warns(line: str) -> bool:
    """Whether a line is a warning or an error: llama.cpp writes a time, a letter for the level, and the message."""
    return line.split(" ", 2)[1:2] in (["W"], ["E"])
