"""Products whose first factor lies in registers (Hopper's ``wgmma``) must be finished before a loop begins anew. Triton
3.6 leaves them running (triton-lang/triton#9433), and the assembler of CUDA 12.8 minds their registers only up to the
loop's end: the next factors were unpacked into registers that tensor cores had yet to read."""

from __future__ import annotations

import re
from typing import Any

FINISH = "wgmma.wait_group.sync.aligned 0;\n\t"
STILL_RUN = re.compile(r"wgmma\.wait_group\.sync\.aligned [1-9]")
IN_REGISTERS = re.compile(r"wgmma\.mma_async\S+ \{[^}]*\}, \{")
LABEL = re.compile(r"^(\$\w+):", re.MULTILINE)


def finish_products_in_loops() -> None:
    """Has all kernels compiled so. Once per process, before the first kernel."""
    from triton.backends.nvidia.compiler import CUDABackend

    make_ptx = CUDABackend.make_ptx

    def made(self: Any, *args: Any) -> str:
        return finished_in_loops(make_ptx(self, *args))

    CUDABackend.make_ptx = made


def finished_in_loops(ptx: str) -> str:
    """PTX whose loops wait for all their products before they begin anew, if factors of some lie in registers and some
    are left running; else the same."""
    if not (STILL_RUN.search(ptx) and IN_REGISTERS.search(ptx)):
        return ptx
    begun = {label[1]: label.end() for label in LABEL.finditer(ptx)}
    jumps = [
        jump.start()
        for label, begin in begun.items()
        for jump in re.compile(rf"(?:@!?%\w+ +)?bra(?:\.uni)?\s+{re.escape(label)};").finditer(ptx, begin)
        if STILL_RUN.search(ptx, begin, jump.start())
    ]
    for place in sorted(jumps, reverse=True):
        ptx = ptx[:place] + FINISH + ptx[place:]
    return ptx
