"""Norms, turns (rotary embedding) and stores the heads of a round's few rows, with a program for each head."""

from __future__ import annotations

import torch
from torch import Tensor

from ...reference.norm import rms_norm, rms_norm_rounded_first
from ...reference.rope import apply_rope, rope_table
from ...round.tree_rows import TreeRows
from ...shared.heads import HeadNorms, cos_sin, inverse_rms, norm_pairs, turn_pairs
from ...toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...toolchain.jit import MAX_ROWS, tl
from ..tiling.tiles import RowTiles


@early_kernel
def _norm_rope_store(
    projected: tl.tensor, q_weight: tl.tensor, k_weight: tl.tensor, frequencies: tl.tensor, k_store: tl.tensor,
    v_store: tl.tensor, cursor: tl.tensor, rows: tl.tensor, capacity: tl.tensor, row_stride: tl.tensor, eps: tl.tensor,
    depths: tl.tensor,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, HEAD_DIM: tl.constexpr, VALUE_IS_KEY: tl.constexpr,
    ROUNDED_FIRST: tl.constexpr, NORM_VALUES: tl.constexpr, IN_PAIRS: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each (row, head): queries first (in place), then keys, then values. Behind the wait all is loaded
    before anything is used, dead rows too, so latency is paid once. ``depths`` are a tree's, or None for a chain."""
    row = tl.program_id(0)
    head = tl.program_id(1)
    half: tl.constexpr = HEAD_DIM // 2
    lane = tl.arange(0, half)
    is_value = head >= HEADS + KV_HEADS
    if q_weight is not None:
        weight = q_weight if head < HEADS else k_weight
        weight_1 = tl.load(weight + lane)
        weight_2 = tl.load(weight + half + lane)
    cursor_value = tl.load(cursor)
    live = row < tl.load(rows)
    row_position = cursor_value + row
    position = row_position
    if depths is not None:
        position = cursor_value + tl.load(depths + row)
    cos, sin = cos_sin(position.to(tl.float32) * tl.load(frequencies + lane))
    wait_for_inputs()
    let_next_start()  # these programs are small, and attention's load old keys first
    source_head = head - KV_HEADS if VALUE_IS_KEY and is_value else head
    source = projected + row * row_stride + source_head * HEAD_DIM + lane
    x = tl.load(source).to(tl.float32)
    y = tl.load(source + half).to(tl.float32)
    dtype = projected.dtype.element_ty
    if IN_PAIRS:
        inverse = tl.reshape(inverse_rms(x[None, :], y[None, :], eps, HEAD_DIM), (1,))
    else:
        inverse = tl.rsqrt(tl.sum(x * x + y * y, axis=0) / HEAD_DIM + eps)
    if is_value:
        if NORM_VALUES:
            x *= inverse
            y *= inverse
        target = v_store + ((head - HEADS - KV_HEADS) * capacity + row_position % capacity) * HEAD_DIM
    else:
        if q_weight is not None:
            x, y = norm_pairs(x, y, inverse, weight_1, weight_2, ROUNDED_FIRST)
        x, y = turn_pairs(x, y, cos, sin)
        target = k_store + ((head - HEADS) * capacity + row_position % capacity) * HEAD_DIM
        if head < HEADS:
            target = projected + row * row_stride + head * HEAD_DIM
    tl.store(target + lane, x.to(dtype), mask=live & (lane >= 0))
    tl.store(target + half + lane, y.to(dtype), mask=live & (lane >= 0))


def norm_rope_store(
    projected: Tensor,
    norms: HeadNorms,
    frequencies: Tensor,
    k: Tensor,
    v: Tensor,
    cursor: Tensor,
    rows: Tensor,
    heads: int = 0,
    *,
    value_is_key: bool = False,
    max_rows: int = MAX_ROWS,
    tree: TreeRows | None = None,
    in_pairs: bool = False,
) -> None:
    """Norms and turns up to 16 rows' heads: queries in place, keys and values into a cache; rounds as
    ``norm_rope_store_reference``. ``projected`` [16, >= width]: [queries | keys | values] side by side, with ``heads``
    queries or none, and no values if ``value_is_key``. ``k``, ``v`` [kv_heads, capacity, head_dim]: row r goes to
    (cursor + r) % capacity and turns by cursor + r, or cursor + its depth in a ``tree``. ``cursor``, ``rows`` int32 [1]
    on the device; rows from ``rows`` on are not written, ``max_rows`` bounds them when recorded. Squares are added
    ``in_pairs``, as ``attend_full_one_row.py`` does, or in the order that is quickest here."""
    kv_heads, capacity, head_dim = k.shape
    _norm_rope_store[(max_rows, heads + 2 * kv_heads)](
        projected, norms.q, norms.k, frequencies, k, v, cursor, rows, capacity, projected.stride(0), norms.eps,
        None if tree is None else tree.depths,
        HEADS=heads, KV_HEADS=kv_heads, HEAD_DIM=head_dim, VALUE_IS_KEY=value_is_key, ROUNDED_FIRST=norms.rounded_first,
        NORM_VALUES=norms.norm_values, IN_PAIRS=in_pairs, **_options(head_dim),
    )  # fmt: skip


def norm_rope_queries(
    projected: Tensor, norm: Tensor, eps: float, frequencies: Tensor, cursor: Tensor, rows: Tensor, heads: int
) -> None:
    """``norm_rope_store`` of one row that has only queries, [16, heads * head_dim], in place: it stands at the cursor,
    and nothing is stored."""
    head_dim = norm.shape[0]
    _norm_rope_store[(1, heads)](
        projected, norm, norm, frequencies, projected, projected, cursor, rows, 1, projected.stride(0), eps, None,
        HEADS=heads, KV_HEADS=1, HEAD_DIM=head_dim, VALUE_IS_KEY=True, ROUNDED_FIRST=False, NORM_VALUES=False,
        IN_PAIRS=False, **_options(head_dim),
    )  # fmt: skip


def _options(head_dim: int) -> dict[str, int]:
    return RowTiles(warps=1 if head_dim <= 256 else 2).options


def norm_rope_store_reference(
    projected: Tensor,
    norms: HeadNorms,
    frequencies: Tensor,
    k: Tensor,
    v: Tensor,
    cursor: Tensor,
    rows: Tensor,
    heads: int = 0,
    *,
    value_is_key: bool = False,
    tree: TreeRows | None = None,
) -> None:
    """What ``norm_rope_store`` does, in PyTorch; reads the host's copy of the two scalars."""
    kv_heads, capacity, head_dim = k.shape
    start, count = int(cursor), int(rows)
    num_heads = heads + (1 if value_is_key else 2) * kv_heads
    parts = projected[:count, : num_heads * head_dim].view(count, num_heads, head_dim)

    def normed(heads: Tensor, weight: Tensor | None) -> Tensor:
        if weight is None:
            return heads
        return (rms_norm_rounded_first if norms.rounded_first else rms_norm)(heads, weight, norms.eps)

    places = torch.arange(start, start + count, device=k.device)
    table = rope_table(places if tree is None else start + tree.depths[:count], frequencies)
    raw_k = parts[:, heads : heads + kv_heads]
    raw_v = raw_k if value_is_key else parts[:, heads + kv_heads :]
    stored = places % capacity
    k[:, stored] = apply_rope(normed(raw_k, norms.k), table).transpose(0, 1)
    v[:, stored] = (rms_norm(raw_v, None, norms.eps) if norms.norm_values else raw_v).transpose(0, 1)
    parts[:, :heads] = apply_rope(normed(parts[:, :heads], norms.q), table)
