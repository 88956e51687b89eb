"""What stands between two products of decoding: adding up splits, norm, adding to the residual, norm for the next
product; see ``reference/joins.py``. A program holds a whole row in registers and rounds where ``models/`` does. Latency
is paid once: what the kernel before doesn't write is loaded while it runs, then the rest together, and no store comes
before the last sum."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from ..reference.joins import AttentionJoin, FeedForwardJoin
from ..reference.norm import rms_norm, rms_norm_rounded_first
from ..shared.rows import add_up, inverse_rms, load_row, load_scales, rounded, scale_row, store_row
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, power_of_two, tl
from .tiling.tiles import ROW_TILES, RowTiles

NormStyle = Literal["gemma", "qwen"]


def reference_add_and_norm(
    partials: Tensor, x: Tensor | None, weight: Tensor, eps: float, style: NormStyle
) -> tuple[Tensor, Tensor]:
    """Returns two tensors [n, hidden]: x (0 if None) plus the sum of ``partials`` [splits, n, hidden] over the splits,
    and the same normed by ``weight``."""
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
        ids, embedding, scale, x, normed, weight, eps,
        HIDDEN=hidden, QWEN=style == "qwen", BLOCK=power_of_two(hidden), **tiles.options,
    )  # fmt: skip


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
    """``joins.reference_after_attention`` in place: x [16, hidden] becomes the new residual. ``partials`` fp32 [splits,
    16, hidden] are ``dense.project``'s of ``o_proj``. The launch just before may not write x."""
    hidden = x.shape[1]
    _after_attention[(max_rows,)](
        partials, x, weights.post_attention, weights.pre_feed_forward, weights.pre_experts, weights.router_scale, eps,
        hidden**-0.5, dense, experts, routed,
        HIDDEN=hidden, SPLITS=partials.shape[0], BLOCK=power_of_two(hidden), **tiles.options,
    )  # fmt: skip


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
    """``joins.reference_after_feed_forward`` in place: x [16, hidden] becomes the layer's output, ``normed`` is filled.
    ``partials`` fp32 [splits, 16, hidden]: the dense MLP's; ``pairs`` [16, top_k, hidden], any float dtype: the
    experts'. ``features``: a tapped layer's strided part [16, hidden]. The launch just before may write neither x nor,
    with ``pairs``, ``partials``."""
    hidden = x.shape[1]
    _after_feed_forward[(max_rows,)](
        partials, pairs, x, weights.post_dense, weights.post_experts, weights.post_feed_forward, weights.layer_scalar,
        weights.next_norm, eps, normed, features, 0 if features is None else features.stride(0),
        HIDDEN=hidden, SPLITS=partials.shape[0], TOP_K=0 if pairs is None else pairs.shape[1],
        BLOCK=power_of_two(hidden), **tiles.options,
    )  # fmt: skip


def add_and_norm(
    partials: Tensor,
    x: Tensor | None,
    weight: Tensor,
    eps: float,
    normed: Tensor,
    style: NormStyle,
    features: Tensor | None = None,
    tiles: RowTiles = ROW_TILES,
    max_rows: int = MAX_ROWS,
) -> None:
    """``reference_add_and_norm`` in place: x [16, hidden], if there is one, becomes the sum, ``normed`` is filled.
    ``partials`` [n, 16, hidden] may be strided, as experts' outputs are. ``features``: a tapped layer's strided part
    [16, hidden]. The launch just before may not write x."""
    hidden = normed.shape[1]
    _add_and_norm[(max_rows,)](
        partials, x, weight, eps, normed, features, 0 if features is None else features.stride(0),
        HIDDEN=hidden, SPLITS=partials.shape[0], APART=partials.stride(0), ROW=partials.stride(1),
        QWEN=style == "qwen", BLOCK=power_of_two(hidden), **tiles.options,
    )  # fmt: skip


@early_kernel
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
    scales = load_scales(weight, lane, HIDDEN)
    wait_for_inputs()
    token = tl.load(ids + row).to(tl.int64)
    x = rounded(load_row(embedding + token * HIDDEN, lane, HIDDEN) * scale, x_out)
    let_next_start()
    out = scale_row(x, inverse_rms(x, eps, HIDDEN), scales, QWEN)
    store_row(x_out + row * HIDDEN, lane, x, HIDDEN)
    store_row(normed + row * HIDDEN, lane, out, HIDDEN)


