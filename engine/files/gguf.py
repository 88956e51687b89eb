"""What tensors a GGUF file has, in the terms of safetensors files. A reader of its own: the ``gguf`` package makes
arrays of all 777,000 strings of Gemma's vocabulary first, which took 73 s where this takes 0.4."""

from __future__ import annotations

import mmap
import re
from math import prod
from pathlib import Path
from struct import Struct, error
from struct import unpack_from as unpack

from ..errors import WeightsFailure
from .headers import Headers, TensorHeader, damaged

MAGIC, VERSIONS = b"GGUF", (2, 3)
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of the metadata's types of numbers."""
STRING, ARRAY = 8, 9
TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K",
    12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64",
    29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}  # fmt: skip
MOST_DIMENSIONS, MOST = 4, 1 << 24
LENGTH = Struct("<Q")


def gguf_file(folder: Path) -> Path | None:
    """The model in GGUF that a folder holds, if any; its projector for images is none. Raises ``WeightsFailure`` where
    there are several, or parts of one."""
    found = [path for path in sorted(folder.glob("*.gguf")) if not path.name.startswith("mmproj")]
    if len(found) > 1 or any(re.search(r"-\d{5}-of-\d{5}\.gguf$", path.name) for path in found):
        raise WeightsFailure(
            f"{folder} holds {len(found)} GGUF files of models, the first is {found[0].name}.",
            "Leave one whole file there, beside config.json and the tokenizer.",
        )
    return found[0] if found else None


def read_gguf_headers(path: Path) -> Headers:
    """All tensors of a file. Raises ``WeightsFailure`` for one that is damaged or cut off."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            headers = _Reader(path, content).tensors()
            size = len(content)
    except (error, OSError, ValueError, OverflowError) as problem:
        raise damaged(path, str(problem) or type(problem).__name__) from None
    for name, header in headers.items():
        if header.offset + header.nbytes > size:
            raise damaged(path, f"it ends before {name} does")
    return headers


class _Reader:
    """Reads a header from its beginning to its end."""

    def __init__(self, path: Path, content: mmap.mmap):
        self._path, self._content, self._at = path, content, 0

    def tensors(self) -> Headers:
        self._move(len(MAGIC))
        version, num_tensors, num_fields = self._take("<IQQ")
        if self._content[: len(MAGIC)] != MAGIC or version not in VERSIONS or max(num_tensors, num_fields) > MOST:
            raise ValueError(f"no GGUF file of version {' or '.join(map(str, VERSIONS))}")
        alignment = 32
        for _ in range(num_fields):
            name = self._string()
            (kind,) = self._take("<I")
            if name == "general.alignment" and kind == 4:
                (alignment,) = unpack("<I", self._content, self._at)
            self._skip(kind)
        found = [self._tensor() for _ in range(num_tensors)]
        if alignment <= 0 or len({name for name, _ in found}) != num_tensors:
            raise ValueError("tensors of one name, or an alignment of 0")
        start = -(-self._at // alignment) * alignment
        return {name: TensorHeader(self._path, start + each.offset, each.dtype, each.shape) for name, each in found}

    def _tensor(self) -> tuple[str, TensorHeader]:
        name = self._string()
        (dimensions,) = self._take("<I")
        if not 0 < dimensions <= MOST_DIMENSIONS:
            raise ValueError(f"{name} has {dimensions} dimensions")
        shape = tuple(reversed(self._take(f"<{dimensions}Q")))  # the first is that of neighbours
        kind, offset = self._take("<IQ")
        if kind not in TYPES or prod(shape) > 1 << 48:
            raise ValueError(f"{name} is of type {kind} and of shape {list(shape)}")
        return name, TensorHeader(self._path, offset, TYPES[kind], shape)

    def _skip(self, kind: int) -> None:
        """A value of the metadata."""
        if kind == STRING:
            self._skip_strings(1)
        elif kind == ARRAY:
            each, count = self._take("<IQ")
            if count > MOST or each not in (STRING, *SIZES):
                raise ValueError(f"a list of {count} values of type {each}")
            if each == STRING:
                self._skip_strings(count)
            else:
                self._move(SIZES[each] * count)
        elif kind in SIZES:
            self._move(SIZES[kind])
        else:
            raise ValueError(f"a value of type {kind}")

    def _skip_strings(self, count: int) -> None:
        content, at, length_of = self._content, self._at, LENGTH.unpack_from
        for _ in range(count):
            at += 8 + length_of(content, at)[0]
        self._at = at

    def _string(self) -> str:
        (length,) = self._take("<Q")
        start = self._at
        self._move(length)
        return self._content[start : self._at].decode("utf-8")

    def _take(self, layout: str) -> tuple[int, ...]:
        values = unpack(layout, self._content, self._at)
        self._at += Struct(layout).size
        return values

    def _move(self, count: int) -> None:
        if count > len(self._content) - self._at:
            raise ValueError("it ends too early")
        self._at += count
