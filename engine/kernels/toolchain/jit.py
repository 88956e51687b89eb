"""Triton as an optional import: kernel files take ``tl`` and ``jit`` from here. Without Triton they still import, for
the references, and launching raises ``TritonMissing``. With ``TRITON_INTERPRET=1`` kernels run on the CPU: slow, exact
enough to test, without bf16 arithmetic with constants (cast to fp32 first). Annotate arguments ``tl.tensor`` or
``tl.constexpr``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = [
    "HAS_TRITON",
    "INTERPRETED",
    "MAX_ROWS",
    "KernelFailure",
    "TritonMissing",
    "cdiv",
    "constexpr_function",
    "dot",
    "jit",
    "power_of_two",
    "tl",
    "triton",
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
    from .interpreter import allow_computed_loop_bounds, let_constants_meet_tensors, round_as_gpus_do

    round_as_gpus_do()
    allow_computed_loop_bounds()
    let_constants_meet_tensors()
elif HAS_TRITON:
    # Blackwell has two ways to multiply; this chooses the one that older cards have, too: sums are added in one order
    # whatever the rows of a tile and its warps, and 16 rows leave the other idle. Hopper's code is the same both ways.
    os.environ.setdefault("DISABLE_MMA_V5", "1")
    from .disk_cache import make_keys_independent_of_order, tell_what_is_compiled
    from .finished_products import change_what_is_assembled
    from .sources import end_functions_by_indentation

    end_functions_by_indentation()
    change_what_is_assembled()
    make_keys_independent_of_order()
    tell_what_is_compiled()

MAX_ROWS = 16
"""The most rows of one decoding pass: one tile of a matrix product, at every width."""


class TritonMissing(RuntimeError):
    """Raised when a kernel is launched where Triton is not installed."""


class KernelFailure(Exception):
    """Raised for a kernel that can't be compiled for this GPU, or not be launched on it."""

    def __init__(self, kernel: str, why: object):
        self.kernel = kernel
        first = next((line.strip() for line in str(why).splitlines() if line.strip()), "")[:200]
        super().__init__(f"{kernel}: {type(why).__name__}{f': {first}' if first else ''}")


class _Missing:
    """Stands in for a kernel: indexing it with a grid, as a launch does, raises ``TritonMissing``."""

    def __init__(self, name: str):
        self._name = name

    def __getitem__(self, grid: object) -> Callable[..., None]:
        raise TritonMissing(f"The kernel {self._name} needs Triton, which comes with CUDA builds of PyTorch on Linux.")


UNSPECIALISED = ["max_rows", "num_queries", "num_keys", "draft_slot", "shift", "shift_before"]


if HAS_TRITON and not INTERPRETED:

    class Kernel(triton.JITFunction):  # type: ignore[misc]
        """A kernel whose failures name it."""

        def run(self, *args: Any, **kwargs: Any) -> Any:
            try:
                launched = super().run(*args, **kwargs)
            except Exception as error:
                raise KernelFailure(self.fn.__name__, error) from error
            # Constants of ours never change; to compare all that it reads at each launch took a fifth of its time.
            self.used_global_vals.clear()
            return launched


def jit(function: Callable[..., Any]) -> Any:
    """``triton.jit``. ``UNSPECIALISED`` arguments get no machine code of their own where they are 1 or divisible by 16:
    one code for all widths gives the same bits, and other prompt lengths compile nothing."""
    if not HAS_TRITON:
        return _Missing(function.__name__)
    if INTERPRETED:
        return triton.jit(function, do_not_specialize=UNSPECIALISED)
    return Kernel(function, do_not_specialize=UNSPECIALISED)


def constexpr_function(function: Callable[..., Any]) -> Any:
    """A function of constants that kernels may call: ``triton.constexpr_function``."""
    return triton.constexpr_function(function) if HAS_TRITON else function


def cdiv(count: int, size: int) -> int:
    """How many tiles of ``size`` cover ``count``."""
    return -(-count // size)


@constexpr_function
def power_of_two(count: int) -> int:
    """The smallest power of two that is no less than ``count``: the lanes that so many numbers take in registers."""
    return 1 << max(0, count - 1).bit_length()


SIMULATED = tl.constexpr(INTERPRETED) if HAS_TRITON else None


@jit
def dot(a: tl.tensor, b: tl.tensor, total: tl.tensor) -> tl.tensor:
    """total + a @ b on tensor cores with fp32 sums. fp32 inputs are not shortened to tf32."""
    if SIMULATED:  # the interpreter would multiply the bits of bf16 numbers as integers
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, total, input_precision="ieee")