@early_kernel
def _after_attention(
    partials: tl.tensor, residual: tl.tensor, post_attention: tl.tensor, pre_feed_forward: tl.tensor,
    pre_experts: tl.tensor, router_scale: tl.tensor, eps: tl.tensor, router_factor: tl.tensor, dense: tl.tensor,
    experts: tl.tensor, routed: tl.tensor,
    HIDDEN: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    at = row * HIDDEN
    x = load_row(residual + at, lane, HIDDEN)  # written before the product just before
    post_scales = load_scales(post_attention, lane, HIDDEN)
    dense_scales = load_scales(pre_feed_forward, lane, HIDDEN)
    if experts is not None:
        expert_scales = load_scales(pre_experts, lane, HIDDEN)
        router_scales = load_scales(router_scale, lane, HIDDEN)
    wait_for_inputs()
    if tl.num_programs(0) == 1:  # one program leaves room for all of the next kernel's
        let_next_start()
    y = rounded(add_up(partials + at, 16 * HIDDEN, lane, HIDDEN, SPLITS), residual)
    let_next_start()
    y = rounded(scale_row(y, inverse_rms(y, eps, HIDDEN), post_scales, False), residual)
    x = rounded(x + y, residual)
    inverse = inverse_rms(x, eps, HIDDEN)
    store_row(residual + at, lane, x, HIDDEN)
    store_row(dense + at, lane, scale_row(x, inverse, dense_scales, False), HIDDEN)
    if experts is not None:
        store_row(experts + at, lane, scale_row(x, inverse, expert_scales, False), HIDDEN)
        u = rounded(scale_row(x, inverse, router_scales, True), residual)
        store_row(routed + at, lane, u * router_factor, HIDDEN)


@early_kernel
def _after_feed_forward(
    partials: tl.tensor, pairs: tl.tensor, residual: tl.tensor, post_dense: tl.tensor, post_experts: tl.tensor,
    post_feed_forward: tl.tensor, layer_scalar: tl.tensor, next_norm: tl.tensor, eps: tl.tensor, normed: tl.tensor,
    features: tl.tensor, feature_stride: tl.tensor,
    HIDDEN: tl.constexpr, SPLITS: tl.constexpr, TOP_K: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    at = row * HIDDEN
    x = load_row(residual + at, lane, HIDDEN)
    if TOP_K > 0:  # the launch just before is the experts' alone
        y = add_up(partials + at, 16 * HIDDEN, lane, HIDDEN, SPLITS)
        dense_scales = load_scales(post_dense, lane, HIDDEN)
        sparse_scales = load_scales(post_experts, lane, HIDDEN)
    post_scales = load_scales(post_feed_forward, lane, HIDDEN)
    next_scales = load_scales(next_norm, lane, HIDDEN)
    scalar = tl.load(layer_scalar)
    wait_for_inputs()
    if tl.num_programs(0) == 1:
        let_next_start()
    if TOP_K > 0:
        # Side by side, the two branches share a reduction: each is a round trip through shared memory.
        both = rounded(tl.join(y, add_up(pairs + at * TOP_K, HIDDEN, lane, HIDDEN, TOP_K)), residual)
    else:
        y = add_up(partials + at, 16 * HIDDEN, lane, HIDDEN, SPLITS)
    let_next_start()
    if TOP_K > 0:
        both = scale_row(both, inverse_rms(both, eps, HIDDEN), tl.join(dense_scales, sparse_scales), False)
        dense, sparse = tl.split(rounded(both, residual))
        y = dense + sparse
    y = rounded(y, residual)
    y = rounded(scale_row(y, inverse_rms(y, eps, HIDDEN), post_scales, False), residual)
    x = rounded(rounded(x + y, residual) * scalar.to(tl.float32), residual)
    out = scale_row(x, inverse_rms(x, eps, HIDDEN), next_scales, False)
    store_row(residual + at, lane, x, HIDDEN)
    if features is not None:
        store_row(features + row * feature_stride, lane, x, HIDDEN)
    store_row(normed + at, lane, out, HIDDEN)


@early_kernel
def _add_and_norm(
    partials: tl.tensor, residual: tl.tensor, weight: tl.tensor, eps: tl.tensor, normed: tl.tensor,
    features: tl.tensor, feature_stride: tl.tensor,
    HIDDEN: tl.constexpr, SPLITS: tl.constexpr, APART: tl.constexpr, ROW: tl.constexpr, QWEN: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    at = row * HIDDEN
    scales = load_scales(weight, lane, HIDDEN)
    if residual is not None:
        before = load_row(residual + at, lane, HIDDEN)  # written before the product just before
    wait_for_inputs()
    if tl.num_programs(0) == 1:  # as in `_after_attention`
        let_next_start()
    x = rounded(add_up(partials + row * ROW, APART, lane, HIDDEN, SPLITS), normed)
    if residual is not None:
        x = rounded(before + x, normed)
    let_next_start()
    out = scale_row(x, inverse_rms(x, eps, HIDDEN), scales, QWEN)
    if residual is not None:
        store_row(residual + at, lane, x, HIDDEN)
    if features is not None:
        store_row(features + row * feature_stride, lane, x, HIDDEN)
    store_row(normed + at, lane, out, HIDDEN)
