"""What stands between two products of a prompt: adding to the residual, norm for the next product. Unlike in
``decode/norm.py`` products come whole and experts' outputs sorted. A program holds a row in registers and rounds where
``models/`` does."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..decode.norm import NormStyle
from ..reference.joins import AttentionJoin, FeedForwardJoin
from ..shared.rows import inverse_rms, load_row, load_scales, rounded, scale_row, store_row
from ..toolchain.jit import jit, power_of_two, tl


class ExpertOutputs(NamedTuple):
    """What the experts yield for a prompt's rows."""

    out: Tensor
    """[n * top_k, hidden]: the pairs' outputs, sorted by expert."""
    places: Tensor
    """int32 [n, top_k]: the row of ``out`` at which each pair stands."""
    weights: Tensor
    """fp32 [n, top_k]: the weight of each pair."""


def join_attention(
    attended: Tensor, x: Tensor, weights: AttentionJoin, eps: float, dense: Tensor, routed: Tensor | None
) -> None:
    """``joins.reference_after_attention`` in place, all [n, hidden]: ``attended`` is ``o_proj``'s output, x becomes the
    residual, ``dense`` and ``routed`` take it normed for MLP and router (the experts' input: ``spread``)."""
    n, hidden = x.shape
    _join_attention[(n,)](
        attended, x, weights.post_attention, weights.pre_feed_forward, weights.router_scale, eps, hidden**-0.5, dense,
        routed,
        HIDDEN=hidden, BLOCK=power_of_two(hidden), num_warps=8,
    )  # fmt: skip


def join_feed_forward(
    dense: Tensor,
    sparse: ExpertOutputs | None,
    x: Tensor,
    weights: FeedForwardJoin,
    eps: float,
    normed: Tensor,
    features: Tensor | None,
) -> None:
    """``joins.reference_after_feed_forward`` in place, all [n, hidden]: ``dense`` is the MLP's output, x becomes the
    layer's, ``normed`` takes it normed for the next reader; ``features``: a tapped layer's strided part."""
    n, hidden = x.shape
    _join_feed_forward[(n,)](
        dense, None if sparse is None else sparse.out, None if sparse is None else sparse.places,
        None if sparse is None else sparse.weights, x, weights.post_dense, weights.post_experts,
        weights.post_feed_forward, weights.layer_scalar, weights.next_norm, eps, normed, features,
        0 if features is None else features.stride(0),
        HIDDEN=hidden, TOP_K=0 if sparse is None else sparse.places.shape[1], BLOCK=power_of_two(hidden), num_warps=8,
    )  # fmt: skip


def join(
    dense: Tensor | None,
    sparse: ExpertOutputs | None,
    x: Tensor,
    weight: Tensor,
    eps: float,
    normed: Tensor,
    style: NormStyle,
    features: Tensor | None = None,
) -> None:
    """Adds what a branch yields, ``dense`` [n, hidden] or ``sparse``, to x [n, hidden], and puts x normed by ``weight``
    into ``normed``: for layers that norm nothing behind their branches. ``features`` [n, hidden] takes a tapped layer's
    x."""
    n, hidden = x.shape
    _join[(n,)](
        dense, None if sparse is None else sparse.out, None if sparse is None else sparse.places,
        None if sparse is None else sparse.weights, x, weight, eps, normed, features,
        0 if features is None else features.stride(0),
        HIDDEN=hidden, TOP_K=0 if sparse is None else sparse.places.shape[1], QWEN=style == "qwen",
        BLOCK=power_of_two(hidden), num_warps=8,
    )  # fmt: skip


def spread(x: Tensor, norm: Tensor | None, eps: float, places: Tensor) -> Tensor:
    """Norms rows x [n, hidden] by ``norm`` [hidden] if there is one, and puts each at its ``places`` [n, top_k] of the
    result [n * top_k, hidden]."""
    (n, hidden), top_k = x.shape, places.shape[1]
    out = torch.empty(n * top_k, hidden, dtype=x.dtype, device=x.device)
    _spread[(n,)](x, norm, eps, places, out, HIDDEN=hidden, TOP_K=top_k, BLOCK=power_of_two(hidden), num_warps=8)
    return out


