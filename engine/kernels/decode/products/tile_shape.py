"""How a product is cut: its depth into splits, and a split into steps, whose tiles are loaded some steps ahead."""

from __future__ import annotations

from typing import NamedTuple

from ...toolchain.jit import SIMULATED, constexpr_function, jit, tl


@constexpr_function
def last_asked(depth: int, step: int, ahead: int) -> int:
    """The depth at which a loop over ``depth`` loads its last tiles, ``ahead`` steps before it multiplies them."""
    return max(0, -(-depth // step) - 1 - ahead) * step


@constexpr_function
def depth_of_split(depth: int, step: int, splits: int) -> int:
    """The depth of each split, in whole steps. The last splits may have less, or nothing."""
    return -(-depth // (step * splits)) * step


TOGETHER = tl.constexpr(128) if tl else 128
"""How many neighbouring columns are ``turned`` alike. No tile has more, so the order of a column's sums doesn't depend
on how wide its tile is."""


@jit
def place_of(
    step: tl.tensor, column: tl.tensor, first: tl.tensor, N: tl.constexpr, DEPTH: tl.constexpr, BLOCK_K: tl.constexpr,
    TURNED: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """The depth at which a loop's ``step``, a multiple of BLOCK_K, stands, for the tile at ``column`` of the N rows
    that begin at row ``first`` of the matrix. TURNED, a program starts somewhere in the depth, goes on to its end and
    then from its start, so that not all programs load the same part at a time."""
    if TURNED:
        steps: tl.constexpr = (DEPTH + BLOCK_K - 1) // BLOCK_K
        at = step + ((column // TOGETHER + first // N) % steps).to(tl.int32) * BLOCK_K
        return tl.where(at < steps * BLOCK_K, at, at - steps * BLOCK_K)
    else:
        return step


class TileShape(NamedTuple):
    """How a product is cut: into tiles of BLOCK_N columns, and DEPTH into steps. Like a ``Matrix``, it is to be
    constructed in the call that passes it."""

    DEPTH: tl.constexpr
    """The depth of a split in whole steps, or all of the weight's."""
    BLOCK_N: tl.constexpr
    BLOCK_K: tl.constexpr
    PARTS: tl.constexpr
    """How many warps share a step's depth."""
    AHEAD: tl.constexpr
    """How many steps ahead of their products tiles are loaded."""
    TURNED: tl.constexpr
    SPLITS: tl.constexpr = 1
    INTER: tl.constexpr = 0
    """If not 0, every second panel of a tile is the one INTER rows further on: up beside its gate."""


@constexpr_function
def goes_past(step: int, weight_depth: int, depth: int, block: int, splits: int, turned: bool) -> bool:
    """Whether a step, counted from 0, may reach behind the weight's depth, which is shared by splits of a depth."""
    uneven = depth % block != 0 or weight_depth != depth * splits
    return bool(uneven and (turned or splits > 1 or (step + 1) * block > weight_depth))


@jit
def start_of_step(
    step: tl.constexpr, start: tl.tensor, column: tl.tensor, first: tl.tensor, N: tl.constexpr, cut: TileShape
) -> tl.tensor:
    """The depth at which a step, counted from 0, stands, as ``place_of`` says: no constant, so that what loads a step
    is one function for all of them, which Triton writes out once."""
    at = start + place_of(step * cut.BLOCK_K, column, first, N, cut.DEPTH, cut.BLOCK_K, cut.TURNED)
    return tl.full([], at, tl.int32)


@constexpr_function
def parts_of(parts: int, step: int) -> int:
    """How many warps share a step: each takes at least one block."""
    return min(parts, step // 32)


@constexpr_function
def length_of(depth: int, step: int) -> int:
    """A depth rounded up to whole steps."""
    return -(-depth // step) * step


@constexpr_function
def ahead_of(depth: int, step: int, ahead: int) -> int:
    """How many steps are loaded ahead: never all of a depth. Triton 3.6 can't compile a loop over products that loads
    nothing, since then only its condition depends on the expert."""
    return max(1, min(ahead, -(-depth // step) - 1))


@jit
def depend_on(condition: tl.tensor) -> None:
    """Reads what the loop's condition reads, in a loop whose body loads nothing: without it Triton 3.6 can't compile
    the loop."""
    if not SIMULATED:
        tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [condition], dtype=tl.int32, is_pure=False, pack=1)
