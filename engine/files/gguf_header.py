"""Reads what a GGUF file says of its model before its weights, even of one in several parts; refusals say in words what
a file is not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import WeightsFailure
from .gguf import MAGIC, VERSIONS, Gguf, read_gguf
from .pointers import refuse_pointer

_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 38: "MXFP4",
}  # fmt: skip
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """The keys of a file, and its size with all further parts."""

    path: Path
    keys: Mapping[str, Any]
    """The keys without vocabularies; ``lengths`` knows how long those were."""
    lengths: Mapping[str, int]
    tensors: frozenset[str]
    """Names of the tensors in this part."""
    num_bytes: int
    """Bytes of all parts."""

    @property
    def architecture(self) -> str:
        return str(self.keys.get("general.architecture", ""))

    @property
    def name(self) -> str:
        """The file's name, by which people know the model: the key for the name holds neither version nor
        quantisation."""
        return _SHARD.sub("", self.path.name).removesuffix(".gguf")

    @property
    def quantisation(self) -> str:
        """The format of most of its weights; empty when the file doesn't say."""
        return _FILE_TYPES.get(self.keys.get("general.file_type", -1), "")

    @property
    def vocabulary(self) -> int:
        return self.lengths.get("tokenizer.ggml.tokens", 0)

    def of(self, key: str, otherwise: Any = None) -> Any:
        """The value of a key that has the architecture's name in front, such as ``block_count`` of
        ``llama.block_count``."""
        return self.keys.get(f"{self.architecture}.{key}", otherwise)

    def count(self, key: str) -> int:
        """The value of such a key as a count; 0 when it is missing."""
        value = self.of(key, 0)
        return value if isinstance(value, int) else 0


def read_header(path: Path) -> GgufHeader:
    """Reads a file's header. Raises ``WeightsFailure`` for a file that is missing, no GGUF, damaged or cut short."""
    header = _read_part(path)
    parts = shards(path)
    for shard in parts:
        if shard != path:
            _read_part(shard)
    return GgufHeader(
        path, header.fields, header.lengths, frozenset(header.tensors), sum(shard.stat().st_size for shard in parts)
    )


def shards(path: Path) -> list[Path]:
    """All parts of a file that may be one of several. Raises ``WeightsFailure`` when it isn't the first."""
    match = _SHARD.search(path.name)
    if match is None:
        return [path]
    first, total = (int(number) for number in match.groups())
    names = [f"{path.name[: match.start()]}-{number:05d}-of-{total:05d}.gguf" for number in range(1, total + 1)]
    if first != 1:
        raise WeightsFailure(f"{path.name} is part {first} of {total} of a model.", f"Name the first part: {names[0]}")
    return [path.with_name(name) for name in names]


def missing_file(path: Path) -> WeightsFailure:
    return WeightsFailure(f"There is no file {path}.", "Check the path.")


def _read_part(path: Path) -> Gguf:
    refuse_pointer(path)
    try:
        with path.open("rb") as file:
            magic, rest = file.read(4), file.read(4)
    except FileNotFoundError:
        raise missing_file(path) from None
    except IsADirectoryError:
        raise WeightsFailure(f"{path} is a folder, not a GGUF file.", "Name a file in it.") from None
    except OSError as error:
        raise WeightsFailure(f"{path} can't be read: {error.strerror or error}.", "Check its permissions.") from None
    version = int.from_bytes(rest, "little")
    if len(rest) < 4 and MAGIC.startswith(magic):
        raise WeightsFailure(f"{path.name} is cut off: it has {len(magic + rest)} bytes.", "Fetch it again.")
    if magic != MAGIC:
        raise WeightsFailure(
            f"{path.name} is no GGUF file: it begins with {magic!r}.",
            "Name a model in llama.cpp's format. One in transformers' format is named by its folder.",
        )
    if version not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        what = f"{path.name} is GGUF of version {version}; known are {known}."
        raise WeightsFailure(what, "Fetch a newer file of the model.")
    return read_gguf(path)
