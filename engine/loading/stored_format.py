"""Finds out in which format a folder's weights are stored, from its tensors' names and headers, without reading a
weight."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..commands import FORMAT_NAMES, WeightFormat
from ..errors import WeightsFailure
from ..files.gguf import gguf_file, in_llama_cpp, read_gguf
from ..files.headers import BLOCKS, Headers, read_headers
from ..files.json_fields import read_json
from ..files.shards import INDEX, SINGLE_FILE
from ..models.registry import find_family
from .file_formats import FILE_FORMATS, FP8_IN_BLOCKS, FP8_ROWS, endings_of
from .refusals import refuse_config, refuse_gguf, refuse_tensors
from .stored_weight import FileFormat

BESIDE_GGUF = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)
"""Files that must lie beside a GGUF file: it describes layers' kinds and the tokenizer otherwise than the engine reads
them."""
GGUF_LAYERS = "blk."
"""The beginning of the names of a GGUF file's layers."""
IN_LEVELS = "Q4_1"
"""The GGUF type whose blocks have numbers on 16 even levels."""


@dataclass(frozen=True, slots=True)
class StoredFormat:
    """How the weights of a checkpoint's layers lie in its files."""

    weights: WeightFormat
    """The format; ``bf16`` stands for floats of any size. In a mixture it is the packed format with the most bytes."""
    group: int = 0
    """How many neighbours share a scale, in formats with several sizes of groups; otherwise 0."""
    scales: str = ""
    """The scales' dtype, as safetensors calls it, in formats with several; otherwise empty."""
    blocks: str = ""
    """For floats that a file holds in blocks of fewer bits: the type of most of these, such as Q4_1."""
    in_levels: bool = False
    """Whether all matrices of its layers are blocks of 16 even levels, which a CPU multiplies in 4 bits."""
    unpacked: str = ""
    """The name of the files' format (``FP8 in blocks``) where it becomes floats while it is read; otherwise empty."""

    def __str__(self) -> str:
        if self.unpacked:
            return self.unpacked
        if self.blocks:
            return self.blocks
        name = FORMAT_NAMES[self.weights]
        return f"{name} in groups of {self.group}" if self.group else name


def stored_format(folder: Path, room: int | None = None) -> StoredFormat:
    """The format of a folder's weights. Raises ``WeightsFailure`` for a damaged checkpoint, and for a format with which
    the engine can't compute, naming the format and what would work instead in ``room`` (bytes free on the device; None:
    any)."""
    return format_of(read_files(folder, room=room).headers)


@dataclass(frozen=True, slots=True)
class Files:
    """A checkpoint's config and tensor headers."""

    config: dict[str, Any]
    """The contents of ``config.json``."""
    headers: Headers
    gguf: bool
    """Whether the tensors are those of a GGUF file, with the names used there."""


def read_files(folder: Path, weights: WeightFormat | None = None, room: int | None = None) -> Files:
    """Reads a folder's config and headers; raises as ``stored_format``. Where a folder has a GGUF file besides floats,
    that is read for ``int4``."""
    path = gguf_file(folder)
    whole = (folder / INDEX).exists() or (folder / SINGLE_FILE).exists()
    if path is not None and not (folder / "config.json").exists():
        raise WeightsFailure(
            f"{path.name} lies in {folder} without config.json.",
            (f"Put {', '.join(BESIDE_GGUF)} of the original checkpoint beside it. ", *in_llama_cpp(path)),
        )
    config = read_json(folder / "config.json")
    headers = read_headers(folder) if whole or path is None else {}
    if path is not None and (not headers or (weights == "int4" and format_of(headers).weights == "bf16")):
        file = read_gguf(path)
        refuse_gguf(path, file, config)
        return Files(config, file.tensors, gguf=True)
    family = find_family(config)
    own = () if family is None else endings_of(family.published_in)
    refuse_tensors({name: each for name, each in headers.items() if not name.endswith(own)}, config, room)
    refuse_config(config, format_of(headers).weights != "bf16", room)
    return Files(config, headers, gguf=False)


def format_of(headers: Headers) -> StoredFormat:
    """The format of tensors, none of which is refused."""
    sizes: Counter[FileFormat] = Counter()
    for name, header in headers.items():
        for each in FILE_FORMATS:
            if each.weights != "bf16" and name.endswith(each.endings[0]) and each.has(header):
                sizes[each] += header.nbytes
    in_blocks = any(name.endswith(FP8_IN_BLOCKS.endings[1]) for name in headers)
    if in_blocks:
        del sizes[FP8_ROWS]
    if not sizes:
        blocks = Counter(header.dtype for header in headers.values() if header.dtype in BLOCKS)
        matrices = {
            header.dtype for name, header in headers.items() if name.startswith(GGUF_LAYERS) and len(header.shape) == 2
        }
        most = max(blocks, key=lambda name: blocks[name], default="")
        unpacked = "FP8 in blocks" if in_blocks else ""
        return StoredFormat("bf16", blocks=most, in_levels=matrices == {IN_LEVELS}, unpacked=unpacked)
    file = sizes.most_common(1)[0][0]
    return StoredFormat(file.weights, *file.details(headers))
