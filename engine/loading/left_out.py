"""Lists in a line for people what of a checkpoint's folder is not loaded."""

from __future__ import annotations

from collections import Counter

from ..hub.pairs import PairFolders
from ..models.registry import family_of, own_drafter_of
from .memory_plan import gigabytes
from .stored_format import read_files


def left_out(folders: PairFolders) -> str:
    """The parts of a target's files that a chat doesn't need, with their bytes, and an adapter beside its weights; ""
    where there are none."""
    files = read_files(folders.target)
    own = own_drafter_of(files.config) if folders.drafter == folders.target else None
    skipped, sizes = family_of(files.config).skipped_tensors, Counter[str]()
    for name, header in files.headers.items():
        drafts = own is not None and name.startswith(own.among)
        what = "" if drafts else next((reason for start, reason in skipped.items() if name.startswith(start)), "")
        if what:
            sizes[what] += header.nbytes
    parts = " and ".join(f"{what} ({gigabytes(sizes[what])})" for what in sorted(sizes))
    adapters = sorted(path.name for path in folders.target.glob("adapter_model.*"))
    remarks = [f"left out, as text doesn't need it: {parts}"] if parts else []
    return "; ".join(
        [*remarks, *(f"the adapter in {name} is not applied: merge it to use it" for name in adapters[:1])]
    )
