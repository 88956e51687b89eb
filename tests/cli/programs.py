"""The command line as another process, on a script."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import DEVNULL, PIPE

from support.forked import NOTHING, Environment, Piped
from support.scripted import play


@contextmanager
def program(
    *words: str, stdin: int = DEVNULL, stdout: int = PIPE, stderr: int = PIPE, environment: Environment = NOTHING
) -> Iterator[Piped]:
    """Runs what ``python -m support.scripted`` with these words does; it ends with the test."""
    process = Piped(play, *words, stdin=stdin, stdout=stdout, stderr=stderr, environment=environment)
    try:
        yield process
    finally:
        process.end()
