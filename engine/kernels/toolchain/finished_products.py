"""Changes in PTX when kernels wait for products whose first factor lies in registers (Hopper's ``wgmma``).

They must be finished before a loop begins anew. Triton 3.6 leaves them running (triton-lang/triton#9433), and the
assembler of CUDA 12.8 protects their registers only up to the loop's end: the next factors were unpacked into registers
that tensor cores had yet to read.

And a product needn't be finished right away. Triton 3.6 waits for all but a loop's last one where they are begun; the
wait may stand in front of the next, so that its factor is unpacked meanwhile. Up to there the assembler does protect
the registers."""

from __future__ import annotations

import re
from typing import Any

from .early_copies import asked_before_waiting

FINISH = "wgmma.wait_group.sync.aligned 0;\n\t"
WAIT = re.compile(r"wgmma\.wait_group\.sync\.aligned 0")
STILL_RUN = re.compile(r"wgmma\.wait_group\.sync\.aligned [1-9]")
IN_REGISTERS = re.compile(r"wgmma\.mma_async\S+ \{([^}]*)\}, \{")
LABEL = re.compile(r"^(\$\w+):", re.MULTILINE)
JUMP = re.compile(r"(?:@!?%\w+ +)?bra(?:\.uni)?\s+(\$\w+);")
WAITED_AT_ONCE = re.compile(
    r"wgmma\.commit_group\.sync\.aligned;(?:(?!wgmma).)*?(^\s*wgmma\.wait_group[^\n]* 0;\n)", re.M | re.S
)
NEXT = re.compile(r"^\s*wgmma\.fence\.sync\.aligned;\n", re.MULTILINE)
COMMENT = re.compile(r"//.*")
BETWEEN = re.compile(r"^\$L__BB|\b(?:bra|ret|bar|mbarrier|cp|wgmma)[\s.]|\bst\.shared", re.MULTILINE)
"""Matches what a wait may not be moved behind: a jump or its target, and what may write into shared memory that is
still being read."""


def change_what_is_assembled() -> None:
    """Makes Triton change the PTX of every kernel as ``finished`` and ``early_copies.asked_before_waiting`` do. To be
    called once per process, before the first kernel."""
    from triton.backends.nvidia.compiler import CUDABackend

    make_ptx = CUDABackend.make_ptx

    def made(self: Any, *args: Any) -> str:
        return asked_before_waiting(finished(make_ptx(self, *args)))

    CUDABackend.make_ptx = made


def finished(ptx: str) -> str:
    """The PTX, in which products with a factor in registers are finished when the next begins, or a loop begins
    anew."""
    unhurried = waiting_late(ptx)
    return finished_in_loops(unhurried, left_running=unhurried != ptx)


def waiting_late(ptx: str) -> str:
    """The PTX, in which waits for products stand in front of the next product with the same sums, where nothing between
    needs them and both have a factor in registers."""
    start = 0
    while match := WAITED_AT_ONCE.search(ptx, start):
        wait, start = match[1], match.end()
        begun = list(IN_REGISTERS.finditer(ptx, 0, match.start()))[-1:]
        behind = NEXT.search(ptx, start)
        following = IN_REGISTERS.search(ptx, behind.end()) if behind else None
        if not (begun and behind and following and begun[0][1] == following[1]):
            continue
        between = COMMENT.sub("", ptx[start : behind.start()])
        sums = set(begun[0][1].split(","))
        if not BETWEEN.search(between) and sums.isdisjoint(re.findall(r"%\w+", between)):
            ptx = ptx[: match.start(1)] + ptx[start : behind.start()] + wait + ptx[behind.start() :]
    return ptx


def finished_in_loops(ptx: str, left_running: bool = False) -> str:
    """The PTX, in which loops wait for all their products before they begin anew, if factors of some lie in registers
    and some are left running: by a wait for all but a few, or, with ``left_running``, by no wait behind a loop's last.
    Otherwise it is the same."""
    if not IN_REGISTERS.search(ptx):
        return ptx
    begun = {label[1]: label.end() for label in LABEL.finditer(ptx)}
    backward = [
        (begun[jump[1]], jump.start()) for jump in JUMP.finditer(ptx) if begun.get(jump[1], len(ptx)) <= jump.start()
    ]
    for begin, end in reversed(backward):
        if STILL_RUN.search(ptx, begin, end) or (left_running and _last_runs(ptx[begin:end])):
            ptx = ptx[:end] + FINISH + ptx[end:]
    return ptx


def _last_runs(body: str) -> bool:
    """Whether a loop has no wait behind its last product whose factor lies in registers."""
    products = list(IN_REGISTERS.finditer(body))
    return bool(products) and not WAIT.search(body, products[-1].end())
