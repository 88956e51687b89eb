"""Python as on Windows, for this program alone: in front of ``PYTHONPATH`` it hides from ``dflash_tui`` and ``engine``
the modules that Windows lacks, in every process that a test starts. Libraries, which have branches of their own for
Windows, keep them: without, they would fail on Linux."""

from __future__ import annotations

import builtins
import sys
from typing import Any

HIDDEN = {"fcntl", "termios", "tty", "pty", "resource", "pwd", "grp", "syslog", "readline"}
HIDDEN_PATHS = {"textual.drivers.linux_driver"}
PACKAGES = ("dflash_tui", "engine")

_import = builtins.__import__


def _hiding(name: str, *arguments: Any, **options: Any) -> Any:
    if _importer() in PACKAGES and (name.partition(".")[0] in HIDDEN or name in HIDDEN_PATHS):
        raise ModuleNotFoundError(f"No module named {name!r} (hidden)", name=name)
    return _import(name, *arguments, **options)


def _importer() -> str:
    try:
        return str(sys._getframe(2).f_globals.get("__name__", "")).partition(".")[0]
    except ValueError:  # the interpreter itself
        return ""


builtins.__import__ = _hiding
