"""Refuses what stands in a file's place: pointers of git-lfs, links to what isn't there any more, folders and pipes."""

from __future__ import annotations

from pathlib import Path

from ..errors import WeightsFailure

_LFS, _LONGEST = b"version https://git-lfs.github.com/spec/", 1024


def refuse_pointer(path: Path) -> None:
    """Raises ``WeightsFailure`` for a file that git left in the place of a large one, for a link to nowhere, and for
    what is there and no file: a pipe would keep whoever reads it waiting."""
    if path.is_symlink() and not path.exists():
        raise WeightsFailure(
            f"{path} is a link to {path.readlink()}, where nothing is.",
            "Download the checkpoint again, or copy the file itself here.",
        )
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "no file"
        raise WeightsFailure(f"{path} can't be read: it is {what}.", "The folder must hold a whole checkpoint.")
    try:
        with path.open("rb") as file:
            begun = file.read(len(_LFS))
        is_pointer = begun == _LFS and path.stat().st_size <= _LONGEST
    except OSError:  # whoever reads the file will say so
        return
    if is_pointer:
        raise WeightsFailure(
            f"{path} is a pointer of git-lfs, not the file: the folder was cloned without git-lfs.",
            f"Fetch the files: git lfs install, then git lfs pull in {path.parent}; or let this program fetch the"
            " model by its name on the hub.",
        )
