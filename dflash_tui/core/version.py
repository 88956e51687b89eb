"""Which version of the program runs."""

from __future__ import annotations

PROGRAM = "dflash-chat"
NOT_INSTALLED = "not installed (source tree)"


def installed_version(package: str = PROGRAM) -> str:
    """A package's version, as its metadata says; a source tree that nobody installed has none."""
    # Imported here: it costs more than everything else that the first frame needs.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return NOT_INSTALLED
