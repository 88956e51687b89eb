"""Puts parameters together from a checkpoint's tensors, on the device, as these arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import WeightsFailure
from ..files.gguf_blocks import RESTORE, q4_0, restored
from ..files.json_fields import DOWNLOAD_AGAIN
from ..files.pinned_reader import DTYPES
from ..kernels.weights.fp8 import Fp8Weight
from ..kernels.weights.int4 import HIGHEST_SCALE, Int4Weight
from ..kernels.weights.int8 import ROWS_AT_ONCE
from ..kernels.weights.mxfp4 import BIAS, HIGHEST, LAST, Mxfp4Weight, floats_of
from ..kernels.weights.plain import PlainWeight
from ..kernels.weights.weight import Weight
from .grid import rounded
from .layout import EXPONENTS, IN_BLOCKS, SCALE, Kind, Part, Stored
from .stored_format import OF_BLOCKS


@dataclass(frozen=True, slots=True)
class PackedRows:
    """A packed weight as files store it, row by row; a ``Weight`` lies in panels."""

    stored: Stored
    values: Tensor
    """uint8 [rows of all matrices, bytes of a row]."""
    scales: Tensor
    """[rows], or [rows, groups], as the file has them."""

    def weight(self) -> Weight:
        """The same weight in the form that products take."""
        kind, shape, device = self.stored.kind, self.stored.shape, self.values.device
        whole: Weight
        pack: Callable[[Tensor, Tensor], Weight]
        if kind.format == "fp8":
            whole, pack = Fp8Weight.allocate(*shape, device=device), Fp8Weight.packed
        elif kind.format == "mxfp4":
            whole, pack = Mxfp4Weight.allocate(*shape, device=device), Mxfp4Weight.packed
        else:
            whole = Int4Weight.allocate(*shape, device=device, group=kind.group, scales=self.scales.dtype)
            pack = Int4Weight.packed
        assert whole.scales is not None
        values, scales = (part.flatten(0, len(shape) - 2) for part in (whole.values, whole.scales))
        for start, numbers, steps in self._in_parts():
            part = pack(numbers, steps)
            assert part.scales is not None
            for target, source in ((values, part.values), (scales, part.scales)):
                first = start * len(target) // len(self.values)
                target[first : first + len(source)] = source
        return whole

    def floats(self, dtype: torch.dtype) -> Tensor:
        """The weight's values as floats, in the parameter's own shape."""
        result = torch.empty(len(self.values), self.stored.shape[-1], dtype=dtype, device=self.values.device)
        for start, numbers, steps in self._in_parts():
            if self.stored.kind.format == "fp8":
                part = numbers.view(torch.float8_e4m3fn).float() * steps[:, None]
            elif self.stored.kind.format == "mxfp4":
                part = floats_of(numbers, steps, dtype)
            else:
                groups = numbers.reshape(*steps.shape, -1).float() - 8
                part = (groups * steps.float()[..., None]).flatten(-2)
            result[start : start + len(part)] = part
        return result.view(self.stored.shape)

    def check(self, name: str) -> None:
        """Raises ``WeightsFailure`` for scales that are no numbers or that no weight can have, and for zeros that scale
        anything but zeros."""
        if self.stored.kind.format == "mxfp4":
            if (highest := int(self.scales.max())) > HIGHEST:
                what = "not a finite number" if highest > LAST else f"2^{HIGHEST + 1 - BIAS} or more"
                raise WeightsFailure(f"A scale of {name} is {what}.", DOWNLOAD_AGAIN)
            return
        scales = self.scales
        # Collected in one tensor, so that a GPU is waited for once.
        faults = torch.stack([~scales.isfinite().all(), (scales.abs() >= HIGHEST_SCALE).any(), (scales == 0).any()])
        endless, huge, zero = faults.tolist()
        if endless:
            raise WeightsFailure(f"A scale of {name} is not a finite number.", DOWNLOAD_AGAIN)
        if huge and self.stored.kind.format == "int4":
            raise WeightsFailure(f"A scale of {name} is 2^32 or more.", DOWNLOAD_AGAIN)
        if zero and any(_lost(*part[1:]) for part in self._in_parts()):
            raise WeightsFailure(f"A scale of {name} is 0, but the numbers that it scales are not.", DOWNLOAD_AGAIN)

    def _in_parts(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Yields some rows at a time: the first one's index, numbers [n, depth] (bits of E4M3, or 0 to 15), and
        scales."""
        for start in range(0, len(self.values), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            numbers = self.values[part] if self.stored.kind.format == "fp8" else self._unpacked(self.values[part])
            yield start, numbers, self.scales[part]

    def _unpacked(self, values: Tensor) -> Tensor:
        """Splits bytes into two numbers each: neighbours, the first in the lower bits, or, in Q4_0, numbers 16
        apart."""
        low, high = values & 15, values >> 4
        if self.stored.dtype != "Q4_0":
            return torch.stack((low, high), dim=-1).flatten(-2)
        halves = [part.reshape(len(part), -1, 16) for part in (low, high)]
        return torch.stack(halves, dim=-2).flatten(-3)


class Assembly:
    """Assembles one parameter. Its tensors may come in any order."""

    def __init__(self, name: str, stored: Stored, dtype: torch.dtype):
        """``dtype``: of floats that are stored as blocks."""
        self._name, self._stored, self._dtype = name, stored, dtype
        self._waiting = {part.tensor for part in stored.parts}
        self._pieces: dict[str, Tensor] = {}

    def add(self, part: Part, tensor: Tensor) -> Tensor | PackedRows | None:
        """Takes one tensor; with the last one, returns the parameter as it is stored, floats or packed, else None."""
        for field, piece in self._split(part, tensor).items():
            self._place(field, part, piece)
        self._waiting.discard(part.tensor)
        return None if self._waiting else self._whole()

    def _split(self, part: Part, tensor: Tensor) -> dict[str, Tensor]:
        """The values, scales or both that a tensor of the file holds."""
        stored = self._stored
        if stored.dtype in RESTORE:
            return {"values": restored(tensor, stored.shape, stored.dtype, self._dtype)}
        if stored.dtype == "Q4_0":
            values, scales = q4_0(tensor, stored.shape)
            return {"values": values, "scales": scales}
        if stored.dtype == IN_BLOCKS:
            rows = stored.shape[-2] if part.expert is None else part.rows[1] - part.rows[0]
            if part.ending == OF_BLOCKS:
                return {"scales": tensor.float().repeat_interleave(stored.block[0], -2)[..., :rows, :]}
            return {"values": tensor.view(torch.uint8)}
        if stored.kind.format == "bf16":
            return {"values": tensor}
        if stored.kind.format == "mxfp4":
            return {"scales": tensor} if part.ending == EXPONENTS else {"values": tensor.flatten(-2)}
        if part.ending != SCALE:
            return {"values": tensor.contiguous().view(torch.uint8)}
        if stored.kind.format == "int4":
            return {"scales": tensor}
        outer = stored.shape[:-1] if part.expert is None else (part.rows[1] - part.rows[0],)
        return {"scales": tensor.float().reshape(outer if tensor.numel() > 1 else (1,)).expand(outer)}

    def _place(self, field: str, part: Part, piece: Tensor) -> None:
        if part.expert is None:
            self._pieces[field] = _own(piece)
            return
        if field not in self._pieces:
            experts, rows = self._stored.shape[:2]
            self._pieces[field] = piece.new_empty(experts, rows, *piece.shape[1:])
        self._pieces[field][part.expert, slice(*part.rows)] = piece

    def _whole(self) -> Tensor | PackedRows:
        pieces = self._pieces
        if self._stored.interleaved:
            pieces = {field: _halves_apart(piece, self._stored.interleaved) for field, piece in pieces.items()}
        if (order := self._stored.order) is not None:
            pieces = {field: piece[order.to(piece.device)] for field, piece in pieces.items()}
        if self._stored.dtype == IN_BLOCKS:
            return _floats_of_blocks(self._name, self._stored, pieces["values"], pieces["scales"], self._dtype)
        if self._stored.kind.format == "bf16":
            return pieces["values"].mT.contiguous() if self._stored.transposed else pieces["values"]
        values, scales = pieces["values"], pieces["scales"]
        outer = len(self._stored.shape) - 1
        packed = PackedRows(self._stored, values.flatten(0, -2), scales.flatten(0, outer - 1))
        packed.check(self._name)
        return packed


def held(stored: Tensor | PackedRows, kind: Kind, dtype: torch.dtype) -> Weight:
    """The parameter as a model holds it: floats are packed, and packed numbers restored, where ``kind`` says so."""
    if isinstance(stored, PackedRows):
        return PlainWeight(stored.floats(dtype)) if kind.format == "bf16" else stored.weight()
    if kind.format == "int4":
        return rounded(stored, DTYPES[kind.scales])
    return Fp8Weight.of(stored) if kind.format == "fp8" else PlainWeight(stored.to(dtype))


def _floats_of_blocks(name: str, stored: Stored, numbers: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """What bits of E4M3 stand for, whose rows have a scale for each of so many columns."""
    if not scales.isfinite().all():
        raise WeightsFailure(f"A scale of {name} is not a finite number.", DOWNLOAD_AGAIN)
    depth, columns = stored.shape[-1], stored.block[1]
    numbers, scales = numbers.reshape(-1, depth), scales.reshape(-1, scales.shape[-1])
    result = torch.empty(numbers.shape, dtype=dtype, device=numbers.device)
    for start in range(0, len(numbers), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        steps = scales[part].repeat_interleave(columns, -1)[:, :depth]
        result[part] = numbers[part].view(torch.float8_e4m3fn).float() * steps
    return result.view(stored.shape)


def _lost(numbers: Tensor, scales: Tensor) -> bool:
    """Whether a scale of 0 makes zeros of other numbers."""
    if scales.ndim == 1:
        return bool(((numbers & 0x7F) != 0).any(-1)[scales == 0].any())
    groups = numbers.reshape(*scales.shape, -1)
    return bool((groups != 8).any(-1)[scales == 0].any())


def _halves_apart(rows: Tensor, head_dim: int) -> Tensor:
    """Reorders rows of heads whose two halves alternate in a file, so that one half is behind the other."""
    return rows.reshape(-1, head_dim // 2, 2, *rows.shape[1:]).transpose(1, 2).flatten(0, 2)


def _own(tensor: Tensor) -> Tensor:
    """The tensor in memory of its own size: small ones arrive many together, and would keep all of it. A CPU's larger
    ones may be views of the mapped file itself."""
    small = tensor.device.type != "cpu" or tensor.ndim == 1
    whole = small and tensor.untyped_storage().nbytes() > tensor.nbytes
    return tensor.clone() if whole else tensor
