"""Where the log of a run goes: a file in the state directory, since neither stdout nor the screen has room for it."""

from __future__ import annotations

import logging
from contextlib import suppress

from dflash_tui.core.files.places import log_file
from dflash_tui.core.text.harmless import signed

_FORMAT = "%(asctime)s %(name)s %(levelname)s %(message)s"


def log_to_file() -> None:
    """Append warnings and tracebacks to ``dflash-chat.log``; dropped where there is no place for it."""
    try:
        file = log_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = _Notes(file, encoding="utf-8", delay=True)
    except OSError:
        handler = logging.NullHandler()
    logging.raiseExceptions = False
    logging.basicConfig(level=logging.WARNING, format=_FORMAT, handlers=[handler])


class _Notes(logging.FileHandler):
    """A log file in which a note that can't be written, for a full disk or for lack of descriptors, ends nothing, and
    that a terminal may show."""

    def format(self, record: logging.LogRecord) -> str:
        return signed(super().format(record))

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            super().emit(record)
