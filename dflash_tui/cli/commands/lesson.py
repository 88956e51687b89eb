"""``dflash-chat lesson``: the guided tour, on the screen or as text."""

from __future__ import annotations

from pathlib import Path

import click

from dflash_tui.core.exit_codes import ExitCode

from ..flags.screen import check_theme, saved_screen_options, screen_flags
from ..headless.output import DEFAULT_OUT
from ..invocation import Invocation
from ..logs import log_to_file
from ..problems import Problem
from ..terminal.background import has_screen, suited_theme
from .export import FORCE, FORMAT, OUTPUT, print_or_write


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--theme", metavar="NAME", callback=check_theme, help="Colours of the screen.")
@screen_flags
@click.option("--out", type=click.Path(path_type=Path), default=DEFAULT_OUT, metavar="DIR", show_default=True,
              help="Where the screen saves pages.")  # fmt: skip
@FORMAT
@OUTPUT
@FORCE
@click.pass_obj
def lesson(
    invocation: Invocation,
    /,
    file: Path | None,
    theme: str | None,
    out: Path,
    wanted: str | None,
    output: Path | None,
    force: bool,
) -> int:
    """How speculative decoding works, in about five minutes, on a recorded conversation. No model is loaded.

    FILE is a lesson of your own; without it, the one that comes with the program. Leaving keeps your place. In a pipe
    the lesson is printed as text; with --format or -o it becomes a file.
    """
    from dflash_tui.core.lesson.bundled import open_lesson
    from dflash_tui.core.lesson.pages import lesson_document
    from dflash_tui.core.lesson.parsing import LessonError

    try:
        read, pages, origin = open_lesson(file)
    except LessonError as error:
        raise Problem(str(error), "Correct it, or run dflash-chat lesson without a file for the bundled one.") from None
    if wanted is None and output is None and has_screen():
        log_to_file()
        with suited_theme(theme) as suited:
            from dflash_tui.app.lesson import run_lesson

            theme = suited.theme
        code, wants_chat = run_lesson(read, pages, origin, out, theme, saved_screen_options())
        return open_chat(invocation) if wants_chat else code
    print_or_write(lesson_document(read, pages, origin), wanted, output, force)
    return ExitCode.OK


def open_chat(invocation: Invocation) -> int:
    """Open the chat, to which the last page leads, as if dflash-chat had been typed."""
    from ..main import main

    return main([], invocation.engine, invocation.attach)
