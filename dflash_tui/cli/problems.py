"""Problems as the command line words them: what happened, then what to do next."""

from __future__ import annotations

from textwrap import indent

from dflash_tui.core.advice import as_command
from dflash_tui.core.exit_codes import ExitCode, exit_code_for
from dflash_tui.core.text.harmless import in_line
from engine.errors import EngineFailure
from engine.events import EngineError

from .terminal.saying import remark


class Problem(Exception):
    """Ends the program with ``code``. ``str()`` is what happened, ``hint`` what to do next."""

    def __init__(self, message: str, hint: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code


def engine_problem(failure: EngineFailure | EngineError) -> Problem:
    if isinstance(failure, EngineError):
        return Problem(failure.message, failure.hint, exit_code_for(failure.kind))
    return Problem(*failure.in_words(as_command), exit_code_for(failure.kind))


def value_problem(error: ValueError, hint: str) -> Problem:
    message = str(error)
    return Problem(f"{message[0].upper()}{message[1:]}.", hint)


def show_problem(problem: Problem) -> None:
    """Print what happened on one line of stderr, and what to do next below it."""
    hint = indent(f"\n{problem.hint}", "  ") if problem.hint else ""
    remark(f"dflash-chat: {in_line(str(problem))}{hint}")
