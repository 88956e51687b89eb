"""Puts parameters together from a checkpoint's tensors, on the device, as these arrive."""

from __future__ import annotations

import torch
from torch import Tensor

from ..files.pinned_reader import DTYPES
from ..kernels.weights.kinds import PACKED
from ..kernels.weights.plain import PlainWeight
from ..kernels.weights.weight import Weight
from .grid import rounded
from .stored_weight import PackedRows, StorageKind, Stored, StoredPart


class Assembly:
    """Assembles one parameter. Its tensors may come in any order."""

    def __init__(self, name: str, stored: Stored, dtype: torch.dtype):
        """``dtype``: of floats that are stored as blocks."""
        self._name, self._stored, self._dtype = name, stored, dtype
        self._waiting = {stored_part.tensor for stored_part in stored.parts}
        self._pieces: dict[str, Tensor] = {}

    def add(self, stored_part: StoredPart, tensor: Tensor) -> Tensor | PackedRows | None:
        """Takes one tensor; with the last one, returns the parameter as it is stored, floats or packed, else None."""
        for field, piece in self._stored.file.split(self._stored, stored_part, tensor, self._dtype).items():
            self._fill(field, stored_part, piece)
        self._waiting.discard(stored_part.tensor)
        return None if self._waiting else self._whole()

    def _fill(self, field: str, stored_part: StoredPart, piece: Tensor) -> None:
        if stored_part.expert is None:
            self._pieces[field] = _own(piece)
            return
        if field not in self._pieces:
            experts, rows = self._stored.shape[:2]
            self._pieces[field] = piece.new_empty(experts, rows, *piece.shape[1:])
        self._pieces[field][stored_part.expert, slice(*stored_part.rows)] = piece

    def _whole(self) -> Tensor | PackedRows:
        pieces = self._pieces
        if self._stored.interleaved:
            pieces = {field: _halves_apart(piece, self._stored.interleaved) for field, piece in pieces.items()}
        if (order := self._stored.order) is not None:
            pieces = {field: piece[order.to(piece.device)] for field, piece in pieces.items()}
        return self._stored.file.whole(self._name, self._stored, pieces, self._dtype)


def held(stored: Tensor | PackedRows, kind: StorageKind, dtype: torch.dtype) -> Weight:
    """The parameter as a model holds it: floats are packed, and packed numbers restored, where ``kind`` says so."""
    if isinstance(stored, PackedRows):
        return PlainWeight(stored.floats(dtype)) if kind.format == "bf16" else stored.weight()
    if kind.format == "int4":
        return rounded(stored, DTYPES[kind.scales])
    return PlainWeight(stored.to(dtype)) if kind.format == "bf16" else PACKED[kind.format].of(stored)


def _halves_apart(rows: Tensor, head_dim: int) -> Tensor:
    """Reorders rows of heads whose two halves alternate in a file, so that one half is behind the other."""
    return rows.reshape(-1, head_dim // 2, 2, *rows.shape[1:]).transpose(1, 2).flatten(0, 2)


def _own(tensor: Tensor) -> Tensor:
    """The tensor in memory of its own size: small ones arrive many together, and would keep all of it. A CPU's larger
    ones may be views of the mapped file itself."""
    small = tensor.device.type != "cpu" or tensor.ndim == 1
    whole = small and tensor.untyped_storage().nbytes() > tensor.nbytes
    return tensor.clone() if whole else tensor
