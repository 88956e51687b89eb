"""Runs programs that a model wrote, each in a child of its own with limits. Started as a script: standard library only.

Reads {"seconds": .., "programs": [source, ..]} from standard input and prints one boolean per program. The limits stop
accidents (endless loops, memory, files); they are no security boundary. Needs fork, that is Linux or macOS.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys

MEMORY_BYTES = 512 * 2**20
PASSED, FAILED = 17, 1
"""Exit statuses of a child; not 0, which a program could produce by leaving early."""


def run(program: str, seconds: int) -> bool:
    """Whether a program runs to its end within the limits."""
    if not program:
        return False
    child = os.fork()
    if child == 0:
        os._exit(_execute(program, seconds))
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == PASSED


def _execute(program: str, seconds: int) -> int:
    signal.alarm(seconds)  # no handler: the default action ends the child, whatever it catches
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # macOS refuses to limit the address space
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    try:
        exec(compile(program, "<answer>", "exec"), {"__name__": "__main__"})
    except BaseException:  # SystemExit and KeyboardInterrupt are failures too
        return FAILED
    return PASSED


def main() -> None:
    request = json.load(sys.stdin)
    print(json.dumps([run(program, request["seconds"]) for program in request["programs"]]))


if __name__ == "__main__":
    main()
