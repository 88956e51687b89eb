"""``dflash-chat bench``: the engine's own bench under this program's name, errors and exit codes."""

from __future__ import annotations

import click

from dflash_tui.sources import require_folder

from ..problems import value_problem
from ..terminal.saying import remark, say

NAME = "dflash-chat bench"


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def bench(flags: tuple[str, ...]) -> int:
    """Measure decoding on this machine. The engine's bench knows the flags, since it also runs without this program."""
    require_folder()
    from engine.lab.bench.command import make_parser, run

    if not {"-h", "--help"}.isdisjoint(flags):  # argparse would keep to itself that nobody reads it
        say(make_parser(NAME).format_help().rstrip("\n"))
        return 0
    try:
        return run(flags, prog=NAME)
    except ValueError as error:
        raise value_problem(error, f"{NAME} --help lists the flags.") from error
    except SystemExit as done:  # how argparse ends after a wrong flag, which it has explained
        remark(f"  {NAME} --help lists the flags.")
        return int(done.code or 0)