@jit
def _join_attention(
    attended: tl.tensor,
    residual: tl.tensor,
    post_attention: tl.tensor,
    pre_feed_forward: tl.tensor,
    router_scale: tl.tensor,
    eps: tl.tensor,
    router_factor: tl.tensor,
    dense: tl.tensor,
    routed: tl.tensor,
    HIDDEN: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """The kernel of ``join_attention``: a program for each row."""
    at = tl.program_id(0).to(tl.int64) * HIDDEN
    lane = tl.arange(0, BLOCK)
    y = load_row(attended + at, lane, HIDDEN)
    x = load_row(residual + at, lane, HIDDEN)
    y = y * inverse_rms(y, eps, HIDDEN) * load_row(post_attention, lane, HIDDEN)
    x = rounded(x + rounded(y, residual), residual)
    unscaled = x * inverse_rms(x, eps, HIDDEN)
    for_dense = unscaled * load_row(pre_feed_forward, lane, HIDDEN)
    if routed is not None:
        for_router = rounded(rounded(unscaled, residual) * load_row(router_scale, lane, HIDDEN), residual)
        store_row(routed + at, lane, for_router * router_factor, HIDDEN)
    store_row(dense + at, lane, for_dense, HIDDEN)
    store_row(residual + at, lane, x, HIDDEN)


@jit
def _added_experts(
    pairs: tl.tensor, places: tl.tensor, weights: tl.tensor, row: tl.tensor, lane: tl.tensor,
    HIDDEN: tl.constexpr, TOP_K: tl.constexpr, BLOCK: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """The weighted sum of a row's experts, fp32."""
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for choice in tl.static_range(TOP_K):
        slot = tl.load(places + row * TOP_K + choice).to(tl.int64)
        weight = tl.load(weights + row * TOP_K + choice)
        total += load_row(pairs + slot * HIDDEN, lane, HIDDEN) * weight
    return total


@jit
def _join(
    dense: tl.tensor, pairs: tl.tensor, places: tl.tensor, weights: tl.tensor, residual: tl.tensor, norm: tl.tensor,
    eps: tl.tensor, normed: tl.tensor, features: tl.tensor, feature_stride: tl.tensor,
    HIDDEN: tl.constexpr, TOP_K: tl.constexpr, QWEN: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """The kernel of ``join``: a program for each row."""
    row = tl.program_id(0).to(tl.int64)
    at = row * HIDDEN
    lane = tl.arange(0, BLOCK)
    if TOP_K > 0:
        y = rounded(_added_experts(pairs, places, weights, row, lane, HIDDEN, TOP_K, BLOCK), residual)
    else:
        y = load_row(dense + at, lane, HIDDEN)
    x = rounded(load_row(residual + at, lane, HIDDEN) + y, residual)
    out = scale_row(x, inverse_rms(x, eps, HIDDEN), load_scales(norm, lane, HIDDEN), QWEN)
    store_row(residual + at, lane, x, HIDDEN)
    if features is not None:
        store_row(features + row * feature_stride, lane, x, HIDDEN)
    store_row(normed + at, lane, out, HIDDEN)


@jit
def _join_feed_forward(
    dense: tl.tensor, pairs: tl.tensor, places: tl.tensor, weights: tl.tensor, residual: tl.tensor,
    post_dense: tl.tensor, post_experts: tl.tensor, post_feed_forward: tl.tensor, layer_scalar: tl.tensor,
    next_norm: tl.tensor, eps: tl.tensor, normed: tl.tensor, features: tl.tensor, feature_stride: tl.tensor,
    HIDDEN: tl.constexpr, TOP_K: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """The kernel of ``join_feed_forward``: a program for each row."""
    row = tl.program_id(0).to(tl.int64)
    at = row * HIDDEN
    lane = tl.arange(0, BLOCK)
    x = load_row(residual + at, lane, HIDDEN)
    y = load_row(dense + at, lane, HIDDEN)
    if TOP_K > 0:
        sparse = rounded(_added_experts(pairs, places, weights, row, lane, HIDDEN, TOP_K, BLOCK), residual)
        sparse = sparse * inverse_rms(sparse, eps, HIDDEN) * load_row(post_experts, lane, HIDDEN)
        y = y * inverse_rms(y, eps, HIDDEN) * load_row(post_dense, lane, HIDDEN)
        y = rounded(rounded(y, residual) + rounded(sparse, residual), residual)
    y = y * inverse_rms(y, eps, HIDDEN) * load_row(post_feed_forward, lane, HIDDEN)
    x = rounded(x + rounded(y, residual), residual)
    x = rounded(x * tl.load(layer_scalar).to(tl.float32), residual)
    out = x * inverse_rms(x, eps, HIDDEN) * load_row(next_norm, lane, HIDDEN)
    store_row(residual + at, lane, x, HIDDEN)
    if features is not None:
        store_row(features + row * feature_stride, lane, x, HIDDEN)
    store_row(normed + at, lane, out, HIDDEN)


@jit
def _spread(
    x: tl.tensor,
    norm: tl.tensor,
    eps: tl.tensor,
    places: tl.tensor,
    out: tl.tensor,
    HIDDEN: tl.constexpr,
    TOP_K: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """The kernel of ``spread``: a program for each row."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    value = load_row(x + row * HIDDEN, lane, HIDDEN)
    if norm is not None:
        value = value * inverse_rms(value, eps, HIDDEN) * load_row(norm, lane, HIDDEN)
    for choice in tl.static_range(TOP_K):
        slot = tl.load(places + row * TOP_K + choice).to(tl.int64)
        store_row(out + slot * HIDDEN, lane, value, HIDDEN)
