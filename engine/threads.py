"""Threads that may be in native code when the program ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


class NativeThread(threading.Thread):
    """A daemon that runs code of torch, CUDA or tokenizers. C++ that comes back into an interpreter which is being
    taken down aborts the process: a program that ends while one runs must leave without taking it down."""

    def __init__(self, target: Callable[[], None], name: str) -> None:
        super().__init__(target=target, name=name, daemon=True)


def begun(work: Callable[[], Result], name: str) -> Future[Result]:
    """Begins work on a thread of that name, for which nobody waits: loading may be cancelled, and the program left,
    before it is done."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    NativeThread(run, name).start()
    return future


def native_threads_run() -> bool:
    return any(isinstance(thread, NativeThread) for thread in threading.enumerate())
