"""``dflash-chat bench``: the engine's own bench under this program's name, errors and exit codes."""

from __future__ import annotations

import click

from dflash_tui.core.exit_codes import exit_code_for
from engine.errors import EngineFailure

from .problems import Problem


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def bench(flags: tuple[str, ...]) -> int:
    """Measure decoding on this machine. The engine's bench knows the flags, since it also runs without this program."""
    from engine.bench.command import run

    try:
        return run(flags, prog="dflash-chat bench")
    except EngineFailure as failure:
        raise Problem(str(failure), failure.hint, exit_code_for(failure.kind)) from failure
    except ValueError as problem:
        message = str(problem)
        hint = "dflash-chat bench --help lists the flags."
        raise Problem(f"{message[0].upper()}{message[1:]}.", hint) from problem
    except SystemExit as done:  # how argparse ends after --help and after a wrong flag, each of which it has explained
        return int(done.code or 0)
