"""Reads what a GGUF file says of its model, and which tensors it has, in the terms of safetensors files. The ``gguf``
package first makes arrays of all 777,000 strings of Gemma's vocabulary, which took 73 s where this takes 0.4."""

from __future__ import annotations

import mmap
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from struct import Struct, calcsize, error
from struct import unpack_from as unpack
from typing import Any, NamedTuple

from ..errors import Attach, WeightsFailure
from .headers import Headers, TensorHeader, damaged, require_readable
from .pointers import refuse_pointer

MAGIC, VERSIONS = b"GGUF", (2, 3)
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The metadata's types of numbers, as ``struct`` writes them."""
STRING, ARRAY = 8, 9
TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36),
}  # fmt: skip
"""Types of tensors: name, numbers of a block, and bytes of a block."""
MOST_TYPES, MOST_DIMENSIONS, MOST = 255, 4, 1 << 24
MOST_KEPT = 4096
"""Items of a list that are kept; of a vocabulary only the length is needed."""
LENGTH = Struct("<Q")
LLAMA_SERVER = "http://localhost:8080"
"""Where llama.cpp's server listens when it isn't told otherwise."""
PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")


def in_llama_cpp(model: Path | str) -> tuple[str, Attach]:
    """Advice on a file, or a repository of the hub, that the engine doesn't read: llama.cpp's own server does."""
    words = ("llama-server", "-hf" if isinstance(model, str) else "-m", str(model))
    return f"llama.cpp runs it: {shlex.join(words)}   and beside it: ", Attach(LLAMA_SERVER)


def gguf_file(folder: Path) -> Path | None:
    """The model in GGUF that a folder holds, None for none; a projector for images is no model. Raises
    ``WeightsFailure`` where there are several, or parts of one."""
    files = [path for path in sorted(folder.glob("*.gguf")) if not path.name.startswith("mmproj")]
    if len(files) > 1 or any(PART.search(path.name) for path in files):
        raise WeightsFailure(
            f"{folder} holds {len(files)} GGUF files of models, the first is {files[0].name}.",
            "Leave one whole file there, beside config.json and the tokenizer.",
        )
    return files[0] if files else None


@dataclass(frozen=True, slots=True)
class Gguf:
    """A GGUF file without its weights."""

    fields: Mapping[str, Any]
    """The metadata. Lists longer than ``MOST_KEPT`` are cut, and lists of strings left out, unless they were asked
    for."""
    lengths: Mapping[str, int]
    """The length of each list, kept or not."""
    tensors: Headers

    @property
    def architecture(self) -> str:
        return str(self.fields.get("general.architecture", ""))


def read_gguf(path: Path, whole: Collection[str] = ()) -> Gguf:
    """Reads a file's metadata and tensor headers; the lists named in ``whole`` are kept to their ends. Raises
    ``WeightsFailure`` for a damaged file."""
    refuse_pointer(path)
    require_readable(path)
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _Reader(path, content, whole).read()
    except error:  # raised by struct
        raise damaged(path, "it ends within its header") from None
    except (OSError, ValueError, OverflowError) as problem:
        raise damaged(path, str(problem) or type(problem).__name__) from None


class _Reader:
    """Reads a header from its beginning to its end."""

    def __init__(self, path: Path, content: mmap.mmap, whole: Collection[str]):
        self._path, self._content, self._whole, self._at = path, content, whole, 0
        self._fields: dict[str, Any] = {}
        self._lengths: dict[str, int] = {}

    def read(self) -> Gguf:
        self._move(len(MAGIC))
        version, num_tensors, num_fields = self._take("<IQQ")
        if self._content[: len(MAGIC)] != MAGIC or version not in VERSIONS or max(num_tensors, num_fields) > MOST:
            raise ValueError(f"no GGUF file of version {' or '.join(map(str, VERSIONS))}")
        for _ in range(num_fields):
            name = self._string()
            (kind,) = self._take("<I")
            self._field(name, kind)
        entries = [self._tensor() for _ in range(num_tensors)]
        alignment = self._fields.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment <= 0 or len({each.name for each in entries}) != num_tensors:
            raise ValueError("tensors of one name, or an alignment of 0")
        start = -(-self._at // alignment) * alignment
        for each in entries:
            if start + each.offset + each.num_bytes > len(self._content):
                raise ValueError(f"it ends before {each.name} does")
        tensors = {each.name: TensorHeader(self._path, start + each.offset, each.dtype, each.shape) for each in entries}
        return Gguf(self._fields, self._lengths, tensors)

    def _tensor(self) -> _Tensor:
        name = self._string()
        (dimensions,) = self._take("<I")
        if not 0 < dimensions <= MOST_DIMENSIONS:
            raise ValueError(f"{name} has {dimensions} dimensions")
        shape = tuple(reversed(self._take(f"<{dimensions}Q")))  # GGUF puts the dimension of neighbours first
        kind, offset = self._take("<IQ")
        if kind > MOST_TYPES or prod(shape) > 1 << 48:
            raise ValueError(f"{name} is of type {kind} and of shape {list(shape)}")
        dtype, numbers, size = TYPES.get(kind, (f"type {kind}", 1, 0))
        return _Tensor(name, dtype, shape, offset, prod(shape) // numbers * size)

    def _field(self, name: str, kind: int) -> None:
        if kind == STRING:
            self._fields[name] = self._string()
        elif kind == ARRAY:
            each, count = self._take("<IQ")
            if count > MOST or each not in (STRING, *NUMBERS):
                raise ValueError(f"a list of {count} values of type {each}")
            self._lengths[name] = count
            if each == STRING and name in self._whole:
                self._fields[name] = [self._string() for _ in range(count)]
            elif each == STRING:
                self._skip_strings(count)
            else:
                num_values = count if name in self._whole else min(count, MOST_KEPT)
                self._fields[name] = list(self._take(f"<{num_values}{NUMBERS[each]}"))
                self._move((count - num_values) * calcsize(NUMBERS[each]))
        elif kind in NUMBERS:
            (self._fields[name],) = self._take(f"<{NUMBERS[kind]}")
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

    def _take(self, layout: str) -> tuple[Any, ...]:
        values = unpack(layout, self._content, self._at)
        self._at += Struct(layout).size
        return values

    def _move(self, count: int) -> None:
        if count > len(self._content) - self._at:
            raise ValueError("it ends too early")
        self._at += count


class _Tensor(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    """Where its bytes begin, counted from the end of the header."""
    num_bytes: int
