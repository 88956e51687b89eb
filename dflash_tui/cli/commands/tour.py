"""``dflash-chat tour``: two minutes for a room, on the screen, as a page or as text."""

from __future__ import annotations

from pathlib import Path

import click

from dflash_tui.core.exit_codes import ExitCode

from ..flags.screen import check_theme, saved_screen_options, screen_flags
from ..headless.output import StandardOutput
from ..logs import log_to_file
from ..terminal.background import has_screen, suited_theme
from .export import FORCE, write_file


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--theme", metavar="NAME", callback=check_theme, help="Colours of the screen.")
@screen_flags
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write a page, as tour.html.")
@FORCE
def tour(theme: str | None, output: Path | None, force: bool) -> int:
    """What speculative decoding is, in two minutes that play themselves: for a room, and for who has no time. No model
    is loaded. Any key pauses, Space goes on.

    With -o it becomes one HTML page that stands alone. In a pipe it is printed as text.
    """
    from dflash_tui.core.lesson.tour import open_tour

    made = open_tour()
    if output is not None:
        from dflash_tui.core.export.tour_page import tour_page

        write_file(output, tour_page(made), force)
        print(output.resolve())
        return ExitCode.OK
    if not has_screen():
        standard = StandardOutput()
        standard.write("\n\n".join(f"{part.title}\n{part.words}" for part in made.parts) + "\n")
        standard.write(f"\n{made.factor:.1f} times as fast\n")
        standard.close()
        return ExitCode.OK
    log_to_file()
    with suited_theme(theme) as suited:
        from dflash_tui.app.tour import run_tour

        theme = suited.theme
    return run_tour(made, theme, saved_screen_options())
