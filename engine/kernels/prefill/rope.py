"""Norms, turns (rotary embedding) and stores many rows' heads, between product and attention. A program takes a whole
row (``decode/attention/rope.py``: a head), so sines are computed once for all heads."""

from __future__ import annotations

from torch import Tensor

from ..shared.heads import HeadNorms, cos_sin
from ..toolchain.jit import jit, power_of_two, tl


def norm_rope_split(
    projected: Tensor,
    norms: HeadNorms,
    frequencies: Tensor,
    stores: tuple[Tensor, Tensor],
    seen: tuple[Tensor, Tensor] | None,
    end: int,
    q: Tensor | None = None,
    *,
    value_is_key: bool = False,
) -> None:
    """Splits rows [n, ...] of [queries | keys | values] at positions end - n .. end - 1; norms and turns their heads.
    ``projected``, ``value_is_key`` as in ``rope.norm_rope_store``; ``q`` [n, heads, head_dim] or None takes the
    queries. Keys and values go to ``stores`` [kv_heads, capacity, head_dim], position p to row p % capacity, the last
    that fit; and to ``seen`` [kv_heads, n, head_dim], strided, where attention can't read the stores."""
    k_store, v_store = stores
    k_seen, v_seen = stores if seen is None else seen
    kv_heads, capacity, head_dim = k_store.shape
    heads = 0 if q is None else q.shape[1]
    assert k_seen.stride() == v_seen.stride() and projected.stride(1) == 1
    _norm_rope_split[(projected.shape[0],)](
        projected, norms.q, norms.k, frequencies, q, k_store, v_store, k_seen, v_seen, projected.shape[0], end,
        capacity, projected.stride(0), k_seen.stride(0), norms.eps,
        HEADS=heads, KV_HEADS=kv_heads, HEAD_DIM=head_dim, BLOCK_Q=power_of_two(heads), BLOCK_KV=power_of_two(kv_heads),
        VALUE_IS_KEY=value_is_key, ROUNDED_FIRST=norms.rounded_first, NORM_VALUES=norms.norm_values,
        SEEN=seen is not None, num_warps=4 if max(heads, kv_heads) * head_dim <= 8192 else 8,
    )  # fmt: skip


