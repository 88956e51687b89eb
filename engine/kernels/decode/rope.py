"""Rotary position embedding in the half-split layout: dimension i turns with dimension i + head_dim / 2."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...layer_config import RopeConfig
from ..round.tree_rows import TreeRows
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, jit, tl
from .norm import rms_norm, rms_norm_rounded_first


def inverse_frequencies(rope: RopeConfig, device: torch.device) -> Tensor:
    """Angle per position of each pair, fp32 [head_dim / 2]; zero for the pairs that don't turn.

    Gemma 4's *proportional* kind divides by the whole head size and zeroes the slow pairs; it is not the partial
    rotary of other models, which turns the first dimensions as if they were a smaller head.
    """
    half = rope.head_dim // 2
    exponents = torch.arange(0, rope.head_dim, 2, dtype=torch.float32, device=device) / rope.head_dim
    frequencies = 1.0 / rope.theta**exponents
    turning = int(rope.rotated_fraction * half)
    return torch.where(torch.arange(half, device=device) < turning, frequencies, 0.0)


def rope_table(positions: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine, fp32 [n, 1, head_dim / 2] each, of integer positions [n]."""
    angles = positions.float()[:, None, None] * frequencies
    return angles.cos(), angles.sin()


def apply_rope(x: Tensor, table: tuple[Tensor, Tensor]) -> Tensor:
    """Turns x [n, heads, head_dim] by a table of the same n rows, in fp32; the result has x's dtype."""
    cos, sin = table
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


@dataclass(frozen=True, slots=True)
class HeadNorms:
    """How the heads of one attention layer are normed before they turn.

    ``q`` and ``k`` are weights [head_dim]; ``rounded_first`` is the drafters' order (see ``norm.py``). Values are
    normed without a weight (Gemma 4) or taken as they are (DFlash).
    """

    q: Tensor
    k: Tensor
    eps: float
    rounded_first: bool
    norm_values: bool


