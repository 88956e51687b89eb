"""Early launch: a kernel's programs start while those of the kernel before it finish (Hopper or later).

NVIDIA calls it programmatic dependent launch. Every kernel that can stand in a round's line is made by
``early_kernel``, and keeps three rules, which a test reads off its machine code:

* It calls ``wait_for_inputs`` in every program, before it reads what the kernel before wrote and before it writes
  anything. The wait ends when that kernel is done and its stores are visible.
* It calls ``let_next_start`` behind the wait, if at all. So at most two kernels of a line run at a time, and when a
  kernel starts everything older than the one before it is done: that may be read sooner, as may weights.
* It calls it once it has asked for all it reads: what the next kernel does first, a program's start and a round trip
  to memory, then goes by while its own last tiles arrive. Sooner, two kernels would share the memory. Right behind the
  wait it is called where that does no harm: by kernels that hardly use memory (the row kernels of a pass of one row,
  norm and rope without a window), by attention without a window, since the sum of its splits, which comes next, only
  waits, and by attention of a row alone behind a window, where the output asks for much of its weight meanwhile
  (``TargetTiles.lets_go``).

All of them ask for one split of a multiprocessor's memory (``memory_split``): who wants another than the kernel before
starts late after all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .jit import HAS_TRITON, INTERPRETED, SIMULATED, UNSPECIALISED, jit, tl
from .memory_split import SPLIT

HOPPER = tl.constexpr(9) if tl else 9
"""The compute capability from which on kernels can start early."""
in_line: set[str] = set()
"""Names of early kernels; no other kernel has one of these."""

if HAS_TRITON and not INTERPRETED:
    from triton import knobs
    from triton.language.target_info import cuda_capability_geq

    from .jit import Kernel

    class _EarlyKernel(Kernel):
        def run(self, *args: Any, **kwargs: Any) -> Any:
            early = bool(cuda_capability_geq(HOPPER))
            return super().run(*args, launch_pdl=early, **kwargs)

    def split_memory(_module: object, function: int, name: str, *_others: object) -> None:
        """Asks for the memory split of a kernel (CUfunction) that the driver has just loaded."""
        if cuda_capability_geq(HOPPER):
            SPLIT.loaded(function, name, name in in_line)

    knobs.runtime.kernel_load_end_hook.add(split_memory)


def early_kernel(function: Callable[..., Any]) -> Any:
    """``jit`` for a kernel that waits for its inputs; where GPUs can't start it early, it is like any other."""
    in_line.add(function.__name__)
    compiled = HAS_TRITON and not INTERPRETED
    return _EarlyKernel(function, do_not_specialize=UNSPECIALISED) if compiled else jit(function)


@jit
def wait_for_inputs() -> None:
    """Stands before the first read of what an earlier kernel wrote, and before every write."""
    if not SIMULATED:  # noqa: SIM102 (the compiler looks into both sides of an "and")
        if cuda_capability_geq(HOPPER):
            tl.extra.cuda.gdc_wait()


@jit
def wait_behind_copies() -> None:
    """``wait_for_inputs`` of a kernel whose first argument are rows that it multiplies by a weight in one loop, which
    follows at once: the loop asks for its first tiles of the weight before (``early_copies.py``)."""
    if not SIMULATED:  # noqa: SIM102
        if cuda_capability_geq(HOPPER):
            tl.inline_asm_elementwise(
                "griddepcontrol.wait; // behind copies $0", "=r", [], dtype=tl.int32, is_pure=False, pack=1
            )


@jit
def let_next_start() -> None:
    """Lets the next kernel start; stands behind a kernel's last loads, or right behind its wait (above). Further calls
    have no effect."""
    if not SIMULATED:  # noqa: SIM102
        if cuda_capability_geq(HOPPER):
            tl.extra.cuda.gdc_launch_dependents()
