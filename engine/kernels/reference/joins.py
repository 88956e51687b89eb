"""Defines what a layer does between two products: adds to the residual and norms for the next product.
``decode/norm.py`` and ``prefill/norm.py`` are its kernels."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from .norm import rms_norm


class AttentionJoin(NamedTuple):
    """The norms' weights in ``after_attention``, and the scale of the router's input, [hidden] each; the last two only
    where a layer has experts."""

    post_attention: Tensor
    pre_feed_forward: Tensor
    pre_experts: Tensor | None
    router_scale: Tensor | None


class FeedForwardJoin(NamedTuple):
    """The weights of the norms behind a layer's MLP and experts, [hidden] each, and ``layer_scalar`` [1], by which its
    output is multiplied. ``post_dense`` and ``post_experts`` are None in layers without experts."""

    post_dense: Tensor | None
    post_experts: Tensor | None
    post_feed_forward: Tensor
    layer_scalar: Tensor
    next_norm: Tensor
    """The next layer's ``input_layernorm``, or the model's final norm."""


def reference_after_attention(
    partials: Tensor, x: Tensor, weights: AttentionJoin, eps: float
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """The residual behind attention, and that normed for the dense MLP, the experts and the router."""
    x = x + rms_norm(partials.sum(0).to(x.dtype), weights.post_attention, eps)
    dense = rms_norm(x, weights.pre_feed_forward, eps)
    if weights.pre_experts is None or weights.router_scale is None:
        return x, dense, None, None
    routed = rms_norm(x, None, eps) * weights.router_scale * x.shape[-1] ** -0.5
    return x, dense, rms_norm(x, weights.pre_experts, eps), routed


def reference_after_feed_forward(
    partials: Tensor, pairs: Tensor | None, x: Tensor, weights: FeedForwardJoin, eps: float
) -> tuple[Tensor, Tensor]:
    """A layer's output, and that normed for the next product. ``pairs`` [16, top_k, hidden] are weighted."""
    y = partials.sum(0).to(x.dtype)
    if pairs is not None:
        sparse = pairs.float().sum(1).to(x.dtype)
        y = rms_norm(y, weights.post_dense, eps) + rms_norm(sparse, weights.post_experts, eps)
    x = (x + rms_norm(y, weights.post_feed_forward, eps)) * weights.layer_scalar
    return x, rms_norm(x, weights.next_norm, eps)
