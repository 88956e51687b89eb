"""What prompts do between two products: add to the residual, and norm it for whoever reads it next.

``norm.py`` does this for a round's few rows, whose products come as sums of splits. A prompt's products are done, and
its experts' outputs lie sorted by expert. Each kernel runs a program per row, with the whole row in registers; all
round where the modules of ``models/`` do.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..decode.norm import AttentionJoin, FeedForwardJoin
from ..toolchain.jit import jit, tl


class ExpertOutputs(NamedTuple):
    """What a prompt's rows get from their experts."""

    out: Tensor
    """[n * top_k, hidden]: the pairs' outputs, sorted by expert."""
    places: Tensor
    """int32 [n, top_k]: where each row's pairs stand."""
    weights: Tensor
    """fp32 [n, top_k]: what each counts."""


def join_attention(
    attended: Tensor, x: Tensor, weights: AttentionJoin, eps: float, dense: Tensor, routed: Tensor | None
) -> None:
    """``norm.reference_after_attention`` in place, for any number of rows, all [n, hidden].

    ``attended`` is what ``o_proj`` made; x becomes the new residual; ``dense`` takes that normed for the dense MLP,
    ``routed`` for the router. The experts' input is left to ``spread``.
    """
    n, hidden = x.shape
    _join_attention[(n,)](
        attended,
        x,
        weights.post_attention,
        weights.pre_feed_forward,
        weights.router_scale,
        eps,
        hidden**-0.5,
        dense,
        routed,
        HIDDEN=hidden,
        ROUTED=routed is not None,
        BLOCK=_block(hidden),
        num_warps=8,
    )


def join_feed_forward(
    dense: Tensor,
    sparse: ExpertOutputs | None,
    x: Tensor,
    weights: FeedForwardJoin,
    eps: float,
    normed: Tensor,
    features: Tensor | None,
) -> None:
    """``norm.reference_after_feed_forward`` in place, for any number of rows, all [n, hidden].

    ``dense`` is what the dense MLP made; x becomes the layer's output; ``normed`` takes that normed for the next
    reader. ``features`` is a tapped layer's part of a wider tensor, whose rows may lie apart.
    """
    n, hidden = x.shape
    _join_feed_forward[(n,)](
        dense,
        None if sparse is None else sparse.out,
        None if sparse is None else sparse.places,
        None if sparse is None else sparse.weights,
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
        TOP_K=0 if sparse is None else sparse.places.shape[1],
        TAPPED=features is not None,
        BLOCK=_block(hidden),
        num_warps=8,
    )


def spread(x: Tensor, norm: Tensor, eps: float, places: Tensor) -> Tensor:
    """Rows x [n, hidden], normed by ``norm`` [hidden], each at its ``places`` [n, top_k]: [n * top_k, hidden]."""
    (n, hidden), top_k = x.shape, places.shape[1]
    out = torch.empty(n * top_k, hidden, dtype=x.dtype, device=x.device)
    _spread[(n,)](x, norm, eps, places, out, HIDDEN=hidden, TOP_K=top_k, BLOCK=_block(hidden), num_warps=8)
    return out


def _block(hidden: int) -> int:
    """The next power of two: a row's place in registers."""
    return 1 << (hidden - 1).bit_length()


@jit
def _load(pointer: tl.tensor, lane: tl.tensor, HIDDEN: tl.constexpr) -> tl.tensor:
    """A row, or a norm's weight, as fp32."""
    return tl.load(pointer + lane, mask=lane < HIDDEN, other=0.0).to(tl.float32)


@jit
def _store(pointer: tl.tensor, lane: tl.tensor, value: tl.tensor, HIDDEN: tl.constexpr) -> None:
    tl.store(pointer + lane, value.to(pointer.dtype.element_ty), mask=lane < HIDDEN)


@jit
def _rounded(value: tl.tensor, like: tl.tensor) -> tl.tensor:
    """fp32 values as they are after a round trip through the dtype that ``like`` points to."""
    return value.to(like.dtype.element_ty).to(tl.float32)


@jit
def _inverse_rms(x: tl.tensor, eps: tl.tensor, HIDDEN: tl.constexpr) -> tl.tensor:
    return tl.rsqrt(tl.sum(x * x, axis=0) / HIDDEN + eps)


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
    ROUTED: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Program (row)."""
    at = tl.program_id(0).to(tl.int64) * HIDDEN
    lane = tl.arange(0, BLOCK)
    y = _load(attended + at, lane, HIDDEN)
    x = _load(residual + at, lane, HIDDEN)
    y = y * _inverse_rms(y, eps, HIDDEN) * _load(post_attention, lane, HIDDEN)
    x = _rounded(x + _rounded(y, residual), residual)
    unscaled = x * _inverse_rms(x, eps, HIDDEN)
    for_dense = unscaled * _load(pre_feed_forward, lane, HIDDEN)
    if ROUTED:
        for_router = _rounded(_rounded(unscaled, residual) * _load(router_scale, lane, HIDDEN), residual)
        _store(routed + at, lane, for_router * router_factor, HIDDEN)
    _store(dense + at, lane, for_dense, HIDDEN)
    _store(residual + at, lane, x, HIDDEN)


@jit
def _join_feed_forward(
    dense: tl.tensor,
    pairs: tl.tensor,
    places: tl.tensor,
    weights: tl.tensor,
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
    TOP_K: tl.constexpr,
    TAPPED: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Program (row)."""
    row = tl.program_id(0).to(tl.int64)
    at = row * HIDDEN
    lane = tl.arange(0, BLOCK)
    x = _load(residual + at, lane, HIDDEN)
    y = _load(dense + at, lane, HIDDEN)
    if TOP_K > 0:
        sparse = tl.zeros([BLOCK], dtype=tl.float32)
        for choice in tl.static_range(TOP_K):
            place = tl.load(places + row * TOP_K + choice).to(tl.int64)
            weight = tl.load(weights + row * TOP_K + choice)
            sparse += _load(pairs + place * HIDDEN, lane, HIDDEN) * weight
        sparse = _rounded(sparse, residual)
        sparse = sparse * _inverse_rms(sparse, eps, HIDDEN) * _load(post_experts, lane, HIDDEN)
        y = y * _inverse_rms(y, eps, HIDDEN) * _load(post_dense, lane, HIDDEN)
        y = _rounded(_rounded(y, residual) + _rounded(sparse, residual), residual)
    y = y * _inverse_rms(y, eps, HIDDEN) * _load(post_feed_forward, lane, HIDDEN)
    x = _rounded(x + _rounded(y, residual), residual)
    x = _rounded(x * tl.load(layer_scalar).to(tl.float32), residual)
    out = x * _inverse_rms(x, eps, HIDDEN) * _load(next_norm, lane, HIDDEN)
    _store(residual + at, lane, x, HIDDEN)
    if TAPPED:
        _store(features + row * feature_stride, lane, x, HIDDEN)
    _store(normed + at, lane, out, HIDDEN)


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
    """Program (row)."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    value = _load(x + row * HIDDEN, lane, HIDDEN)
    value = value * _inverse_rms(value, eps, HIDDEN) * _load(norm, lane, HIDDEN)
    for choice in tl.static_range(TOP_K):
        place = tl.load(places + row * TOP_K + choice).to(tl.int64)
        _store(out + place * HIDDEN, lane, value, HIDDEN)
