"""Triton as an optional import: every kernel file takes ``tl`` and ``jit`` from here.

On a machine without Triton the files still import, so that the PyTorch references work; launching a kernel there
raises ``TritonMissing``. With ``TRITON_INTERPRET=1`` set before the first import, kernels run on the CPU in Triton's
interpreter: slow, and exact enough to test them.

The interpreter knows no bf16 arithmetic with constants (kernels cast to fp32 first). Arguments of kernels are
annotated ``tl.tensor`` (pointers and scalars) or ``tl.constexpr``: the compiler looks every annotation up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = [
    "EARLY_LAUNCH",
    "HAS_TRITON",
    "INTERPRETED",
    "LAUNCH",
    "MAX_ROWS",
    "TritonMissing",
    "ask_for_rows",
    "cdiv",
    "dot",
    "jit",
    "let_next_start",
    "tl",
    "triton",
    "wait_for_inputs",
]

try:
    import triton
    import triton.language as tl
except ImportError:
    triton, tl = None, None

HAS_TRITON = triton is not None
INTERPRETED = HAS_TRITON and os.environ.get("TRITON_INTERPRET") == "1"
"""Whether kernels run in the interpreter: then tensors live on the CPU, and nothing can be captured in a graph."""

if INTERPRETED:
    from .interpreter import allow_computed_loop_bounds, prepare_once_per_launch, round_as_gpus_do

    round_as_gpus_do()
    allow_computed_loop_bounds()
    prepare_once_per_launch()

MAX_ROWS = 16
"""The most rows of one decoding pass: one tile of a matrix product, at every width."""


class TritonMissing(RuntimeError):
    """A kernel was launched where Triton is not installed."""


class _Missing:
    """Stands in for a kernel: indexing it with a grid, as a launch does, says what is missing."""

    def __init__(self, name: str):
        self._name = name

    def __getitem__(self, grid: object) -> Callable[..., None]:
        raise TritonMissing(f"The kernel {self._name} needs Triton, which comes with CUDA builds of PyTorch on Linux.")


UNSPECIALISED = ["max_rows", "num_queries", "num_keys"]


def jit(function: Callable[..., Any]) -> Any:
    """``triton.jit``; the result is launched as ``kernel[grid](...)``.

    ``UNSPECIALISED`` arguments get no machine code of their own where they are 1 or divisible by 16: one code for all
    widths gives the same bits, and a prompt of another length compiles nothing.
    """
    return triton.jit(function, do_not_specialize=UNSPECIALISED) if HAS_TRITON else _Missing(function.__name__)


def cdiv(count: int, size: int) -> int:
    """How many tiles of ``size`` cover ``count``."""
    return -(-count // size)


EARLY_LAUNCH = HAS_TRITON and not INTERPRETED and os.environ.get("DFLASH_CHAT_EARLY_LAUNCH") == "1"
"""Programmatic dependent launch (Hopper or later): a kernel's programs start while those before them finish.

An experiment until it has been measured; see NOTES.md."""
LAUNCH: dict[str, bool] = {"launch_pdl": True} if EARLY_LAUNCH else {}
"""What a kernel that calls ``wait_for_inputs`` is launched with."""

EARLY = tl.constexpr(EARLY_LAUNCH) if HAS_TRITON else None
SIMULATED = tl.constexpr(INTERPRETED) if HAS_TRITON else None


@jit
def dot(a: tl.tensor, b: tl.tensor, total: tl.tensor) -> tl.tensor:
    """total + a @ b on tensor cores with fp32 sums. fp32 inputs are not shortened to tf32."""
    if SIMULATED:  # the interpreter would multiply the bits of bf16 numbers as integers
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, total, input_precision="ieee")


@jit
def wait_for_inputs() -> None:
    """Stands before the first read of what an earlier kernel wrote, and before every write."""
    if EARLY:
        tl.extra.cuda.gdc_wait()


@jit
def let_next_start() -> None:
    """Stands behind ``wait_for_inputs`` in kernels of a few programs: those of the next may take their places now.

    In kernels that fill a GPU it would do harm: the next one's programs would crowd wherever there happens to be room
    (measured: 0.2 ms of a pass of one row, 0.8 ms of 16), and let those behind them start in turn.
    """
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()


@jit
def ask_for_rows(weight: tl.tensor, rows: tl.tensor, N: tl.constexpr, K: tl.constexpr) -> None:
    """Has the first KB of these rows of a weight [N, K] brought into L2, by a kernel about to wait for its inputs."""
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
