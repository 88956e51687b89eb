"""Reads which tensors a checkpoint has from the headers of its safetensors files. Needs neither torch nor the tensors'
bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from ..errors import WeightsFailure
from .pointers import refuse_pointer
from .shards import INDEX, SINGLE_FILE, is_sharded, read_weight_map

Headers = dict[str, "TensorHeader"]
"""The headers of a checkpoint's tensors, by name."""

ITEM_BITS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4,
    "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32, "U16": 16, "U8": 8, "BOOL": 8,
}  # fmt: skip
SAMPLES, SAMPLE = 256, 4096
"""How many places of two tensors are compared, and how many bytes at each."""
BLOCKS = {"Q4_0": (32, 18), "Q4_1": (32, 20), "Q8_0": (32, 34), "Q6_K": (256, 210)}
"""Formats of GGUF files that are read: numbers of a block, and bytes of a block."""
FLOATS = ("F64", "F32", "F16", "BF16")
"""Dtypes of weights that aren't packed, by their names in headers."""


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """Where a tensor's bytes lie in a file, their dtype and its shape."""

    path: Path
    offset: int
    dtype: str
    """The dtype's name in safetensors (BF16), or a type of blocks in GGUF files (Q4_0)."""
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The tensor's bytes; 0 for formats of GGUF files that are not read."""
        if self.dtype in BLOCKS:
            numbers, size = BLOCKS[self.dtype]
            return prod(self.shape) // numbers * size
        return prod(self.shape) * ITEM_BITS.get(self.dtype, 0) // 8

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def read_headers(folder: Path) -> Headers:
    """The headers of all tensors of a checkpoint: of the files in its index, or of the one file there is. Raises
    ``WeightsFailure`` for files that are missing, damaged or cut off."""
    index = folder / INDEX
    if not is_sharded(folder):
        single = folder / SINGLE_FILE
        for path in (single, index):
            refuse_pointer(path)
        if not single.exists():
            raise no_weights(folder)
        return read_file_headers(single)
    names = read_weight_map(index)
    shards = sorted(set(names.values()))
    for shard in shards:
        refuse_pointer(folder / shard)
    missing = [shard for shard in shards if not (folder / shard).exists()]
    if missing:
        raise WeightsFailure(
            f"{len(missing)} of the checkpoint's files are missing from {folder}, the first is {missing[0]}.",
            "Download the checkpoint again; what is there already is kept.",
        )
    files = {shard: read_file_headers(folder / shard) for shard in shards}
    for name, shard in names.items():
        if name not in files[shard]:
            raise damaged(folder / shard, f"it lacks {name}, which the index says it holds")
    return {name: files[shard][name] for name, shard in names.items()}


def lone_tensors(folder: Path, known: Headers, names: Sequence[str]) -> Headers:
    """The headers of tensors of these names in safetensors files of a folder that hold nothing of ``known``. Raises
    ``WeightsFailure`` where two of them hold the same one."""
    found: Headers = {}
    of_known = {header.path for header in known.values()}
    for path in sorted(folder.glob("*.safetensors")) if names else ():
        if path in of_known:
            continue
        refuse_pointer(path)
        for name, header in read_file_headers(path).items():
            if name in names and (other := found.setdefault(name, header)) is not header:
                raise damaged(path, f"it holds {name}, as {other.path.name} does")
    return found


MERGE = "Merge it into its model (merge_and_unload in peft), and save that."
UNPICKLE = (
    "A pickle may run code, so none is opened here. Torch's reader of weights alone makes safetensors of one, in its"
    ' folder: python -c "import torch, safetensors.torch as s; s.save_file({name: each.clone().contiguous() for name,'
    " each in torch.load('pytorch_model.bin', 'cpu', weights_only=True).items()}, 'model.safetensors')\""
)
OTHER_FILES = (
    ("adapter_config.json", "an adapter (LoRA)", MERGE),
    ("adapter_model.*", "an adapter (LoRA)", MERGE),
    ("consolidated*", "weights in their makers' own layout", "Take the copy for transformers: model.safetensors."),
    ("pytorch_model*.bin", "weights as pickles (.bin)", UNPICKLE),
    ("*.bin", "weights as pickles (.bin)", UNPICKLE),
    ("*.pth", "weights as pickles (.pth)", UNPICKLE),
    ("tf_model.h5", "weights for TensorFlow", "Take the copy in safetensors."),
    ("flax_model.msgpack", "weights for Flax", "Take the copy in safetensors."),
    ("*.onnx", "an ONNX graph", "Take the copy in safetensors."),
    ("*.safetensors", "safetensors files without an index", f"Several need {INDEX}; one is called {SINGLE_FILE}."),
)
"""What else a folder may hold, by a pattern of file names; with words for people, and what they can do."""


def no_weights(folder: Path) -> WeightsFailure:
    """Why a folder holds no weights that are read: what it holds in their place."""
    for pattern, what, hint in OTHER_FILES:
        if (weights := min(folder.glob(pattern), default=None)) is not None:
            return WeightsFailure(f"{folder} holds {what}, {weights.name}, and no weights that the engine reads.", hint)
    return WeightsFailure(f"There are no weights in {folder}.", f"The folder must hold {SINGLE_FILE}.")


def read_file_headers(path: Path) -> Headers:
    """The headers of one file. They are kept: a plan and a loader ask for the same ones, up to 24,000."""
    require_readable(path)
    status = path.stat()
    return _file_headers(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=128)
def _file_headers(path: Path, _size: int, _changed: int) -> Headers:
    with opened(path, "numpy"), path.open("rb") as file:  # opening it checks the header and the file's length
        length = int.from_bytes(file.read(8), "little")
        content = json.loads(file.read(length))
    return {
        name: TensorHeader(path, 8 + length + entry["data_offsets"][0], entry["dtype"], tuple(entry["shape"]))
        for name, entry in content.items()
        if name != "__metadata__"
    }


@contextmanager
def opened(path: Path, framework: str) -> Iterator[Any]:
    """Opens a safetensors file for a block; raises ``WeightsFailure`` where it is damaged, or can't be read at all."""
    require_readable(path)
    try:
        with safe_open(path, framework=framework) as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise damaged(path, str(error)) from None


def same_bytes(one: TensorHeader, other: TensorHeader) -> bool:
    """Whether two tensors are equal, as far as a sample of their bytes shows."""
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    step = max(SAMPLE, one.nbytes // SAMPLES)
    with one.path.open("rb") as first, other.path.open("rb") as second:
        for start in range(0, one.nbytes, step):
            first.seek(one.offset + start)
            second.seek(other.offset + start)
            count = min(SAMPLE, one.nbytes - start)
            if first.read(count) != second.read(count):
                return False
    return True


def require_readable(path: Path) -> None:
    """Raises ``WeightsFailure`` for what is no file, or one that may not be read: safetensors calls both missing."""
    try:
        path.open("rb").close()
    except OSError as error:
        what = f"{path} can't be read: {error.strerror or error}."
        raise WeightsFailure(what, "It must be a file that you may read.") from None


def damaged(path: Path, what: str) -> WeightsFailure:
    return WeightsFailure(
        f"{path.name} is damaged or incomplete ({what}).", f"Delete {path} and download the checkpoint again."
    )
