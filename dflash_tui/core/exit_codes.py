"""What the program's exit code tells a script."""

from __future__ import annotations

from enum import IntEnum

from engine.events import ErrorKind


class ExitCode(IntEnum):
    OK = 0
    GENERATION = 1
    """The engine failed while it answered."""
    USAGE = 2
    """A flag, a file or a prompt that can't be used as given."""
    WEIGHTS = 3
    """Weights that are missing, truncated, gated, or not what their config says."""
    DEVICE = 4
    """No usable GPU, or not enough memory."""
    REMOTE = 5
    """A server that can't be reached, refuses, or says what can't be understood."""
    TIMEOUT = 124
    """``--timeout`` ran out; what was written until then was printed."""
    INTERRUPTED = 130
    """Ctrl+C (128 + SIGINT); what was written until then was printed."""
    BROKEN_PIPE = 141
    """The reader of stdout went away (128 + SIGPIPE), as a shell reports it for any other program."""
    TERMINATED = 143
    """SIGTERM (128 + SIGTERM); what was written until then was printed."""


_BY_KIND: dict[ErrorKind, ExitCode] = {
    "usage": ExitCode.USAGE,
    "weights": ExitCode.WEIGHTS,
    "device": ExitCode.DEVICE,
    "generation": ExitCode.GENERATION,
    "server": ExitCode.REMOTE,
}


def exit_code_for(kind: ErrorKind) -> ExitCode:
    return _BY_KIND[kind]
