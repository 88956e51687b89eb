"""``dflash-chat bench``: the engine's own bench under this program's name, errors and exit codes."""

from __future__ import annotations

import click

from dflash_tui.sources import require_folder

from ..problems import value_problem
from ..terminal.saying import remark


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def bench(flags: tuple[str, ...]) -> int:
    """Measure decoding on this machine. The engine's bench knows the flags, since it also runs without this program."""
    require_folder()
    from engine.lab.bench.command import run

    try:
        return run(flags, prog="dflash-chat bench")
    except ValueError as error:
        raise value_problem(error, "dflash-chat bench --help lists the flags.") from error
    except SystemExit as done:  # how argparse ends after --help and after a wrong flag, each of which it has explained
        if done.code:
            remark("  dflash-chat bench --help lists the flags.")
        return int(done.code or 0)
