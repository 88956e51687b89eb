"""What loading knows of a weight that lies in files: its tensors, the kind of weight that they make, and what a format
of files must say. ``file_formats.py`` has the formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..commands import WeightFormat
from ..errors import Text, WeightsFailure
from ..files.headers import Headers, TensorHeader
from ..files.json_fields import DOWNLOAD_AGAIN
from ..files.pinned_reader import DTYPES
from ..kernels.weights.int8 import ROWS_AT_ONCE
from ..kernels.weights.kinds import PACKED
from ..kernels.weights.panels import DEPTH, ROWS, PackedWeight, Rows
from .refusals import advice, declared_block, declared_weights, quantization_of

NUMBERS_AT_ONCE = 64 << 20
"""Numbers of packed rows, a byte each, that are laid out otherwise at a time. Experts have many short rows: taken by
thousands, what launches the work on a GPU takes longer than reading them."""

Tensors = Mapping[str, TensorHeader]
"""The tensors of a weight, by the endings of their names."""


@dataclass(frozen=True, slots=True)
class StorageKind:
    """A kind of weight with all that its size depends on."""

    format: WeightFormat
    group: int = 0
    scales: str = ""
    """Where scales have several dtypes: theirs, as safetensors calls it."""

    def allocate(self, shape: Sequence[int], device: torch.device) -> PackedWeight:
        dtype = DTYPES[self.scales] if self.scales else None
        return PACKED[self.format].allocate(*shape, device=device, group=self.group or DEPTH, scales=dtype)


PLAIN = StorageKind("bf16")


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A tensor of a checkpoint and its place in a parameter."""

    tensor: str
    ending: str
    expert: int | None = None
    rows: tuple[int, int] = (0, 0)
    """Rows of the expert that it holds: the first, and the one behind the last."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A parameter as the files store it."""

    file: FileFormat
    kind: StorageKind
    dtype: str
    """The dtype of floats, by its name in safetensors, or the type of blocks that become floats."""
    shape: tuple[int, ...]
    parts: tuple[StoredPart, ...]
    interleaved: int = 0
    """If not 0, how many rows each of its heads has; rows of a head's two halves alternate."""
    transposed: bool = False
    """Whether its rows are columns in the file."""
    block: tuple[int, int] = (1, 1)
    """Rows and columns that share a scale, where a file holds FP8 in blocks."""
    order: Tensor | None = None
    """Which of the file's rows each row is: see ``TargetModel.row_order``."""

    def part_shape(self, stored_part: StoredPart) -> tuple[int, ...]:
        """The shape of the parameter's rows that one part holds: [..., rows, depth]."""
        return self.shape if stored_part.expert is None else (stored_part.rows[1] - stored_part.rows[0], self.shape[-1])


class WeightsConfig:
    """What a checkpoint's config says of its weights."""

    def __init__(self, config: Mapping[str, Any]):
        quantization = quantization_of(config)
        declared = [each.get("group_size") for each in declared_weights(quantization)]
        self.config = config
        self.groups = {size for size in declared if isinstance(size, int) and size > 0}
        self.block = declared_block(quantization)

    @property
    def advice(self) -> Text:
        return advice(self.config, None)


@dataclass(frozen=True, slots=True)
class PackedRows:
    """A packed weight as files store it, row by row; a ``Weight`` lies in panels."""

    stored: Stored
    values: Tensor
    """uint8 [rows of all matrices, bytes of a row]."""
    scales: Tensor
    """[rows], or [rows, groups], as the file has them."""

    def weight(self) -> PackedWeight:
        """The same weight in the form that products take."""
        depth = self.stored.shape[-1]
        rows = max(ROWS_AT_ONCE, NUMBERS_AT_ONCE // depth // ROWS * ROWS)
        return self.stored.kind.allocate(self.stored.shape, self.values.device).filled(self._in_parts(rows))

    def floats(self, dtype: torch.dtype) -> Tensor:
        """The weight's values as floats, in the parameter's own shape."""
        result = torch.empty(len(self.values), self.stored.shape[-1], dtype=dtype, device=self.values.device)
        for start, numbers, steps in self._in_parts():
            result[start : start + len(numbers)] = self._packed.floats(numbers, steps)
        return result.view(self.stored.shape)

    def check(self, name: str) -> None:
        """Raises ``WeightsFailure`` for scales that are no numbers or that no weight can have, and for zeros that scale
        anything but zeros."""
        if wrong := self._packed.wrong_scale(self.scales, self._in_parts()):
            raise WeightsFailure(f"A scale of {name} is {wrong}.", DOWNLOAD_AGAIN)

    @property
    def _packed(self) -> type[PackedWeight]:
        return PACKED[self.stored.kind.format]

    def _in_parts(self, rows: int = ROWS_AT_ONCE) -> Iterator[Rows]:
        """Yields all rows, some at a time."""
        for start in range(0, len(self.values), rows):
            chunk = slice(start, start + rows)
            yield start, self.stored.file.numbers(self.values[chunk]), self.scales[chunk]


class FileFormat(ABC):
    """A way to store a weight in tensors of a file."""

    weights: ClassVar[WeightFormat] = "bf16"
    """The format that a weight has in memory, if nothing else is asked for."""
    endings: ClassVar[tuple[str, ...]] = ("",)
    """What follows a weight's name in the names of its tensors: the numbers' first."""
    own: ClassVar[tuple[str, ...]] = ()
    """The endings of tensors' names that no other format has: one of them is enough to know it by."""
    dtypes: ClassVar[Collection[str]]
    """The dtypes of its numbers, by their names in headers."""

    def has(self, numbers: TensorHeader | None) -> bool:
        return numbers is not None and numbers.dtype in self.dtypes

    def claims(self, tensors: Tensors) -> bool:
        """Whether tensors of a weight must be of this format; those that come first in ``FILE_FORMATS`` claim first."""
        return not tensors.keys().isdisjoint(self.own) or self.has(tensors.get(self.endings[0]))

    def details(self, headers: Headers) -> tuple[int, str]:
        """How many neighbours share a scale in files of this format, and the scales' dtype: (0, "") where the format
        has one of each."""
        return 0, ""

    @abstractmethod
    def check(
        self, base: str, tensors: Tensors, shape: tuple[int, ...], weights_config: WeightsConfig
    ) -> tuple[StorageKind, str]:
        """The kind of a weight of this shape, [..., rows, depth], and its ``Stored.dtype``. Raises ``WeightsFailure``
        for tensors that are not as they should be."""

    def split(self, stored: Stored, stored_part: StoredPart, tensor: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        """The "values", the "scales" or both that a tensor holds. ``dtype``: of floats that are made of blocks."""
        if stored_part.ending != self.endings[0]:
            return {"scales": tensor}
        return {"values": tensor.contiguous().view(torch.uint8)}

    def numbers(self, values: Tensor) -> Tensor:
        """The numbers in rows of bytes, as ``PackedWeight.packed`` takes them: by default two from each byte, the first
        in its lower bits."""
        return torch.stack((values & 15, values >> 4), dim=-1).flatten(-2)

    def whole(self, name: str, stored: Stored, pieces: dict[str, Tensor], dtype: torch.dtype) -> Tensor | PackedRows:
        """The parameter, from the values and scales of all its parts."""
        outer = len(stored.shape) - 1
        packed = PackedRows(stored, pieces["values"].flatten(0, -2), pieces["scales"].flatten(0, outer - 1))
        packed.check(name)
        return packed
