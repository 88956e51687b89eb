"""Asks for weights ahead of time: while small kernels leave the memory idle, the next product's weight comes into L2.

Changes no result. Needs Hopper or later; elsewhere, and in the interpreter, ``prefetch`` does nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .jit import EARLY, INTERPRETED, jit, tl

CHUNK = 16384
"""Bytes that one instruction asks for."""
CHUNKS_PER_PROGRAM = 32


def can_prefetch(device: torch.device) -> bool:
    return not INTERPRETED and device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)


def prefetch(weight: Tensor, max_bytes: int) -> None:
    """Asks for the first ``max_bytes`` of a contiguous weight, in whole chunks."""
    chunks = min(max_bytes, weight.numel() * weight.element_size()) // CHUNK
    if chunks > 0:
        _prefetch[(-(-chunks // CHUNKS_PER_PROGRAM),)](weight, chunks, LANES=CHUNKS_PER_PROGRAM, num_warps=1)


@jit
def _prefetch(weight: tl.tensor, chunks: tl.tensor, LANES: tl.constexpr) -> None:
    # Past the end the last chunk is asked for again: that costs nothing.
    chunk = tl.minimum(tl.program_id(0) * LANES + tl.arange(0, LANES), chunks - 1)
    address = weight.to(tl.int64) + chunk.to(tl.int64) * 16384
    tl.inline_asm_elementwise(
        "cp.async.bulk.prefetch.L2.global [$1], 16384; mov.b32 $0, 0;",
        "=r,l",
        [address],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@jit
def ask_for_rows(weight: tl.tensor, rows: tl.tensor, N: tl.constexpr, K: tl.constexpr) -> None:
    """Asks for the first KB of these rows of a weight [N, K], in a kernel that is about to wait for its inputs."""
    row_bytes: tl.constexpr = K * weight.dtype.element_ty.primitive_bitwidth // 8
    if EARLY and row_bytes % 16 == 0 and row_bytes >= 1024:
        address = weight.to(tl.int64) + tl.minimum(rows, N - 1).to(tl.int64) * row_bytes
        tl.inline_asm_elementwise(
            "cp.async.bulk.prefetch.L2.global [$1], 1024; mov.b32 $0, 0;",
            "=r,l",
            [address],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )
