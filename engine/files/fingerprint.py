"""Computes short names for the exact weights in a folder, and for the code that runs them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ..errors import WeightsFailure

WHOLE_FILE = 64 * 2**20
"""Files up to this many bytes are read whole."""
SAMPLES, SAMPLE = 1024, 4096
"""How many places of a larger file are read, evenly spread, and how many bytes at each: 4 MiB of every shard, whatever
its size."""

ENGINE = Path(__file__).parents[1]
NO_DECODING = ("lab", "tools")
"""Folders of the engine whose files decide nothing about what a round launches and costs."""


def fingerprint(folder: Path) -> str:
    """16 hex digits over names, sizes and contents of a checkpoint's ``.json``, ``.safetensors`` and ``.gguf`` files;
    ``WeightsFailure`` for an unreadable one. Large files are sampled: a few changed bytes may go unnoticed."""
    total = hashlib.sha256()
    named = (path for path in folder.iterdir() if path.suffix in (".json", ".safetensors", ".gguf"))
    for path in sorted(path for path in named if path.is_file()):
        try:
            size = path.stat().st_size
            total.update(f"{path.name}\0{size}\0".encode())
            for chunk in _parts(path, size):
                total.update(chunk)
        except OSError as error:
            what = f"{path} can't be read: {error.strerror}."
            raise WeightsFailure(what, "It must be a file that you may read.") from None
    return total.hexdigest()[:16]


def _parts(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        if size <= WHOLE_FILE:
            yield file.read()
            return
        for number in range(SAMPLES):
            file.seek(number * (size - SAMPLE) // (SAMPLES - 1))
            yield file.read(SAMPLE)


@cache
def fingerprint_of_code() -> str:
    """64 hexadecimal digits over the engine's source files: another version may launch other kernels."""
    total = hashlib.sha256()
    for path in sorted(ENGINE.rglob("*.py")):
        if path.relative_to(ENGINE).parts[0] not in NO_DECODING:
            total.update(path.read_bytes())
    return total.hexdigest()
