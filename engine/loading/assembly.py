"""Parameters put together from a checkpoint's tensors, on the device, as these arrive."""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import WeightsFailure
from ..files.gguf_blocks import RESTORE, q4_0, restored
from ..files.json_fields import DOWNLOAD_AGAIN
from ..kernels.weights.fp8 import Fp8Weight
from ..kernels.weights.int4 import Int4Weight
from ..kernels.weights.int8 import ROWS_AT_ONCE
from ..kernels.weights.plain import PlainWeight
from ..kernels.weights.weight import Weight
from .grid import rounded
from .layout import SCALE, Kind, Part, Stored

CLASSES: dict[str, type[Weight]] = {"bf16": PlainWeight, "fp8": Fp8Weight, "int4": Int4Weight}


class Assembly:
    """One parameter. Its tensors may come in any order."""

    def __init__(self, name: str, stored: Stored, dtype: torch.dtype):
        """``dtype``: of floats that are stored as blocks."""
        self._name, self._stored, self._dtype = name, stored, dtype
        self._waiting = {part.tensor for part in stored.parts}
        self._pieces: dict[str, Tensor] = {}
        """``values`` and ``scales``, as ``Weight`` has them."""

    def add(self, part: Part, tensor: Tensor) -> Weight | None:
        """Takes one tensor; the weight, as it is stored, when it was the last."""
        for field, piece in self._unpacked(part, tensor).items():
            self._place(field, part, piece)
        self._waiting.discard(part.tensor)
        return None if self._waiting else self._whole()

    def _unpacked(self, part: Part, tensor: Tensor) -> dict[str, Tensor]:
        """Values or scales, as ``Weight`` has them, of a tensor as the file has it."""
        stored = self._stored
        if stored.dtype in RESTORE:
            return {"values": restored(tensor, stored.shape, stored.dtype, self._dtype)}
        if stored.kind.format == "bf16":
            return {"values": tensor}
        if stored.kind.format == "int4" and tensor.dtype == torch.uint8:
            values, scales = q4_0(tensor, stored.shape)
            return {"values": values, "scales": scales}
        if stored.kind.format == "int4":
            return {"scales": tensor} if part.ending == SCALE else {"values": in_blocks(tensor)}
        if part.ending != SCALE:
            return {"values": tensor.view(torch.uint8)}
        return {"scales": _of_rows(tensor, stored.shape[-2] if part.expert is None else part.rows[1] - part.rows[0])}

    def _place(self, field: str, part: Part, piece: Tensor) -> None:
        if part.expert is None:
            self._pieces[field] = _own(piece)
            return
        if field not in self._pieces:
            experts, rows = self._stored.shape[:2]
            self._pieces[field] = piece.new_empty(experts, rows, *piece.shape[1:])
        self._pieces[field][part.expert, slice(*part.rows)] = piece

    def _whole(self) -> Weight:
        weight = CLASSES[self._stored.kind.format](**self._pieces)
        check_scales(self._name, weight)
        return weight


def held(weight: Weight, kind: Kind, dtype: torch.dtype) -> Weight:
    """A weight as a model holds it: what came as floats is packed, what is to be floats is restored."""
    if isinstance(weight, PlainWeight):
        if kind.format == "int4":
            return rounded(weight.values)
        return Fp8Weight.of(weight.values) if kind.format == "fp8" else PlainWeight(weight.values.to(dtype))
    return PlainWeight(_floats(weight, dtype)) if kind.format == "bf16" else weight


def _floats(weight: Weight, dtype: torch.dtype) -> Tensor:
    """What a packed weight stands for; few rows are in fp32 at a time."""
    floats = torch.empty(weight.shape, dtype=dtype, device=weight.values.device)
    rows = weight.shape[-2]
    step = max(1, ROWS_AT_ONCE * rows // weight.shape[:-1].numel())
    for start in range(0, rows, step):
        end = min(rows, start + step)
        floats[..., start:end, :] = weight.rows(start, end).restored()
    return floats


def check_scales(name: str, weight: Weight) -> None:
    """Raises ``WeightsFailure`` for scales that are no numbers, and for zeros where not all that they scale is zero."""
    scales = weight.scales
    if scales is None:
        return
    if not scales.isfinite().all():
        raise WeightsFailure(f"A scale of {name} is not a finite number.", DOWNLOAD_AGAIN)
    if (scales == 0).any() and _lost(weight):
        raise WeightsFailure(f"A scale of {name} is 0, but the numbers that it scales are not.", DOWNLOAD_AGAIN)


def _lost(weight: Weight) -> bool:
    """Whether a scale of 0 turns other numbers into zeros."""
    assert weight.scales is not None
    zero = weight.scales == 0
    rows = zero if isinstance(weight, Fp8Weight) else zero.any(-1)
    scales, values = zero[rows], weight.values[rows]
    if isinstance(weight, Fp8Weight):
        return bool((values & 0x7F).any())
    ones = torch.ones_like(weight.scales[rows])
    numbers = Int4Weight(values, ones).restored().reshape(*scales.shape, -1)
    return bool((numbers != 0).any(-1)[scales].any())


def _of_rows(scales: Tensor, rows: int) -> Tensor:
    """fp32 [..., rows] of scales [..., rows], [..., rows, 1], or one for all."""
    if scales.numel() == 1:
        return scales.float().reshape(1).expand(rows).contiguous()
    return scales.float() if scales.shape[-1] == rows else scales.float().squeeze(-1)


def in_blocks(packed: Tensor) -> Tensor:
    """What ``Int4Weight`` holds, of int32 [..., depth / 8]: eight neighbours in each, the first in the lowest bits."""
    pairs = packed.contiguous().view(torch.uint8)  # two neighbours in each, the first in the lower bits
    blocks = torch.empty_like(pairs)
    rows, target = pairs.flatten(0, -2), blocks.flatten(0, -2)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        numbers = torch.stack((rows[part] & 15, rows[part] >> 4), dim=-1).flatten(-2)
        target[part] = Int4Weight.packed(numbers, numbers).values
    return blocks


def _own(tensor: Tensor) -> Tensor:
    """The tensor in memory of its own size: small ones arrive many together, and would keep all of it."""
    whole = tensor.untyped_storage().nbytes() > tensor.nbytes and tensor.device.type != "cpu"
    return tensor.clone() if whole else tensor
