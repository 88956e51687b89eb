"""``dflash-chat lesson``: pages over a recording, on the screen, in a file or as text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dflash_tui.core.exit_codes import ExitCode

from ..flags.screen import saved_screen_options, screen_flags, theme_flag
from ..headless.output import DEFAULT_OUT
from ..invocation import Invocation
from ..logs import log_to_file
from ..terminal.screen import has_screen
from .export import FORCE, FORMAT, OUTPUT, print_or_write

if TYPE_CHECKING:
    from dflash_tui.core.lesson.course import Course

OUT = click.option("--out", type=click.Path(path_type=Path), default=DEFAULT_OUT, metavar="DIR", show_default=True,
                   help="Where the screen saves pages.")  # fmt: skip
THEME = theme_flag("Colours of the screen.")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@THEME
@screen_flags
@OUT
@FORMAT
@OUTPUT
@FORCE
@click.pass_obj
def lesson(
    invocation: Invocation, /, theme: str | None, out: Path, wanted: str | None, output: Path | None, force: bool
) -> int:
    """How speculative decoding works, in about five minutes, on a recorded conversation. No model is loaded.

    Leaving keeps your place. In a pipe the lesson is printed as text; with --format or -o it becomes a file.
    """
    from dflash_tui.core.lesson.document import document_of
    from dflash_tui.core.lesson.lesson import open_lesson

    course = open_lesson()
    if wanted is None and output is None and has_screen():
        return on_the_screen(invocation, course, theme, out)
    print_or_write(document_of(course), wanted, output, force)
    return ExitCode.OK


def on_the_screen(invocation: Invocation, course: Course, theme: str | None, out: Path) -> int:
    """Show a course until it is left, and the chat behind it where that is wanted; returns the exit code."""
    log_to_file()
    from dflash_tui.app.course import run_course

    code, wants_chat = run_course(course, out, theme, saved_screen_options())
    return open_chat(invocation) if wants_chat else code


def open_chat(invocation: Invocation) -> int:
    """Open the chat, to which the last page leads, as if dflash-chat had been typed."""
    from ..main import main

    return main([], invocation.engine, invocation.attach)
