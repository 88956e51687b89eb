"""The formats in which files store weights: which tensors make one up, what they must look like, and how numbers come
out of them. A format is a class, with a place in ``FILE_FORMATS``."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import torch
from torch import Tensor

from ..commands import WeightFormat
from ..errors import Text, WeightsFailure
from ..files.gguf_blocks import q4_0, restored
from ..files.headers import BLOCKS, FLOATS, Headers, TensorHeader
from ..files.json_fields import DOWNLOAD_AGAIN
from ..kernels.weights.int4 import GROUPS
from ..kernels.weights.int8 import ROWS_AT_ONCE
from ..kernels.weights.mxfp4 import GROUP
from .refusals import refuse
from .stored_weight import PLAIN, FileFormat, PackedRows, StorageKind, Stored, StoredPart, Tensors, WeightsConfig

SCALE_DTYPES = ("BF16", "F16", "F32")
"""Dtypes that scales may have."""
FROM_ONE = "Take config.json and weights from one checkpoint, of a model that writes text."
"""What helps where files are whole, and a config tells of others."""
BLOCK = 32
"""Neighbours that share a scale in Q4_0, and in the INT4 that is made here."""


class Floats(FileFormat):
    """The format of weights that are stored as one tensor of floats."""

    dtypes: ClassVar[Collection[str]] = FLOATS

    def check(
        self, base: str, tensors: Tensors, shape: tuple[int, ...], weights_config: WeightsConfig
    ) -> tuple[StorageKind, str]:
        numbers = tensors[""]
        if numbers.shape != shape or numbers.dtype not in FLOATS:
            raise wrong(f"{base} is {numbers}, the config asks for floating-point {list(shape)}.")
        return PLAIN, numbers.dtype

    def split(self, stored: Stored, stored_part: StoredPart, tensor: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        return {"values": tensor}

    def whole(self, name: str, stored: Stored, pieces: dict[str, Tensor], dtype: torch.dtype) -> Tensor | PackedRows:
        return pieces["values"].mT.contiguous() if stored.transposed else pieces["values"]


class GgufBlocks(Floats):
    """The formats of GGUF files whose blocks become floats while they are read."""

    dtypes: ClassVar[Collection[str]] = BLOCKS

    def check(
        self, base: str, tensors: Tensors, shape: tuple[int, ...], weights_config: WeightsConfig
    ) -> tuple[StorageKind, str]:
        numbers = tensors[""]
        if numbers.shape != shape or shape[-1] % BLOCKS[numbers.dtype][0]:
            raise wrong(f"{base} is {numbers}, the config asks for {list(shape)}.")
        return PLAIN, numbers.dtype

    def split(self, stored: Stored, stored_part: StoredPart, tensor: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        return {"values": restored(tensor, stored.shape, stored.dtype, dtype)}


class Q4Blocks(FileFormat):
    """The format of weights that a GGUF file holds in blocks of Q4_0."""

    weights: ClassVar[WeightFormat] = "int4"
    dtypes: ClassVar[Collection[str]] = ("Q4_0",)

    def details(self, headers: Headers) -> tuple[int, str]:
        return BLOCK, "F16"

    def check(
        self, base: str, tensors: Tensors, shape: tuple[int, ...], weights_config: WeightsConfig
    ) -> tuple[StorageKind, str]:
        GGUF_BLOCKS.check(base, tensors, shape, weights_config)
        return StorageKind("int4", BLOCK, "F16"), ""

    def split(self, stored: Stored, stored_part: StoredPart, tensor: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        values, scales = q4_0(tensor, stored.shape)
        return {"values": values, "scales": scales}

    def numbers(self, values: Tensor) -> Tensor:
        """The numbers in rows of bytes: a byte holds two that stand 16 apart, the first in its lower bits."""
        halves = [half.reshape(len(half), -1, 16) for half in (values & 15, values >> 4)]
        return torch.stack(halves, dim=-2).flatten(-3)


class Int4Words(FileFormat):
    """INT4 of compressed-tensors: eight numbers in a word, and a scale for each group of a row."""

    weights: ClassVar[WeightFormat] = "int4"
    endings: ClassVar[tuple[str, ...]] = ("_packed", "_scale", "_zero_point")
    own: ClassVar[tuple[str, ...]] = ("_packed", "_zero_point")
    dtypes: ClassVar[Collection[str]] = ("I32",)

    def details(self, headers: Headers) -> tuple[int, str]:
        packed = {name: header for name, header in headers.items() if name.endswith("_packed")}
        largest = max(packed, key=lambda name: packed[name].nbytes)
        scales = headers.get(largest.removesuffix("_packed") + "_scale")
        if scales is None or not scales.shape or not scales.shape[-1]:
            return 0, ""
        return packed[largest].shape[-1] * 8 // scales.shape[-1], scales.dtype

    def check(
        self, base: str, tensors: Tensors, shape: tuple[int, ...], weights_config: WeightsConfig
    ) -> tuple[StorageKind, str]:
        if "" in tensors and "_packed" in tensors:
            raise wrong(f"The checkpoint names {base} in two formats: as {tensors['']} and packed.")
        if "_zero_point" in tensors:
            raise wrong(f"{base} has zero points, which a symmetric weight has not.", weights_config.advice)
        numbers, scales = tensors["_packed"], _scales(base, tensors, tensors["_packed"])
        *outer, depth = shape
        if numbers.dtype != "I32" or numbers.shape != (*outer, depth // 8) or depth % 8:
            raise wrong(
                f"{base} is packed as {numbers}, the config asks for I32{[*outer, depth // 8]}, 8 numbers in each."
            )
        if scales.shape[:-1] != tuple(outer) or not scales.shape[-1]:
            raise wrong(f"The scales of {base} are {scales}, the config asks for some for each of {list(outer)} rows.")
        count = scales.shape[-1]
        if depth % count or depth // count not in GROUPS:
            each = f"groups of {depth // count}" if depth % count == 0 else "no whole groups"
            if odd := [group for group in sorted(weights_config.groups) if depth % group]:
                each += f"; the config's {odd[0]} do not divide {depth}"
            raise wrong(f"The rows of {base} have {depth} numbers and {count} scales: {each}.", weights_config.advice)
        group = depth // count
        if weights_config.groups and group not in weights_config.groups:
            declared = " or ".join(map(str, sorted(weights_config.groups)))
            raise wrong(f"The scales of {base} are for groups of {group} numbers, the config says {declared}.")
        return StorageKind("int4", group, scales.dtype), ""


class Fp8Rows(FileFormat):
    """E4M3 with a scale for each row, or one for a whole matrix."""

    weights: ClassVar[WeightFormat] = "fp8"
    endings: ClassVar[tuple[str, ...]] = ("", "_scale")
    own: ClassVar[tuple[str, ...]] = ("_scale",)
    dtypes: ClassVar[Collection[str]] = ("F8_E4M3",)

    def check(
        self, base: str, tensors: Tensors, shape: tuple[int, ...], weights_config: WeightsConfig
    ) -> tuple[StorageKind, str]:
        numbers = _numbers(base, tensors)
        if not self.has(numbers):
            raise wrong(f"The checkpoint has scales for {base}, which is not packed but {numbers}.")
        scales, outer = _scales(base, tensors, numbers), shape[:-1]
        if numbers.shape != shape:
            raise wrong(f"{base} is {numbers}, the config asks for F8_E4M3{list(shape)}.")
        one_for_all = len(shape) == 2 and scales.shape in ((), (1,))
        if one_for_all or scales.shape in (outer, (*outer, 1)):
            return StorageKind("fp8"), ""
        if len(scales.shape) == len(shape) and scales.shape[-1] > 1:
            block = [-(-size // count) for size, count in zip(shape[-2:], scales.shape[-2:], strict=True) if count]
            refuse(f"FP8 in blocks of {' by '.join(map(str, block))}", weights_config.config, None)
        raise wrong(f"The scales of {base} are {scales}, the config asks for one for each of {list(outer)} rows.")

    def split(self, stored: Stored, stored_part: StoredPart, tensor: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        if stored_part.ending == "":
            return FileFormat.split(self, stored, stored_part, tensor, dtype)
        outer = stored.part_shape(stored_part)[:-1]
        return {"scales": tensor.float().reshape(outer if tensor.numel() > 1 else (1,)).expand(outer)}

    def numbers(self, values: Tensor) -> Tensor:
        return values


class Fp8InBlocks(FileFormat):
    """E4M3 with a scale for each block of rows and columns; it becomes floats while it is read."""

    endings: ClassVar[tuple[str, ...]] = ("", "_scale_inv")
    own: ClassVar[tuple[str, ...]] = ("_scale_inv",)
    dtypes: ClassVar[Collection[str]] = ()

    def check(
        self, base: str, tensors: Tensors, shape: tuple[int, ...], weights_config: WeightsConfig
    ) -> tuple[StorageKind, str]:
        numbers, scales = _numbers(base, tensors), tensors["_scale_inv"]
        if numbers.shape != shape or numbers.dtype != "F8_E4M3" or len(tensors) > 2:
            raise wrong(f"{base} is {numbers} and has scales of blocks, the config asks for F8_E4M3{list(shape)}.")
        wanted = *shape[:-2], *(-(-size // step) for size, step in zip(shape[-2:], weights_config.block, strict=False))
        if scales.shape != wanted or scales.dtype not in SCALE_DTYPES:
            raise wrong(f"The scales of {base} are {scales}, the config asks for F32{list(wanted)}.")
        return PLAIN, ""

    def split(self, stored: Stored, stored_part: StoredPart, tensor: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        if stored_part.ending == "":
            return FileFormat.split(self, stored, stored_part, tensor, dtype)
        rows = stored.part_shape(stored_part)[-2]
        return {"scales": tensor.float().repeat_interleave(stored.block[0], -2)[..., :rows, :]}

    def whole(self, name: str, stored: Stored, pieces: dict[str, Tensor], dtype: torch.dtype) -> Tensor | PackedRows:
        if not pieces["scales"].isfinite().all():
            raise WeightsFailure(f"A scale of {name} is not a finite number.", DOWNLOAD_AGAIN)
        depth, columns = stored.shape[-1], stored.block[1]
        numbers, scales = pieces["values"].reshape(-1, depth), pieces["scales"].flatten(0, -2)
        result = torch.empty(numbers.shape, dtype=dtype, device=numbers.device)
        for start in range(0, len(numbers), ROWS_AT_ONCE):
            chunk = slice(start, start + ROWS_AT_ONCE)
            steps = scales[chunk].repeat_interleave(columns, -1)[:, :depth]
            result[chunk] = numbers[chunk].view(torch.float8_e4m3fn).float() * steps
        return result.view(stored.shape)


class Mxfp4Blocks(FileFormat):
    """MXFP4 as gpt-oss is published: blocks of 16 bytes, and an exponent for each."""

    weights: ClassVar[WeightFormat] = "mxfp4"
    endings: ClassVar[tuple[str, ...]] = ("_blocks", "_scales")
    own: ClassVar[tuple[str, ...]] = endings
    dtypes: ClassVar[Collection[str]] = ("U8",)

    def check(
        self, base: str, tensors: Tensors, shape: tuple[int, ...], weights_config: WeightsConfig
    ) -> tuple[StorageKind, str]:
        *outer, depth = shape
        groups = (*outer, depth // GROUP)
        for ending, what, each in (("_blocks", "blocks", (*groups, GROUP // 2)), ("_scales", "scales", groups)):
            if ending not in tensors:
                raise wrong(f"The checkpoint lacks the {what} of {base}, which is in MXFP4.")
            header = tensors[ending]
            if header.dtype != "U8" or header.shape != each or depth % GROUP:
                raise wrong(f"The {what} of {base} are {header}, the config asks for U8{list(each)}.")
        for ending in tensors.keys() - set(self.endings):
            raise wrong(f"The checkpoint names {base} in two formats: in MXFP4, and as {tensors[ending]}.")
        return StorageKind("mxfp4"), ""

    def split(self, stored: Stored, stored_part: StoredPart, tensor: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        return {"scales": tensor} if stored_part.ending == "_scales" else {"values": tensor.flatten(-2)}


GGUF_BLOCKS = GgufBlocks()
FP8_ROWS, FP8_IN_BLOCKS = Fp8Rows(), Fp8InBlocks()
FILE_FORMATS = (Mxfp4Blocks(), Int4Words(), Q4Blocks(), GGUF_BLOCKS, FP8_IN_BLOCKS, FP8_ROWS, Floats())
"""All formats. Whatever no other one claims must be floats."""
ENDINGS = tuple(dict.fromkeys(ending for each in reversed(FILE_FORMATS) for ending in each.endings))
"""What follows a weight's name in the names of its tensors."""


