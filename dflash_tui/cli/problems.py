"""Problems as the command line words them: what happened, then what to do next."""

from __future__ import annotations

import sys
from textwrap import indent

from dflash_tui.core.exit_codes import ExitCode


class Problem(Exception):
    """Ends the program with ``code``. ``str()`` is what happened, ``hint`` what to do next."""

    def __init__(self, message: str, hint: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code


def show_problem(problem: Problem) -> None:
    """What happened on one line of stderr, what to do next below it."""
    hint = indent(f"\n{problem.hint}", "  ") if problem.hint else ""
    print(f"dflash-chat: {problem}{hint}", file=sys.stderr, flush=True)
