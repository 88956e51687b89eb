"""A short name for the exact weights in a folder, so that two runs can be told to be of the same models."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

WHOLE_FILE = 64 * 2**20
"""Files up to this many bytes are read whole."""
SAMPLES, SAMPLE = 1024, 4096
"""Of a larger file so many places of so many bytes are read, evenly spread: 4 MiB of every shard, whatever its size."""


def fingerprint(folder: Path) -> str:
    """16 hexadecimal digits over names, sizes and contents of a checkpoint's ``.json`` and ``.safetensors`` files.

    Another checkpoint, another quantisation or another step of training has another fingerprint; a few bytes changed on
    purpose within a large file may go unnoticed. Raises ``OSError`` when a file can't be read.
    """
    total = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.suffix in (".json", ".safetensors")):
        size = path.stat().st_size
        total.update(f"{path.name}\0{size}\0".encode())
        for part in _parts(path, size):
            total.update(part)
    return total.hexdigest()[:16]


def _parts(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        if size <= WHOLE_FILE:
            yield file.read()
            return
        for number in range(SAMPLES):
            file.seek(number * (size - SAMPLE) // (SAMPLES - 1))
            yield file.read(SAMPLE)
