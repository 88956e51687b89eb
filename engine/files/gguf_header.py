"""What a GGUF file says before its weights: keys and the tensors' places, read without loading anything. The format:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import WeightsFailure

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_ITEMS = 1 << 24
"""Keys, tensors, items of an array and bytes of a string: more is damage."""
MOST_KEPT = 4096
"""Items of an array that are kept; of a vocabulary only the length matters here."""

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 16: (256, 66), 17: (256, 74),
    18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2),
    26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 39: (32, 17),
}  # fmt: skip
"""Numbers in a block and its bytes, by the tensor's type. Of a type that isn't here the size is not checked."""
_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 38: "MXFP4",
}  # fmt: skip
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """A file's keys, and how large it and its further parts are."""

    path: Path
    keys: Mapping[str, Any]
    """Long arrays are cut; ``lengths`` knows how long they were."""
    lengths: Mapping[str, int]
    tensors: frozenset[str]
    """Names, of this part."""
    num_bytes: int
    """Of all parts."""

    @property
    def architecture(self) -> str:
        return str(self.keys.get("general.architecture", ""))

    @property
    def name(self) -> str:
        """The file's, by which people know it: what it says of itself has neither version nor quantisation."""
        return _SHARD.sub("", self.path.name).removesuffix(".gguf")

    @property
    def quantisation(self) -> str:
        """What most of its weights are kept in; empty when the file doesn't say."""
        return _FILE_TYPES.get(self.keys.get("general.file_type", -1), "")

    @property
    def vocabulary(self) -> int:
        return self.lengths.get("tokenizer.ggml.tokens", 0)

    def of(self, key: str, otherwise: Any = None) -> Any:
        """A key that has the architecture's name in front."""
        return self.keys.get(f"{self.architecture}.{key}", otherwise)

    def count(self, key: str) -> int:
        """The same for one that is a count; 0 when it is not there."""
        value = self.of(key, 0)
        return value if isinstance(value, int) else 0


def read_header(path: Path) -> GgufHeader:
    """Raises ``WeightsFailure`` for a file that is missing, no GGUF, damaged or cut short."""
    keys, lengths, names = _read_part(path)
    parts = shards(path)
    for part in parts:
        if part != path:
            _read_part(part)
    return GgufHeader(path, keys, lengths, names, sum(part.stat().st_size for part in parts))


def shards(path: Path) -> list[Path]:
    """All parts of a file that may be one of several. Raises ``WeightsFailure`` when it isn't the first."""
    match = _SHARD.search(path.name)
    if match is None:
        return [path]
    first, total = (int(number) for number in match.groups())
    names = [f"{path.name[: match.start()]}-{part:05d}-of-{total:05d}.gguf" for part in range(1, total + 1)]
    if first != 1:
        raise WeightsFailure(f"{path.name} is part {first} of {total} of a model.", f"Name the first part: {names[0]}")
    return [path.with_name(name) for name in names]


def _read_part(path: Path) -> tuple[dict[str, Any], dict[str, int], frozenset[str]]:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            return _Reader(file, size, path).read()
    except FileNotFoundError:
        raise WeightsFailure(f"There is no file {path}.", "Check the path.") from None
    except IsADirectoryError:
        raise WeightsFailure(f"{path} is a folder, not a GGUF file.", "Name a file in it.") from None
    except OSError as error:
        raise WeightsFailure(f"{path} can't be read: {error.strerror or error}.", "Check its permissions.") from None


class _Reader:
    def __init__(self, file: BinaryIO, size: int, path: Path) -> None:
        self._file, self._size, self._path = file, size, path
        self._lengths: dict[str, int] = {}

    def read(self) -> tuple[dict[str, Any], dict[str, int], frozenset[str]]:
        magic = self._file.read(4)
        if magic != MAGIC:
            raise WeightsFailure(
                f"{self._path.name} is no GGUF file: it begins with {magic!r}.",
                "Name a model in llama.cpp's format. One in transformers' format is named by its folder.",
            )
        version = self._number("I")
        if version not in VERSIONS:
            known = " and ".join(map(str, VERSIONS))
            what = f"{self._path.name} is GGUF of version {version}; known are {known}."
            raise WeightsFailure(what, "Fetch a newer file of the model.")
        num_tensors, num_keys = self._count(), self._count()
        keys: dict[str, Any] = {}
        for _ in range(num_keys):
            name = self._string()
            keys[name] = self._value(self._number("I"), name)
        places = [self._tensor() for _ in range(num_tensors)]
        alignment = keys.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise self._damaged("its alignment makes no sense")
        data = -(-self._file.tell() // alignment) * alignment
        needed = data + max((end for _, end in places), default=0)
        if self._size < needed:
            raise WeightsFailure(
                f"{self._path.name} is cut short: it has {self._size / 1e9:.2f} GB of {needed / 1e9:.2f}.",
                "Fetch it again; a download that goes on where it stopped is enough.",
            )
        return keys, self._lengths, frozenset(name for name, _ in places)

    def _tensor(self) -> tuple[str, int]:
        """Its name, and where it ends behind the beginning of the data."""
        name = self._string()
        numbers = 1
        for _ in range(self._number("I")):
            numbers *= self._number("Q")
        kind, offset = self._number("I"), self._number("Q")
        block, num_bytes = _BLOCKS.get(kind, (1, 0))
        return name, offset + numbers // block * num_bytes

    def _value(self, kind: int, name: str) -> Any:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            return self._array(name)
        if kind not in _SCALARS:
            raise self._damaged(f"a value of the unknown type {kind}")
        return self._number(_SCALARS[kind])

    def _array(self, name: str) -> list[Any]:
        kind, length = self._number("I"), self._count()
        self._lengths[name] = length
        kept = min(length, MOST_KEPT)
        if kind == _STRING:
            strings = [self._string() for _ in range(kept)]
            for _ in range(length - kept):
                self._skip(self._count())
            return strings
        if kind not in _SCALARS:
            raise self._damaged("an array of arrays")
        form = _SCALARS[kind]
        values = list(struct.unpack(f"<{kept}{form}", self._bytes(kept * struct.calcsize(form))))
        self._skip((length - kept) * struct.calcsize(form))
        return values

    def _string(self) -> str:
        return self._bytes(self._count()).decode("utf-8", "replace")

    def _count(self) -> int:
        number = int(self._number("Q"))
        if number > MOST_ITEMS:
            raise self._damaged("a length that makes no sense")
        return number

    def _number(self, form: str) -> Any:
        return struct.unpack(f"<{form}", self._bytes(struct.calcsize(form)))[0]

    def _skip(self, num_bytes: int) -> None:
        self._file.seek(num_bytes, 1)
        if self._file.tell() > self._size:
            raise self._damaged("it ends in the middle")

    def _bytes(self, num_bytes: int) -> bytes:
        data = self._file.read(num_bytes)
        if len(data) < num_bytes:
            raise self._damaged("it ends in the middle")
        return data

    def _damaged(self, what: str) -> WeightsFailure:
        return WeightsFailure(f"The header of {self._path.name} is damaged: {what}.", "Fetch the file again.")
