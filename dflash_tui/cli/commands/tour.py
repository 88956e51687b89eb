"""``dflash-chat tour``: two minutes for a room, on the screen, as a page or as text."""

from __future__ import annotations

from pathlib import Path

import click

from dflash_tui.core.exit_codes import ExitCode

from ..flags.screen import screen_flags
from ..invocation import Invocation
from ..terminal.screen import has_screen
from .export import FORCE, TEXT, print_or_write
from .lesson import OUT, THEME, on_the_screen


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@THEME
@screen_flags
@OUT
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write a page, as tour.html.")
@FORCE
@click.pass_obj
def tour(invocation: Invocation, /, theme: str | None, out: Path, output: Path | None, force: bool) -> int:
    """What speculative decoding is, in two minutes that play themselves: for a room, and for who has no time. No model
    is loaded. Any key pauses, Space goes on.

    With -o it becomes one HTML page that stands alone. In a pipe it is printed as text.
    """
    from dflash_tui.core.lesson.document import document_of
    from dflash_tui.core.lesson.tour import open_tour

    course = open_tour()
    if output is None and has_screen():
        return on_the_screen(invocation, course, theme, out)
    print_or_write(document_of(course), TEXT if output is None else "html", output, force)
    return ExitCode.OK
