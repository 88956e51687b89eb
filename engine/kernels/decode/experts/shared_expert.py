"""What stands behind experts one of which all rows share: its output, weighted by each row's gate, and those of the
others are added to the residual, and that is normed for the next layer. One launch, as ``norm.py``'s."""

from __future__ import annotations

from torch import Tensor

from ...shared.rows import add_up, inverse_rms, load_row, load_scales, rounded, scale_row, store_row
from ...toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...toolchain.jit import MAX_ROWS, power_of_two, tl
from ..norm import NormStyle, reference_add_and_norm
from ..tiling.tiles import ROW_TILES, RowTiles


def reference_after_experts(
    partials: Tensor, pairs: Tensor, normed: Tensor, gate: Tensor, x: Tensor, weight: Tensor, eps: float,
    style: NormStyle,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Returns two tensors [n, hidden]: x plus what the shared expert says (``partials`` [splits, n, hidden], summed,
    times the sigmoid of ``normed`` @ ``gate``.T) plus ``pairs`` [n, top_k, hidden], summed; and the same normed by
    ``weight``."""
    share = (normed.float() @ gate.float().T).sigmoid()
    x = x + (partials.sum(0) * share).to(x.dtype)
    return reference_add_and_norm(pairs.float().transpose(0, 1), x, weight, eps, style)


def after_experts(
    partials: Tensor,
    pairs: Tensor,
    gate: Tensor,
    x: Tensor,
    weight: Tensor,
    eps: float,
    normed: Tensor,
    style: NormStyle,
    features: Tensor | None = None,
    tiles: RowTiles = ROW_TILES,
    max_rows: int = MAX_ROWS,
) -> None:
    """``reference_after_experts`` in place: x [16, hidden] becomes the layer's output, ``normed`` that for the next.
    ``partials`` fp32 [splits, 16, hidden]: of the shared expert; ``pairs`` [16, top_k, hidden], any float dtype: of the
    others. ``features``: a tapped layer's strided part [16, hidden]. The launch just before may write ``pairs``
    alone."""
    hidden = x.shape[1]
    _after_experts[(max_rows,)](
        partials, pairs, gate, x, weight, eps, normed, features, 0 if features is None else features.stride(0),
        HIDDEN=hidden, SPLITS=partials.shape[0], TOP_K=pairs.shape[1], QWEN=style == "qwen",
        BLOCK=power_of_two(hidden), **tiles.options,
    )  # fmt: skip


@early_kernel
def _after_experts(
    partials: tl.tensor, pairs: tl.tensor, gate: tl.tensor, residual: tl.tensor, weight: tl.tensor, eps: tl.tensor,
    normed: tl.tensor, features: tl.tensor, feature_stride: tl.tensor,
    HIDDEN: tl.constexpr, SPLITS: tl.constexpr, TOP_K: tl.constexpr, QWEN: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    at = row * HIDDEN
    scales = load_scales(weight, lane, HIDDEN)
    gates = load_row(gate, lane, HIDDEN)
    # All of these are older than the launch just before, the experts' alone.
    before = load_row(residual + at, lane, HIDDEN)
    rows = load_row(normed + at, lane, HIDDEN)
    shared = add_up(partials + at, 16 * HIDDEN, lane, HIDDEN, SPLITS)
    share = 1 / (1 + tl.exp(-tl.sum(rows * gates, axis=0)))
    before = rounded(before + rounded(shared * share, residual), residual)
    wait_for_inputs()
    if tl.num_programs(0) == 1:  # as in `norm._after_attention`
        let_next_start()
    x = rounded(add_up(pairs + at * TOP_K, HIDDEN, lane, HIDDEN, TOP_K), residual)
    x = rounded(before + x, residual)
    let_next_start()
    out = scale_row(x, inverse_rms(x, eps, HIDDEN), scales, QWEN)
    store_row(residual + at, lane, x, HIDDEN)
    if features is not None:
        store_row(features + row * feature_stride, lane, x, HIDDEN)
    store_row(normed + at, lane, out, HIDDEN)
