"""How a product is cut: its depth into splits, and a split into steps, whose tiles are asked for some steps ahead."""

from __future__ import annotations

from typing import NamedTuple

from ..toolchain.jit import SIMULATED, constexpr_function, jit, tl


@constexpr_function
def last_asked(depth: int, step: int, ahead: int) -> int:
    """Where a loop over ``depth`` stands when it asks for its last tiles, ``ahead`` steps before it multiplies them."""
    return max(0, -(-depth // step) - 1 - ahead) * step


@constexpr_function
def depth_of_split(depth: int, step: int, splits: int) -> int:
    """How much of the depth each split takes, in whole steps. The last ones may have less, or nothing."""
    return -(-depth // (step * splits)) * step


TOGETHER = tl.constexpr(128) if tl else 128
"""Neighbouring columns whose sums are ``turned`` alike. No tile has more, so the order of a column's sums doesn't
depend on how wide its tile is."""


@jit
def place_of(
    step: tl.tensor, column: tl.tensor, first: tl.tensor, N: tl.constexpr, DEPTH: tl.constexpr, BLOCK_K: tl.constexpr,
    TURNED: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """Where in a depth a loop's ``step``, a multiple of BLOCK_K, stands: of products with those of N rows that begin at
    ``column``, in the matrix that begins at row ``first``. TURNED, a program goes on from a place of its own to the end
    of the depth and then from its start, so that not all ask memory for the same part at a time."""
    if TURNED:
        steps: tl.constexpr = (DEPTH + BLOCK_K - 1) // BLOCK_K
        at = step + ((column // TOGETHER + first // N) % steps).to(tl.int32) * BLOCK_K
        return tl.where(at < steps * BLOCK_K, at, at - steps * BLOCK_K)
    else:
        return step


class Cut(NamedTuple):
    """How a product is cut: into tiles of BLOCK_N columns, and DEPTH into steps. To be written where it is passed, as a
    ``Matrix`` is."""

    DEPTH: tl.constexpr
    """In whole steps, or all of the weight's."""
    BLOCK_N: tl.constexpr
    BLOCK_K: tl.constexpr
    PARTS: tl.constexpr
    """Warps that share a step's depth."""
    AHEAD: tl.constexpr
    """Steps that are asked for before they are multiplied."""
    TURNED: tl.constexpr
    SPLITS: tl.constexpr = 1
    INTER: tl.constexpr = 0
    """If any, every second panel of a tile is one of as many rows further on: up beside the gate."""


@constexpr_function
def parts_of(parts: int, step: int) -> int:
    """How many warps share a step: each takes one block at least."""
    return min(parts, step // 32)


@constexpr_function
def length_of(depth: int, step: int) -> int:
    """A depth in whole steps."""
    return -(-depth // step) * step


@constexpr_function
def ahead_of(depth: int, step: int, ahead: int) -> int:
    """How many steps are on their way at a time. Not all: Triton 3.6 can't compile a loop over products that ask for
    nothing, since no more than its condition then depends on the expert."""
    return max(1, min(ahead, -(-depth // step) - 1))


@jit
def depend_on(condition: tl.tensor) -> None:
    """Stands in a loop whose body asks for nothing, for the same reason: it reads what the loop's condition reads."""
    if not SIMULATED:
        tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [condition], dtype=tl.int32, is_pure=False, pack=1)