@jit
def _load_heads(
    source: tl.tensor, head: tl.tensor, lane: tl.tensor, HEADS: tl.constexpr, HEAD_DIM: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """The two halves of each head, as stored, [heads, head_dim / 2]."""
    at = source + head * HEAD_DIM + lane
    live = head < HEADS
    return tl.load(at, mask=live, other=0.0), tl.load(at + HEAD_DIM // 2, mask=live, other=0.0)


@jit
def _inverse_rms(first: tl.tensor, second: tl.tensor, eps: tl.tensor, HEAD_DIM: tl.constexpr) -> tl.tensor:
    """The inverse root mean square of each head, [heads, 1]."""
    return tl.rsqrt((tl.sum(first * first, axis=1) + tl.sum(second * second, axis=1)) / HEAD_DIM + eps)[:, None]


@jit
def _scaled(
    x: tl.tensor, inverse: tl.tensor, weight: tl.tensor, like: tl.tensor, ROUNDED_FIRST: tl.constexpr
) -> tl.tensor:
    """Heads x times ``inverse`` times ``weight``, fp32 but rounded to the dtype that ``like`` points to; with
    ``ROUNDED_FIRST`` rounded before the weight, too, as drafters do."""
    dtype = like.dtype.element_ty
    x = x * inverse
    if ROUNDED_FIRST:
        x = x.to(dtype).to(tl.float32)
    return (x * weight.to(tl.float32)).to(dtype).to(tl.float32)


@jit
def _store_halves(
    at: tl.tensor,
    first: tl.tensor,
    second: tl.tensor,
    head: tl.tensor,
    lane: tl.tensor,
    head_stride: tl.tensor,
    live: tl.tensor,
    HALF: tl.constexpr,
) -> None:
    at += head * head_stride + lane
    tl.store(at, first.to(at.dtype.element_ty), mask=live)
    tl.store(at + HALF, second.to(at.dtype.element_ty), mask=live)


@jit
def _norm_rope_split(
    projected: tl.tensor, q_weight: tl.tensor, k_weight: tl.tensor, frequencies: tl.tensor, q_out: tl.tensor,
    k_store: tl.tensor, v_store: tl.tensor, k_seen: tl.tensor, v_seen: tl.tensor, max_rows: tl.tensor,
    num_keys: tl.tensor, capacity: tl.tensor, row_stride: tl.tensor, seen_stride: tl.tensor, eps: tl.tensor,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr,
    VALUE_IS_KEY: tl.constexpr, ROUNDED_FIRST: tl.constexpr, NORM_VALUES: tl.constexpr, SEEN: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each row. ``max_rows`` is the number of rows, ``num_keys`` the position behind the last of
    them."""
    half: tl.constexpr = HEAD_DIM // 2
    row = tl.program_id(0)
    position = num_keys - max_rows + row
    lane = tl.arange(0, half)[None, :]
    source = projected + row.to(tl.int64) * row_stride
    cos, sin = cos_sin(position.to(tl.float32) * tl.load(frequencies + lane))

    if HEADS > 0:
        head = tl.arange(0, BLOCK_Q)[:, None]
        raw_1, raw_2 = _load_heads(source, head, lane, HEADS, HEAD_DIM)
        raw_1 = raw_1.to(tl.float32)
        raw_2 = raw_2.to(tl.float32)
        x = raw_1
        y = raw_2
        if q_weight is not None:
            inverse = _inverse_rms(raw_1, raw_2, eps, HEAD_DIM)
            x = _scaled(raw_1, inverse, tl.load(q_weight + lane), projected, ROUNDED_FIRST)
            y = _scaled(raw_2, inverse, tl.load(q_weight + half + lane), projected, ROUNDED_FIRST)
        q_row = q_out + row.to(tl.int64) * (HEADS * HEAD_DIM)
        _store_halves(q_row, x * cos - y * sin, y * cos + x * sin, head, lane, HEAD_DIM, head < HEADS, half)

    head = tl.arange(0, BLOCK_KV)[:, None]
    live = head < KV_HEADS
    keys = source + HEADS * HEAD_DIM
    raw_1, raw_2 = _load_heads(keys, head, lane, KV_HEADS, HEAD_DIM)
    raw_1 = raw_1.to(tl.float32)
    raw_2 = raw_2.to(tl.float32)
    x = raw_1
    y = raw_2
    if k_weight is not None:
        inverse = _inverse_rms(raw_1, raw_2, eps, HEAD_DIM)
        x = _scaled(raw_1, inverse, tl.load(k_weight + lane), projected, ROUNDED_FIRST)
        y = _scaled(raw_2, inverse, tl.load(k_weight + half + lane), projected, ROUNDED_FIRST)
    key_1 = x * cos - y * sin
    key_2 = y * cos + x * sin
    if not VALUE_IS_KEY:
        raw_1, raw_2 = _load_heads(keys + KV_HEADS * HEAD_DIM, head, lane, KV_HEADS, HEAD_DIM)
        raw_1 = raw_1.to(tl.float32)
        raw_2 = raw_2.to(tl.float32)
    if NORM_VALUES:
        inverse = _inverse_rms(raw_1, raw_2, eps, HEAD_DIM)
        raw_1 = raw_1 * inverse
        raw_2 = raw_2 * inverse
    # Of more rows than a ring holds only the last are kept.
    stored = live & (row + capacity >= max_rows)
    at = (position % capacity) * HEAD_DIM
    _store_halves(k_store + at, key_1, key_2, head, lane, capacity * HEAD_DIM, stored, half)
    _store_halves(v_store + at, raw_1, raw_2, head, lane, capacity * HEAD_DIM, stored, half)
    if SEEN:
        _store_halves(k_seen + row * HEAD_DIM, key_1, key_2, head, lane, seen_stride, live, half)
        _store_halves(v_seen + row * HEAD_DIM, raw_1, raw_2, head, lane, seen_stride, live, half)
