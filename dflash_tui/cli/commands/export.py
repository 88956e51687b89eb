"""``dflash-chat export``: a conversation as a page or JSON."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import get_terminal_size
from textwrap import shorten
from typing import TYPE_CHECKING, get_args

import click

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.export.formats import FORMATS, Format
from dflash_tui.core.text.harmless import in_line

from ..flags.completing import among, recordings
from ..headless.output import StandardOutput
from ..problems import Problem
from ..terminal.saying import remark, say_path

if TYPE_CHECKING:
    from dflash_tui.core.export.document import ExportedPage

TEXT = "text"
TITLE = 72
"""Characters of a page's title at most: it is what was asked first."""
WIDEST = 1000
"""Cells of a line where no terminal shows it: as many as the text takes."""
FORMAT = click.option("--format", "wanted", type=click.Choice([*FORMATS, TEXT]), help="Else from the file's name.")
OUTPUT = click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to a file.")
FORCE = click.option("--force", is_flag=True, help="Replace the file if there is one.")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("recording", shell_complete=among(recordings, files=True))
@FORMAT
@OUTPUT
@FORCE
def export(recording: str, wanted: str | None, output: Path | None, force: bool) -> int:
    """Turn RECORDING, a file, a bundled recording or a conversation, into something to show to others.

    html is one page with a scrubber and the facts of every token, json everything for programs. Without -o it goes to
    stdout.
    """
    print_or_write(_document(recording), wanted, output, force)
    return ExitCode.OK


def print_or_write(document: ExportedPage, wanted: str | None, output: Path | None, force: bool) -> None:
    """Write a document to a file and print where it is, or to stdout. Raises :class:`Problem`."""
    chosen = wanted or _format_of(output)
    if output is None or str(output) == "-":
        if sys.stdout.isatty() and chosen != TEXT:
            raise Problem(f"A terminal can't show {chosen}.", "Name a file with -o, or send it into a pipe.")
        standard = StandardOutput()
        standard.write(_rendered(document, chosen, get_terminal_size().columns if sys.stdout.isatty() else WIDEST))
        standard.close()
        return
    write_file(output, _rendered(document, chosen), force)
    say_path(output.resolve())


def _format_of(output: Path | None) -> str:
    """The format that a file's name stands for; text where there is no file."""
    if output is None:
        return TEXT
    ending = output.suffix.removeprefix(".").lower()
    if ending in FORMATS:
        return ending
    if ending in ("txt", "md", ""):
        return TEXT
    raise Problem(
        f"{output} says no format that is known.", f"Choose one with --format: {', '.join([*FORMATS, TEXT])}."
    )


def _rendered(document: ExportedPage, wanted: str, room: int = WIDEST) -> str:
    from dflash_tui.core.export.formats import render
    from dflash_tui.core.export.text import to_text

    chosen: Format | None = next((each for each in get_args(Format) if each == wanted), None)
    return to_text(document, room) if chosen is None else render(document, chosen)


def write_file(path: Path, text: str, force: bool) -> None:
    """Write a file, complete or not at all; one that exists is replaced with ``force`` alone. Raises
    :class:`Problem`."""
    if not force and os.path.lexists(path):
        raise Problem(f"{path} exists already.", "Choose another name, or replace it with --force.")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_bytes(text.encode("utf-8", "replace"))
        try:
            if force:
                temporary.replace(path)
            else:
                os.link(temporary, path)  # unlike a rename, never over a file that has just appeared
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError:
        raise Problem(f"{path} exists already.", "Choose another name, or replace it with --force.") from None
    except OSError as error:
        raise Problem(f"{path} can't be written: {error.strerror}.", "Choose another file with -o.") from error


def _document(name: str) -> ExportedPage:
    from dflash_tui.core.export.document import ExportedPage, origin_of, with_factors
    from dflash_tui.core.replay.bundled import find_recording
    from dflash_tui.core.replay.recording import read_recording

    try:
        path = find_recording(name)
        recording = read_recording(path)
    except OSError as error:
        raise Problem(f"{path} can't be read: {error.strerror}.", "Name a file that you may read.") from None
    if recording.problem:
        remark(in_line(f"dflash-chat: {recording.problem}"))
    origin = origin_of(recording.ready, recording.created, recording.program)
    answers = with_factors(recording.turns, origin.times)
    asked = next((answer.question for answer in answers if answer.question.strip()), path.stem)
    return ExportedPage(shorten(asked, TITLE, placeholder=" …"), answers, origin)
