"""One kernel at one shape, for the bench to time alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ....kernels.decode.attend_tiles import AttendTiles
from ....kernels.decode.tiles import RowTiles, Tiles
from ....kernels.prefill.attention import ChunkTiles
from ....kernels.toolchain.jit import MAX_ROWS

Launch = Callable[[], object]
AnyTiles = Tiles | RowTiles | AttendTiles | ChunkTiles


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel at one shape, and how to launch it with any tiles."""

    name: str
    num_bytes: float
    """Bytes that a launch can't avoid reading and writing."""
    tiles: AnyTiles
    """The tiles in use."""
    prepare: Callable[[torch.device, torch.dtype, int], Callable[[Any], list[Launch]]]
    """Makes, of (device, dtype, copies), a function from tiles to one launch for each copy of the weights."""


def rows_of(device: torch.device, dtype: torch.dtype, width: int) -> Tensor:
    return torch.randn(MAX_ROWS, width, device=device, dtype=dtype)


def at_rows(rows: int, name: str) -> str:
    """The name of a case that is timed at one row as well as at sixteen."""
    return f"{name}, 1 row" if rows == 1 else name
