"""Products of at most 16 rows with weights whose scales belong to groups of neighbours (INT4). A block of 32 neighbours
is one product of a batch, to which its scale is applied in fp32; warps share the blocks of a step, not the columns, and
the blocks' sums are added up at the end."""

from __future__ import annotations

from ..toolchain.early_launch import let_next_start
from ..toolchain.jit import constexpr_function, dot, jit, tl
from ..weights.int4 import int4_factors
from ..weights.matrix import Matrix


@constexpr_function
def last_asked(depth: int, step: int, ahead: int) -> int:
    """Where a loop over ``depth`` stands when it asks for its last tiles, ``ahead`` steps before it multiplies them."""
    return max(0, -(-depth // step) - 1 - ahead) * step


@jit
def multiply_groups(
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
    from ``first``, over depth start .. start + DEPTH - 1. Lets the next kernel start, if ``last``, when it asks for its
    last tiles."""
    even: tl.constexpr = DEPTH % BLOCK_K == 0 and weight.K == DEPTH * SPLITS
    aligned: tl.constexpr = even and weight.N % BLOCK_N == 0
    blocks: tl.constexpr = BLOCK_K // 32
    block = tl.arange(0, blocks)
    lane = tl.arange(0, 16)
    data = weight.data + first * (weight.K // 2) + columns[None, :, None] * (weight.K // 2)
    data += block[:, None, None] * 16 + lane[None, None, :]
    sources = rows[None, :, :] + (block[:, None, None] * 32 + lane[None, None, :])
    scales = weight.scales + first * (weight.K // weight.FORMAT) + columns[None, :] * (weight.K // weight.FORMAT)
    inside = columns < weight.N
    total = tl.zeros([blocks, 16, BLOCK_N], dtype=tl.float32)
    for step in tl.range(0, DEPTH, BLOCK_K):
        if last & (step == last_asked(DEPTH, BLOCK_K, AHEAD)):
            let_next_start()
        at = start + step
        group = scales + (at + block * 32)[:, None] // weight.FORMAT
        if aligned:
            tile = tl.load(data + at // 2)
            scale = tl.load(group)
        else:
            left = at + block * 32 < weight.K
            tile = tl.load(data + at // 2, mask=left[:, None, None] & inside[None, :, None], other=0)
            scale = tl.load(group, mask=left[:, None] & inside[None, :], other=0.0)
        if even:
            low_rows = tl.load(sources + at, mask=live[None, :, :], other=0.0)
            high_rows = tl.load(sources + at + 16, mask=live[None, :, :], other=0.0)
        else:
            there = live[None, :, :] & (at + block * 32 < weight.K)[:, None, None]
            low_rows = tl.load(sources + at, mask=there, other=0.0)
            high_rows = tl.load(sources + at + 16, mask=there, other=0.0)
        low, high = int4_factors(tile, rows)
        part = dot(low_rows, tl.permute(low, 0, 2, 1), tl.zeros([blocks, 16, BLOCK_N], dtype=tl.float32))
        part = dot(high_rows, tl.permute(high, 0, 2, 1), part)
        total += part * scale.to(tl.float32)[:, None, :]
    return tl.sum(total, axis=0)


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
    """Gate and up, fp32 [16, BLOCK_N] each, from ``column`` on, of a weight [2 * INTER, K] that begins at row
    ``first``. Rows of the two take turns in one tile: neighbours of its product lie in one thread."""
    lane = tl.arange(0, 2 * BLOCK_N)
    paired = column + lane // 2 + lane % 2 * INTER
    both = multiply_groups(
        rows, live, Matrix(weight, scales, 2 * INTER, K, FORMAT), first, paired, 0, last, DEPTH, 2 * BLOCK_N, BLOCK_K,
        AHEAD,
    )  # fmt: skip
    return tl.split(tl.reshape(both, [16, BLOCK_N, 2]))  # type: ignore[no-any-return]
