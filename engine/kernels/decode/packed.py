"""Products of at most 16 rows with packed weights (FP8 and INT4). Unpacking takes more instructions than multiplying,
so nothing is unpacked twice and inputs are read once: warps share the depth of a step, not its columns. A block of 32
neighbours is one product of a batch, and the blocks' sums are added up at the end."""

from __future__ import annotations

from ..toolchain.early_launch import let_next_start
from ..toolchain.jit import constexpr_function, dot, jit, tl
from ..weights.fp8 import fp8_factor
from ..weights.int4 import int4_factors, int4_scaled
from ..weights.matrix import FP8, Matrix, scaled


@constexpr_function
def last_asked(depth: int, step: int, ahead: int) -> int:
    """Where a loop over ``depth`` stands when it asks for its last tiles, ``ahead`` steps before it multiplies them."""
    return max(0, -(-depth // step) - 1 - ahead) * step


@jit
def multiply_packed(
    rows: tl.tensor,
    live: tl.tensor,
    weight: Matrix,
    first: tl.tensor,
    columns: tl.tensor,
    start: tl.tensor,
    last: tl.tensor,
    DEPTH: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    AHEAD: tl.constexpr,
    SPLITS: tl.constexpr = 1,
) -> tl.tensor:
    """fp32 [16, BLOCK_N]: rows (pointers [16, 1], those that are ``live``) times the weight's rows ``columns``, counted
    from ``first``, over depth start .. start + DEPTH - 1; not ``scaled`` yet. Lets the next kernel start, if ``last``,
    when it asks for its last tiles."""
    even: tl.constexpr = DEPTH % BLOCK_K == 0 and weight.K == DEPTH * SPLITS
    aligned: tl.constexpr = even and weight.N % BLOCK_N == 0
    blocks: tl.constexpr = BLOCK_K // 32
    per_byte: tl.constexpr = 1 if weight.FORMAT == FP8 else 2
    block = tl.arange(0, blocks)
    lane = tl.arange(0, 32 // per_byte)
    inside = columns < weight.N
    panel = columns // 16 * (16 * weight.K // per_byte) + columns % 16 * (32 // per_byte)
    data = weight.data + first * (weight.K // per_byte) + panel[None, :, None]
    data += block[:, None, None] * (16 * 32 // per_byte) + lane[None, None, :]
    sources = rows[None, :, :] + (block[:, None, None] * 32 + lane[None, None, :])
    if weight.FORMAT != FP8:
        groups: tl.constexpr = weight.K // weight.FORMAT
        scales = weight.scales + first * groups + (columns // 16 * (16 * groups) + columns % 16)[None, :]
    total = tl.zeros([blocks, 16, BLOCK_N], dtype=tl.float32)
    # With stages of its own the loop reads ahead all that it reads, scales too.
    for step in tl.range(0, DEPTH, BLOCK_K, num_stages=AHEAD + 1):
        if last & (step == last_asked(DEPTH, BLOCK_K, AHEAD)):
            let_next_start()
        at = start + step
        left = at // 32 + block < weight.K // 32
        if aligned:
            tile = tl.load(data + at * (16 // per_byte))
        else:
            tile = tl.load(data + at * (16 // per_byte), mask=left[:, None, None] & inside[None, :, None], other=0)
        there = live[None, :, :] if even else live[None, :, :] & left[:, None, None]
        x = tl.load(sources + at, mask=there, other=0.0)
        if weight.FORMAT == FP8:
            total = dot(x, tl.permute(fp8_factor(tile, rows), 0, 2, 1), total)
        else:
            # Said in so many words, or scales would be read one by one, and not ahead.
            group = tl.multiple_of(at // 32, blocks) + block
            if weight.FORMAT > 32:
                group = group // (weight.FORMAT // 32)
            if aligned:
                scale = tl.load(scales + group[:, None] * 16)
            else:
                scale = tl.load(scales + group[:, None] * 16, mask=left[:, None] & inside[None, :], other=0.0)
            high_x = tl.load(sources + at + 16, mask=there, other=0.0)
            if weight.scales.dtype.element_ty == tl.bfloat16:
                scale = tl.broadcast_to(scale[:, :, None], [blocks, BLOCK_N, 16])
                low, high = int4_scaled(tile, scale, rows)
                total = dot(x, tl.permute(low, 0, 2, 1), total)
                total = dot(high_x, tl.permute(high, 0, 2, 1), total)
            else:
                low, high = int4_factors(tile, rows)
                part = dot(x, tl.permute(low, 0, 2, 1), tl.zeros([blocks, 16, BLOCK_N], dtype=tl.float32))
                part = dot(high_x, tl.permute(high, 0, 2, 1), part)
                total += part * scale.to(tl.float32)[:, None, :]
    return _added_up(total, blocks, BLOCK_N)


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
    AHEAD: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """Gate and up, fp32 [16, BLOCK_N] each and scaled, from ``column`` on, of a weight [2 * INTER, K] that begins at
    row ``first``. Panels of the two take turns in one tile."""
    lane = tl.arange(0, 2 * BLOCK_N)
    paired = column + lane // 32 * 16 + lane % 16 + lane // 16 % 2 * INTER
    paired = tl.max_contiguous(tl.multiple_of(paired, 16), 16)
    both = multiply_packed(
        rows, live, Matrix(weight, scales, 2 * INTER, K, FORMAT), first, paired, 0, last, DEPTH, 2 * BLOCK_N, BLOCK_K,
        AHEAD,
    )  # fmt: skip
    both = scaled(both, Matrix(weight, scales, 2 * INTER, K, FORMAT), first, paired)
    gate, up = tl.split(tl.permute(tl.reshape(both, [16, BLOCK_N // 16, 2, 16]), 0, 1, 3, 2))
    return tl.reshape(gate, [16, BLOCK_N]), tl.reshape(up, [16, BLOCK_N])


@jit
def _added_up(total: tl.tensor, BLOCKS: tl.constexpr, BLOCK_N: tl.constexpr) -> tl.tensor:
    """[16, BLOCK_N] of sums [BLOCKS, 16, BLOCK_N], in pairs: every thread adds up all blocks of its places. ``tl.sum``
    would do so in all warps."""
    total = tl.permute(total, 1, 2, 0)
    if BLOCKS >= 16:
        total = _pairs_added(total, BLOCK_N, 8)
    if BLOCKS >= 8:
        total = _pairs_added(total, BLOCK_N, 4)
    if BLOCKS >= 4:
        total = _pairs_added(total, BLOCK_N, 2)
    if BLOCKS >= 2:
        total = _pairs_added(total, BLOCK_N, 1)
    return tl.reshape(total, [16, BLOCK_N])


@jit
def _pairs_added(total: tl.tensor, BLOCK_N: tl.constexpr, PAIRS: tl.constexpr) -> tl.tensor:
    even, odd = tl.split(tl.reshape(total, [16, BLOCK_N, PAIRS, 2]))
    return even + odd
