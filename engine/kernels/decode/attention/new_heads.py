"""The heads of a single row inside an attention kernel: the queries of a key head, its new key and its new value are
normed, turned, and, where they belong to the program's keys, stored."""

from __future__ import annotations

from ...shared.heads import cos_sin, inverse_rms, load_halves, norm_pairs, store_halves, turn_pairs
from ...toolchain.jit import jit, tl


@jit
def repeated(x: tl.tensor, ROWS: tl.constexpr) -> tl.tensor:
    """x [N, SIZE] repeated to [ROWS, SIZE]. (Joined to itself, it would lie transposed in shared memory.)"""
    times: tl.constexpr = ROWS // x.shape[0]
    x = tl.broadcast_to(tl.reshape(x, (1, x.shape[0], x.shape[1])), (times, x.shape[0], x.shape[1]))
    return tl.reshape(x, (ROWS, x.shape[2]))


@jit
def weights_of_heads(
    q_weight: tl.tensor, k_weight: tl.tensor, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, HEADS: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """The halves of the norms' weights of the ``HEADS`` heads: the group's queries, the new key and, as often as fits,
    the new value."""
    return load_halves(tl.where(tl.arange(0, HEADS) < GROUP, q_weight, k_weight), HEAD_DIM)  # type: ignore[no-any-return]


@jit
def begin_heads(
    frequencies: tl.tensor, cursor: tl.tensor,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, VALUE_IS_KEY: tl.constexpr, HEADS: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:  # fmt: skip
    """What ``finish_heads`` needs that depends on no input: where in the projection the heads begin, and the cosine and
    sine by which the row at the cursor turns."""
    kv_head = tl.program_id(0)
    kv_heads = tl.num_programs(0)
    head = tl.arange(0, HEADS)
    cos, sin = cos_sin(cursor.to(tl.float32) * tl.load(frequencies + tl.arange(0, HEAD_DIM // 2))[None, :])
    source = tl.where(head < GROUP, kv_head * GROUP + head, kv_heads * GROUP + kv_head)
    if not VALUE_IS_KEY:
        source += tl.where(head > GROUP, kv_heads, 0)
    return source * HEAD_DIM, cos, sin


@jit
def finish_heads(
    projected: tl.tensor, begun: tl.tensor, weights: tl.tensor, k: tl.tensor, v: tl.tensor, new_place: tl.tensor,
    has_new: tl.tensor, eps: tl.tensor,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, ROUNDED_FIRST: tl.constexpr, NORM_VALUES: tl.constexpr,
    HEADS: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:  # fmt: skip
    """The halves [HEADS, HEAD_DIM / 2] of the heads that ``begin_heads`` began, fp32, normed if there are ``weights``.
    The key and the value are stored at ``new_place`` if the program ``has_new`` ones; other threads see them behind a
    barrier."""
    source, cos, sin = begun
    head = tl.arange(0, HEADS)
    new_head = head * 0 + new_place
    raw_x, raw_y = load_halves(projected + source, HEAD_DIM)
    raw_x = raw_x.to(tl.float32)
    raw_y = raw_y.to(tl.float32)
    inverse = inverse_rms(raw_x, raw_y, eps, HEAD_DIM)
    x = raw_x
    y = raw_y
    if weights is not None:
        x, y = norm_pairs(raw_x, raw_y, inverse, weights[0], weights[1], ROUNDED_FIRST)
    x, y = turn_pairs(x, y, cos, sin)
    if NORM_VALUES:
        raw_x *= inverse
        raw_y *= inverse
    store_halves(k + new_head, x, y, has_new & (head == GROUP), HEAD_DIM)
    store_halves(v + new_head, raw_x, raw_y, has_new & (head == GROUP + 1), HEAD_DIM)
    return x, y
