"""How the command line prints: nothing that a terminal would act on, whoever's words it is. ``print`` is used nowhere
else (``T201``)."""

from __future__ import annotations

import sys

from dflash_tui.core.text.harmless import signed


def say(text: str) -> None:
    """Print lines on stdout."""
    print(signed(text), flush=True)


def say_path(path: object) -> None:
    """Print a file's name on stdout: as it is for a program, which opens it; in one harmless line on a terminal."""
    print(" ".join(signed(str(path)).split("\n")) if sys.stdout.isatty() else path, flush=True)


def remark(text: str) -> None:
    """Print lines on stderr."""
    print(signed(text), file=sys.stderr, flush=True)