@jit
def cos_sin(angle: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Both to 1e-7, for fp32 angles from 0 to a million.

    The library's, each with a branch for larger angles, were two thirds of a small kernel's instructions, which a GPU
    fetches anew at every launch, and took local memory.
    """
    # The nearest quarter turn: in numbers of this size the last bit is worth 1.
    shifted = tl.fma(angle, 0.6366197723675814, 12582912.0)
    quarter = shifted.to(tl.int32, bitcast=True)
    count = shifted - 12582912.0
    # Less that many times pi / 2, in three parts (Cody and Waite) so short that fused products lose nothing.
    angle = tl.fma(count, -1.5703125, angle)
    angle = tl.fma(count, -4.83751296997070312e-4, angle)
    angle = tl.fma(count, -7.549789954891e-8, angle)
    square = angle * angle  # below: Cephes' polynomials between -pi / 4 and pi / 4
    odd = ((-1.9515295891e-4 * square + 8.3321608736e-3) * square - 1.6666654611e-1) * square * angle + angle
    even = (2.443315711809948e-5 * square - 1.388731625493765e-3) * square + 4.166664568298827e-2
    even = tl.fma(even * square, square, tl.fma(square, -0.5, 1.0))
    turned = (quarter & 1) != 0
    cos = tl.where(turned, odd, even)
    sin = tl.where(turned, even, odd)
    return tl.where(((quarter + 1) & 2) != 0, -cos, cos), tl.where((quarter & 2) != 0, -sin, sin)


@jit
def norm_pairs(
    x: tl.tensor,
    y: tl.tensor,
    inverse: tl.tensor,
    x_weight: tl.tensor,
    y_weight: tl.tensor,
    ROUNDED_FIRST: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """The halves of a head, normed, given its inverse RMS: fp32, as they are after rounding to the weights' dtype."""
    x *= inverse
    y *= inverse
    if ROUNDED_FIRST:
        x = x.to(x_weight.dtype).to(tl.float32)
        y = y.to(y_weight.dtype).to(tl.float32)
    x *= x_weight.to(tl.float32)
    y *= y_weight.to(tl.float32)
    return x.to(x_weight.dtype).to(tl.float32), y.to(y_weight.dtype).to(tl.float32)


@jit
def turn_pairs(x: tl.tensor, y: tl.tensor, cos: tl.tensor, sin: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """The halves of a head, each pair turned by an angle of this cosine and sine; all fp32.

    Two products and a sum leave the compiler a choice of which to fuse, and kernels would differ in the last bit.
    """
    return tl.fma(x, cos, -(y * sin)), tl.fma(y, cos, x * sin)


@early_kernel
def _norm_rope_store(
    projected: tl.tensor,
    q_weight: tl.tensor,
    k_weight: tl.tensor,
    frequencies: tl.tensor,
    k_store: tl.tensor,
    v_store: tl.tensor,
    cursor: tl.tensor,
    rows: tl.tensor,
    capacity: tl.tensor,
    row_stride: tl.tensor,
    eps: tl.tensor,
    depths: tl.tensor,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    VALUE_IS_KEY: tl.constexpr,
    ROUNDED_FIRST: tl.constexpr,
    NORM_VALUES: tl.constexpr,
) -> None:
    """Program (row, head): the query heads first, which stay where they are, then the keys', then the values'.

    Everything is loaded before anything is used, so that memory's latency is paid once: also rows that don't count.
    ``depths`` are a tree's, or None for a chain.
    """
    row = tl.program_id(0)
    head = tl.program_id(1)
    half: tl.constexpr = HEAD_DIM // 2
    lane = tl.arange(0, half)
    is_value = head >= HEADS + KV_HEADS
    weight = q_weight if head < HEADS else k_weight
    weight_1 = tl.load(weight + lane)
    weight_2 = tl.load(weight + half + lane)
    frequency = tl.load(frequencies + lane)
    wait_for_inputs()
    cursor_value = tl.load(cursor)
    place = cursor_value + row
    position = place
    if depths is not None:
        position = cursor_value + tl.load(depths + row)
    live = row < tl.load(rows)
    source_head = head - KV_HEADS if VALUE_IS_KEY and is_value else head
    source = projected + row * row_stride + source_head * HEAD_DIM + lane
    x = tl.load(source).to(tl.float32)
    y = tl.load(source + half).to(tl.float32)
    let_next_start()
    dtype = projected.dtype.element_ty
    inverse = tl.rsqrt(tl.sum(x * x + y * y, axis=0) / HEAD_DIM + eps)
    if is_value:
        if NORM_VALUES:
            x *= inverse
            y *= inverse
        target = v_store + ((head - HEADS - KV_HEADS) * capacity + place % capacity) * HEAD_DIM
    else:
        x, y = norm_pairs(x, y, inverse, weight_1, weight_2, ROUNDED_FIRST)
        cos, sin = cos_sin(position.to(tl.float32) * frequency)
        x, y = turn_pairs(x, y, cos, sin)
        target = k_store + ((head - HEADS) * capacity + place % capacity) * HEAD_DIM
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
) -> None:
    """Norms the heads of up to 16 rows and turns them: queries in place, keys and values into a layer's cache.

    ``projected`` [16, >= width], rows of [queries | keys | values] side by side, one head after the other: ``heads``
    of queries, none where only keys and values are wanted, and no values when ``value_is_key``.
    ``k``, ``v`` [kv_heads, capacity, head_dim]; the row r goes to (cursor + r) % capacity. ``cursor`` and ``rows`` are
    int32 [1] on the device, and rows from ``rows`` on are not written; ``max_rows`` bounds them where a launch is
    recorded. The row r turns by the position cursor + r, in a ``tree`` by cursor + its depth. Roundings are those of
    ``norm_rope_store_reference``.
    """
    kv_heads, capacity, head_dim = k.shape
    _norm_rope_store[(max_rows, heads + 2 * kv_heads)](
        projected,
        norms.q,
        norms.k,
        frequencies,
        k,
        v,
        cursor,
        rows,
        capacity,
        projected.stride(0),
        norms.eps,
        None if tree is None else tree.depths,
        HEADS=heads,
        KV_HEADS=kv_heads,
        HEAD_DIM=head_dim,
        VALUE_IS_KEY=value_is_key,
        ROUNDED_FIRST=norms.rounded_first,
        NORM_VALUES=norms.norm_values,
        num_warps=1 if head_dim <= 256 else 2,
    )


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
    norm = rms_norm_rounded_first if norms.rounded_first else rms_norm
    places = torch.arange(start, start + count, device=k.device)
    table = rope_table(places if tree is None else start + tree.depths[:count], frequencies)
    raw_k = parts[:, heads : heads + kv_heads]
    raw_v = raw_k if value_is_key else parts[:, heads + kv_heads :]
    stored = places % capacity
    k[:, stored] = apply_rope(norm(raw_k, norms.k, norms.eps), table).transpose(0, 1)
    v[:, stored] = (rms_norm(raw_v, None, norms.eps) if norms.norm_values else raw_v).transpose(0, 1)
    parts[:, :heads] = apply_rope(norm(parts[:, :heads], norms.q, norms.eps), table)
