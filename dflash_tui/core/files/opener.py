"""Open a file that was saved with the program that the desktop has for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from ..failures import Failure

SHOWN = {".csv", ".htm", ".html", ".json", ".md", ".svg", ".toml", ".txt", ".xml", ".yaml"}
"""Kinds of file that desktops show. A desktop may run others, such as ``.py`` and ``.js``, instead of showing them."""


class OpeningError(Failure):
    """A file that was not opened."""


def open_file(path: Path) -> None:
    """Ask the desktop to show ``path``, and don't wait for it. Raises :class:`OpeningError`."""
    where = f"It is here: {path.resolve()}"
    if path.suffix.lower() not in SHOWN:
        raise OpeningError(f"A {path.suffix or 'nameless'} file isn't opened: a desktop might run it.", where)
    program = "open" if sys.platform == "darwin" else "xdg-open"
    if shutil.which(program) is None:
        raise OpeningError(f"There is no {program} here to open it with.", where)
    try:
        subprocess.Popen(
            [program, path.resolve()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise OpeningError(f"{program} could not be started: {error.strerror or error}.", where) from error
