"""Products of at most 16 rows with packed weights (FP8, INT4, MXFP4). Unpacking takes more instructions than
multiplying, so nothing is unpacked twice and inputs are read once: warps share the depth of a step, not its columns.
The part of each warp is one product of a batch, and the parts' sums are added up at the end."""

from __future__ import annotations

from ..toolchain.early_launch import let_next_start
from ..toolchain.jit import SIMULATED, constexpr_function, dot, jit, tl
from ..weights.fp8 import fp8_factor
from ..weights.int4 import int4_scaled, raised
from ..weights.matrix import FP8, MXFP4, Matrix, group_of
from ..weights.mxfp4 import lifted, mxfp4_scaled, mxfp4_steps


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


@jit
def multiply_packed(
    rows: tl.tensor,
    live: tl.tensor,
    weight: Matrix,
    first: tl.tensor,
    column: tl.tensor,
    start: tl.tensor,
    last: tl.tensor,
    DEPTH: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PARTS: tl.constexpr,
    AHEAD: tl.constexpr,
    TURNED: tl.constexpr,
    SPLITS: tl.constexpr = 1,
    INTER: tl.constexpr = 0,
) -> tl.tensor:
    """fp32 [16, BLOCK_N]: rows (pointers [16, 1], those that are ``live``) times the weight's rows from ``first`` +
    ``column`` on, over depth start .. start + DEPTH - 1. With INTER, every second panel is one of as many rows further
    on: up beside the gate. Lets the next kernel start, if ``last``, when it asks for its last tiles."""
    even: tl.constexpr = DEPTH % BLOCK_K == 0 and weight.K == DEPTH * SPLITS
    aligned: tl.constexpr = even and weight.N % BLOCK_N == 0
    parts: tl.constexpr = min(PARTS, BLOCK_K // 32)
    wide: tl.constexpr = BLOCK_K // parts
    per_byte: tl.constexpr = 1 if weight.FORMAT == FP8 else 2
    width: tl.constexpr = 32 // per_byte
    part = tl.arange(0, parts) * wide
    lane = tl.arange(0, wide // per_byte)
    panel, place = panels_from(column, BLOCK_N, INTER), tl.arange(0, BLOCK_N) % 16
    inside = panel * 16 + place < weight.N
    data = weight.data + first * (weight.K // per_byte)
    data += (panel * (16 * weight.K // per_byte) + place * width)[None, :, None]
    data += (part * (16 // per_byte))[:, None, None] + (lane // width * (16 * width) + lane % width)[None, None, :]
    near = lane if weight.FORMAT == FP8 else lane // 16 * 32 + lane % 16
    depth = part[:, None, None] + near[None, None, :]
    sources = rows[None, :, :] + depth
    if weight.FORMAT == FP8:
        scale = tl.load(weight.scales + first + panel * 16 + place, mask=inside, other=0.0)
    else:
        group_size: tl.constexpr = group_of(weight.FORMAT)
        groups: tl.constexpr = weight.K // group_size
        block = part[:, None, None] // 32 + tl.arange(0, wide // 32)[None, None, :]
        scales = weight.scales + first * groups + (panel * (16 * groups) + place)[None, :, None]
    total = tl.zeros([parts, 16, BLOCK_N], dtype=tl.float32)
    # With stages of its own the loop reads ahead all that it reads, scales too.
    for step in tl.range(0, DEPTH, BLOCK_K, num_stages=AHEAD + 1):
        if last & (step == last_asked(DEPTH, BLOCK_K, AHEAD)):
            let_next_start()
        at = start + place_of(step, column, first, weight.N, DEPTH, BLOCK_K, TURNED)
        left = depth < weight.K - at
        if aligned:
            tile = tl.load(data + at * (16 // per_byte))
        else:
            tile = tl.load(data + at * (16 // per_byte), mask=left & inside[None, :, None], other=0)
        there = live[None, :, :] if even else live[None, :, :] & left
        x = tl.load(sources + at, mask=there, other=0.0)
        if weight.FORMAT == FP8:
            total = dot(_in_registers(x), tl.permute(fp8_factor(tile, rows), 0, 2, 1), total)
        else:
            group = (at // 32 + block) // (group_size // 32) * 16
            if aligned:
                steps = tl.load(scales + group)
            else:
                known = (block < weight.K // 32 - at // 32) & inside[None, :, None]
                steps = tl.load(scales + group, mask=known, other=0)
            high_x = tl.load(sources + at + 16, mask=there, other=0.0)
            if weight.FORMAT == MXFP4:
                steps = mxfp4_steps(steps)
            steps = tl.broadcast_to(steps[:, :, :, None], [parts, BLOCK_N, wide // 32, 16])
            if weight.FORMAT == MXFP4:
                low, high = mxfp4_scaled(tile, tl.reshape(steps, [parts, BLOCK_N, wide // 2]), rows)
            else:
                low, high = int4_scaled(tile, tl.reshape(steps, [parts, BLOCK_N, wide // 2]), rows)
            total = dot(_in_registers(x), tl.permute(low, 0, 2, 1), total)
            total = dot(_in_registers(high_x), tl.permute(high, 0, 2, 1), total)
    total = _added_up(total, parts, BLOCK_N)
    if weight.FORMAT == FP8:
        return total * scale[None, :]
    elif weight.FORMAT == MXFP4:
        return lifted(total)
    else:
        return raised(total)


@jit
def _in_registers(x: tl.tensor) -> tl.tensor:
    """The same rows. As they come from shared memory the assembler would copy their registers for every product; what a
    multiplication by one gave, it leaves where it is."""
    if SIMULATED or x.dtype != tl.bfloat16:
        return x
    else:
        return tl.inline_asm_elementwise(
            """{
            .reg .b32 one, z;
            mov.b32 one, 0x3f803f80;
            mov.b32 z, 0x80008000;
            fma.rn.bf16x2 $0, $1, one, z;
            }""",
            "=r,r",
            [x],
            dtype=tl.bfloat16,
            is_pure=True,
            pack=2,
        )


@jit
def multiply_pairs(
    rows: tl.tensor,
    live: tl.tensor,
    weight: tl.tensor,
    scales: tl.tensor,
    first: tl.tensor,
    column: tl.tensor,
    last: tl.tensor,
    INTER: tl.constexpr,
    K: tl.constexpr,
    FORMAT: tl.constexpr,
    DEPTH: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PARTS: tl.constexpr,
    AHEAD: tl.constexpr,
    TURNED: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """Gate and up, fp32 [16, BLOCK_N] each, from ``column`` on, of a weight [2 * INTER, K] that begins at
    row ``first``. Panels of the two take turns in one tile."""
    both = multiply_packed(
        rows, live, Matrix(weight, scales, 2 * INTER, K, FORMAT), first, column, 0, last, DEPTH, 2 * BLOCK_N, BLOCK_K,
        PARTS, AHEAD, TURNED, 1, INTER,
    )  # fmt: skip
    gate, up = tl.split(tl.permute(tl.reshape(both, [16, BLOCK_N // 16, 2, 16]), 0, 1, 3, 2))
    return tl.reshape(gate, [16, BLOCK_N]), tl.reshape(up, [16, BLOCK_N])


@jit
def panels_from(column: tl.tensor, BLOCK_N: tl.constexpr, INTER: tl.constexpr) -> tl.tensor:
    """Of each row of a tile that begins at ``column`` its panel; with INTER every second is one of up."""
    lane = tl.arange(0, BLOCK_N)
    if INTER == 0:
        return column // 16 + lane // 16
    else:
        return column // 16 + lane // 32 + lane // 16 % 2 * (INTER // 16)


@jit
def _added_up(total: tl.tensor, PARTS: tl.constexpr, BLOCK_N: tl.constexpr) -> tl.tensor:
    """[16, BLOCK_N] of sums [PARTS, 16, BLOCK_N], in pairs: every thread adds up all parts of its places. ``tl.sum``
    would do so in all warps."""
    total = tl.permute(total, 1, 2, 0)
    if PARTS >= 16:
        total = _pairs_added(total, BLOCK_N, 8)
    if PARTS >= 8:
        total = _pairs_added(total, BLOCK_N, 4)
    if PARTS >= 4:
        total = _pairs_added(total, BLOCK_N, 2)
    if PARTS >= 2:
        total = _pairs_added(total, BLOCK_N, 1)
    return tl.reshape(total, [16, BLOCK_N])


@jit
def _pairs_added(total: tl.tensor, BLOCK_N: tl.constexpr, PAIRS: tl.constexpr) -> tl.tensor:
    even, odd = tl.split(tl.reshape(total, [16, BLOCK_N, PAIRS, 2]))
    return even + odd