def endings_of(weights: tuple[WeightFormat, ...]) -> tuple[str, ...]:
    """The endings of names of tensors in these formats."""
    return tuple(ending for each in FILE_FORMATS if each.weights in weights for ending in each.endings)


def tensors_of(base: str, headers: Headers) -> dict[str, TensorHeader]:
    """The tensors of a weight, by the endings of their names."""
    tensors = {ending: headers[base + ending] for ending in ENDINGS if base + ending in headers}
    for numbers, *scales in (each.endings for each in FILE_FORMATS if each.own == each.endings):
        if numbers not in tensors and tensors.keys() - set(scales):
            for ending in scales:  # without numbers it belongs to no weight: a superfluous tensor
                tensors.pop(ending, None)
    return tensors


def file_format_of(
    base: str, tensors: Tensors, shape: tuple[int, ...], weights_config: WeightsConfig
) -> tuple[FileFormat, StorageKind, str]:
    file = next((each for each in FILE_FORMATS if each.claims(tensors)), FILE_FORMATS[-1])
    kind, dtype = file.check(base, tensors, shape, weights_config)
    for ending in tensors.keys() - set(file.endings):
        raise wrong(f"The checkpoint names {base} in two formats: one of them has {tensors[ending]}.")
    return file, kind, dtype


def wrong(message: str, hint: Text = FROM_ONE) -> WeightsFailure:
    return WeightsFailure(message, hint)


def _numbers(base: str, tensors: Tensors) -> TensorHeader:
    if "" not in tensors:
        raise wrong(f"The checkpoint has the scales of {base}, but not its numbers.")
    return tensors[""]


def _scales(base: str, tensors: Tensors, numbers: TensorHeader) -> TensorHeader:
    if "_scale" not in tensors:
        raise wrong(f"The checkpoint lacks the scales of {base}, which is {numbers}.")
    if tensors["_scale"].dtype not in SCALE_DTYPES:
        raise wrong(f"The scales of {base} are {tensors['_scale']}, which is none of {', '.join(SCALE_DTYPES)}.")
    return tensors["_scale"]
