"""RMS normalisation, in the two orders of rounding that the models were trained with, and what decoding does between
two products: add up the sums of splits, norm them, add them to the residual, and norm that for whoever reads it next.

Each kernel runs a program per row, with the whole row in registers. All round where the modules of ``models/`` do.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from .jit import LAUNCH, MAX_ROWS, jit, tl, wait_for_inputs
from .tiles import ROW_TILES, RowTiles

NormStyle = Literal["gemma", "qwen"]


def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Gemma 4's norm: scale in fp32 by a plain weight (not 1 + weight), round once at the end.

    ``x`` is [..., n] of any float dtype, ``weight`` [n] or None; the result has x's shape and dtype.
    """
    # Where the dtypes agree, PyTorch does just that: fp32 inside and one rounding. On a GPU it is one kernel then.
    if weight is None or weight.dtype == x.dtype:
        return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)
    return torch.nn.functional.rms_norm(x.float(), x.shape[-1:], weight.float(), eps).to(x.dtype)


def rms_norm_rounded_first(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """The Qwen3 norm that DFlash drafters use: round to x's dtype, then scale by the weight in that dtype."""
    return rms_norm(x, None, eps) * weight


class AttentionJoin(NamedTuple):
    """Weights of ``after_attention``, [hidden] each; the last two only where a layer has experts."""

    post_attention: Tensor
    pre_feed_forward: Tensor
    pre_experts: Tensor | None
    router_scale: Tensor | None


class FeedForwardJoin(NamedTuple):
    """Weights of ``after_feed_forward``, [hidden] each but ``layer_scalar`` [1]; two only where a layer has experts."""

    post_dense: Tensor | None
    post_experts: Tensor | None
    post_feed_forward: Tensor
    layer_scalar: Tensor
    next_norm: Tensor
    """The next layer's ``input_layernorm``, or the model's final norm."""


def reference_after_attention(
    partials: Tensor, x: Tensor, weights: AttentionJoin, eps: float
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """The residual after attention, and that normed for the dense MLP, the experts and the router."""
    x = x + rms_norm(partials.sum(0).to(x.dtype), weights.post_attention, eps)
    dense = rms_norm(x, weights.pre_feed_forward, eps)
    if weights.pre_experts is None or weights.router_scale is None:
        return x, dense, None, None
    routed = rms_norm(x, None, eps) * weights.router_scale * x.shape[-1] ** -0.5
    return x, dense, rms_norm(x, weights.pre_experts, eps), routed


def reference_after_feed_forward(
    partials: Tensor, pairs: Tensor | None, x: Tensor, weights: FeedForwardJoin, eps: float
) -> tuple[Tensor, Tensor]:
    """A layer's output, and that normed for the next reader. ``pairs`` fp32 [16, top_k, hidden] are weighted."""
    y = partials.sum(0).to(x.dtype)
    if pairs is not None:
        sparse = pairs.sum(1).to(x.dtype)
        y = rms_norm(y, weights.post_dense, eps) + rms_norm(sparse, weights.post_experts, eps)
    x = (x + rms_norm(y, weights.post_feed_forward, eps)) * weights.layer_scalar
    return x, rms_norm(x, weights.next_norm, eps)


def reference_add_and_norm(
    partials: Tensor, x: Tensor | None, weight: Tensor, eps: float, style: NormStyle
) -> tuple[Tensor, Tensor]:
    """x plus the sums, and that normed; without x, the sums alone."""
    y = partials.sum(0).to(weight.dtype)
    x = y if x is None else x + y
    return x, rms_norm(x, weight, eps) if style == "gemma" else rms_norm_rounded_first(x, weight, eps)


def embed_rows(
    ids: Tensor,
    embedding: Tensor,
    scale: float,
    x: Tensor,
    normed: Tensor,
    weight: Tensor,
    eps: float,
    style: NormStyle = "gemma",
    tiles: RowTiles = ROW_TILES,
    max_rows: int = MAX_ROWS,
) -> None:
    """``x`` [16, hidden] = scaled embeddings of ``ids`` int64 [16], and ``normed`` = x normed for the first layer."""
    hidden = x.shape[1]
    _embed_rows[(max_rows,)](
        ids,
        embedding,
        scale,
        x,
        normed,
        weight,
        eps,
        HIDDEN=hidden,
        QWEN=style == "qwen",
        BLOCK=_block(hidden),
        num_warps=tiles.warps,
        **LAUNCH,
    )


def after_attention(
    partials: Tensor,
    x: Tensor,
    weights: AttentionJoin,
    eps: float,
    dense: Tensor,
    experts: Tensor | None = None,
    routed: Tensor | None = None,
    tiles: RowTiles = ROW_TILES,
    max_rows: int = MAX_ROWS,
) -> None:
    """``reference_after_attention`` in place: x [16, hidden] becomes the new residual, the others are filled.

    ``partials`` fp32 [splits, 16, hidden]: what ``dense.project`` left of ``o_proj``.
    """
    hidden = x.shape[1]
    _after_attention[(max_rows,)](
        partials,
        x,
        weights.post_attention,
        weights.pre_feed_forward,
        weights.pre_experts,
        weights.router_scale,
        eps,
        hidden**-0.5,
        dense,
        experts,
        routed,
        HIDDEN=hidden,
        SPLITS=partials.shape[0],
        EXPERTS=experts is not None,
        BLOCK=_block(hidden),
        num_warps=tiles.warps,
        **LAUNCH,
    )


def after_feed_forward(
    partials: Tensor,
    pairs: Tensor | None,
    x: Tensor,
    weights: FeedForwardJoin,
    eps: float,
    normed: Tensor,
    features: Tensor | None = None,
    tiles: RowTiles = ROW_TILES,
    max_rows: int = MAX_ROWS,
) -> None:
    """``reference_after_feed_forward`` in place: x [16, hidden] becomes the layer's output, ``normed`` is filled.

    ``partials`` fp32 [splits, 16, hidden] are the dense MLP's; ``pairs`` fp32 [16, top_k, hidden] the experts'.
    ``features`` is a tapped layer's part [16, hidden] of a wider tensor, whose rows may lie apart.
    """
    hidden = x.shape[1]
    _after_feed_forward[(max_rows,)](
        partials,
        pairs,
        x,
        weights.post_dense,
        weights.post_experts,
        weights.post_feed_forward,
        weights.layer_scalar,
        weights.next_norm,
        eps,
        normed,
        features,
        0 if features is None else features.stride(0),
        HIDDEN=hidden,
        SPLITS=partials.shape[0],
        TOP_K=0 if pairs is None else pairs.shape[1],
        TAPPED=features is not None,
        BLOCK=_block(hidden),
        num_warps=tiles.warps,
        **LAUNCH,
    )


def add_and_norm(
    partials: Tensor,
    x: Tensor | None,
    weight: Tensor,
    eps: float,
    normed: Tensor,
    style: NormStyle,
    tiles: RowTiles = ROW_TILES,
    max_rows: int = MAX_ROWS,
) -> None:
    """``reference_add_and_norm`` in place: x [16, hidden], if there is one, becomes the sum, ``normed`` is filled."""
    hidden = normed.shape[1]
    _add_and_norm[(max_rows,)](
        partials,
        x,
        weight,
        eps,
        normed,
        HIDDEN=hidden,
        SPLITS=partials.shape[0],
        RESIDUAL=x is not None,
        QWEN=style == "qwen",
        BLOCK=_block(hidden),
        num_warps=tiles.warps,
        **LAUNCH,
    )


def _block(hidden: int) -> int:
    """The next power of two: a row's place in registers."""
    return 1 << (hidden - 1).bit_length()


@jit
def rounded(value: tl.tensor, like: tl.tensor) -> tl.tensor:
    """fp32 values as they are after a round trip through the dtype that ``like`` points to."""
    return value.to(like.dtype.element_ty).to(tl.float32)


@jit
def inverse_rms(x: tl.tensor, eps: tl.tensor, HIDDEN: tl.constexpr) -> tl.tensor:
    return 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / HIDDEN + eps)


@jit
def load_row(pointer: tl.tensor, lane: tl.tensor, HIDDEN: tl.constexpr) -> tl.tensor:
    return tl.load(pointer + lane, mask=lane < HIDDEN, other=0.0).to(tl.float32)


@jit
def store_row(pointer: tl.tensor, lane: tl.tensor, value: tl.tensor, HIDDEN: tl.constexpr) -> None:
    tl.store(pointer + lane, value.to(pointer.dtype.element_ty), mask=lane < HIDDEN)


@jit
def add_up(
    partials: tl.tensor, row: tl.tensor, lane: tl.tensor, HIDDEN: tl.constexpr, SPLITS: tl.constexpr
) -> tl.tensor:
    """The sums of a row's splits, in order."""
    total = load_row(partials + row * HIDDEN, lane, HIDDEN)
    for split in tl.static_range(1, SPLITS):
        total += load_row(partials + (split * 16 + row) * HIDDEN, lane, HIDDEN)
    return total


@jit
def scaled_row(
    x: tl.tensor,
    inverse: tl.tensor,
    weight: tl.tensor,
    lane: tl.tensor,
    HIDDEN: tl.constexpr,
    QWEN: tl.constexpr,
) -> tl.tensor:
    """x normed, given its inverse RMS, in the order of rounding wanted."""
    if QWEN:
        return rounded(x * inverse, weight) * load_row(weight, lane, HIDDEN)
    return x * inverse * load_row(weight, lane, HIDDEN)


@jit
def _embed_rows(
    ids: tl.tensor,
    embedding: tl.tensor,
    scale: tl.tensor,
    x_out: tl.tensor,
    normed: tl.tensor,
    weight: tl.tensor,
    eps: tl.tensor,
    HIDDEN: tl.constexpr,
    QWEN: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    wait_for_inputs()
    token = tl.load(ids + row).to(tl.int64)
    x = rounded(load_row(embedding + token * HIDDEN, lane, HIDDEN) * scale, x_out)
    store_row(x_out + row * HIDDEN, lane, x, HIDDEN)
    out = scaled_row(x, inverse_rms(x, eps, HIDDEN), weight, lane, HIDDEN, QWEN)
    store_row(normed + row * HIDDEN, lane, out, HIDDEN)


@jit
def _after_attention(
    partials: tl.tensor,
    residual: tl.tensor,
    post_attention: tl.tensor,
    pre_feed_forward: tl.tensor,
    pre_experts: tl.tensor,
    router_scale: tl.tensor,
    eps: tl.tensor,
    router_factor: tl.tensor,
    dense: tl.tensor,
    experts: tl.tensor,
    routed: tl.tensor,
    HIDDEN: tl.constexpr,
    SPLITS: tl.constexpr,
    EXPERTS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    wait_for_inputs()
    at = row * HIDDEN
    y = rounded(add_up(partials, row, lane, HIDDEN, SPLITS), residual)
    y = scaled_row(y, inverse_rms(y, eps, HIDDEN), post_attention, lane, HIDDEN, False)
    x = rounded(load_row(residual + at, lane, HIDDEN) + rounded(y, residual), residual)
    store_row(residual + at, lane, x, HIDDEN)
    inverse = inverse_rms(x, eps, HIDDEN)
    store_row(dense + at, lane, scaled_row(x, inverse, pre_feed_forward, lane, HIDDEN, False), HIDDEN)
    if EXPERTS:
        store_row(experts + at, lane, scaled_row(x, inverse, pre_experts, lane, HIDDEN, False), HIDDEN)
        u = rounded(scaled_row(x, inverse, router_scale, lane, HIDDEN, True), residual)
        store_row(routed + at, lane, u * router_factor, HIDDEN)


@jit
def _after_feed_forward(
    partials: tl.tensor,
    pairs: tl.tensor,
    residual: tl.tensor,
    post_dense: tl.tensor,
    post_experts: tl.tensor,
    post_feed_forward: tl.tensor,
    layer_scalar: tl.tensor,
    next_norm: tl.tensor,
    eps: tl.tensor,
    normed: tl.tensor,
    features: tl.tensor,
    feature_stride: tl.tensor,
    HIDDEN: tl.constexpr,
    SPLITS: tl.constexpr,
    TOP_K: tl.constexpr,
    TAPPED: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    wait_for_inputs()
    at = row * HIDDEN
    y = rounded(add_up(partials, row, lane, HIDDEN, SPLITS), residual)
    if TOP_K > 0:
        y = rounded(scaled_row(y, inverse_rms(y, eps, HIDDEN), post_dense, lane, HIDDEN, False), residual)
        sparse = load_row(pairs + row * TOP_K * HIDDEN, lane, HIDDEN)
        for rank in tl.static_range(1, TOP_K):
            sparse += load_row(pairs + (row * TOP_K + rank) * HIDDEN, lane, HIDDEN)
        sparse = rounded(sparse, residual)
        sparse = scaled_row(sparse, inverse_rms(sparse, eps, HIDDEN), post_experts, lane, HIDDEN, False)
        y = rounded(y + rounded(sparse, residual), residual)
    y = scaled_row(y, inverse_rms(y, eps, HIDDEN), post_feed_forward, lane, HIDDEN, False)
    x = rounded(load_row(residual + at, lane, HIDDEN) + rounded(y, residual), residual)
    x = rounded(x * tl.load(layer_scalar).to(tl.float32), residual)
    store_row(residual + at, lane, x, HIDDEN)
    if TAPPED:
        store_row(features + row * feature_stride, lane, x, HIDDEN)
    store_row(normed + at, lane, scaled_row(x, inverse_rms(x, eps, HIDDEN), next_norm, lane, HIDDEN, False), HIDDEN)


@jit
def _add_and_norm(
    partials: tl.tensor,
    residual: tl.tensor,
    weight: tl.tensor,
    eps: tl.tensor,
    normed: tl.tensor,
    HIDDEN: tl.constexpr,
    SPLITS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    QWEN: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    wait_for_inputs()
    at = row * HIDDEN
    x = rounded(add_up(partials, row, lane, HIDDEN, SPLITS), normed)
    if RESIDUAL:
        x = rounded(load_row(residual + at, lane, HIDDEN) + x, normed)
        store_row(residual + at, lane, x, HIDDEN)
    out = scaled_row(x, inverse_rms(x, eps, HIDDEN), weight, lane, HIDDEN, QWEN)
    store_row(normed + at, lane, out, HIDDEN)
