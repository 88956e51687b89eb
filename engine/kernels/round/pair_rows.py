"""Lays side by side what a layer that drafts from pairs projects (Qwen3.5's MTP, EAGLE-3): the embedding of a token and
the hidden state behind the row before it, each normed. Committed rows bring both from the target; a drafted token has
the layer's own hidden state."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..reference.norm import rms_norm, rms_norm_rounded_first
from ..shared.rows import inverse_rms, load_row, load_scales, rounded, scale_row, store_row
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, jit, power_of_two, tl

APART = 4
"""How far the numbers of neighbouring steps lie apart: kernels take each by itself, from a multiple of 16 bytes on."""


class PairNorms(NamedTuple):
    """The two norms' scales, fp32 [hidden] each."""

    embedded: Tensor
    hidden: Tensor
    eps: float
    rounded_first: bool = False
    """Whether rows are rounded before they are scaled (``reference/norm.py``)."""


class DraftPlaces(NamedTuple):
    """Where the passes of a draft stand, int32 [16, 4] on the device, of whose rows the first number counts."""

    cursors: Tensor
    rows: Tensor
    """1 for those that the round has room for, else 0."""

    @classmethod
    def allocate(cls, device: torch.device) -> DraftPlaces:
        return cls(*(torch.zeros(MAX_ROWS, APART, dtype=torch.int32, device=device) for _ in range(2)))


def reference_pair(embedded: Tensor, hidden: Tensor, norms: PairNorms) -> Tensor:
    """Rows [n, 2 * hidden]: each embedding, normed, beside its hidden state, normed."""
    norm = rms_norm_rounded_first if norms.rounded_first else rms_norm
    return torch.cat((norm(embedded, norms.embedded, norms.eps), norm(hidden, norms.hidden, norms.eps)), dim=-1)


def pair_committed(
    features: Tensor, start: Tensor, rows: Tensor, hidden_rows: Tensor, norms: PairNorms, first: Tensor, pairs: Tensor
) -> None:
    """Pairs the embedding in each row of ``features`` [16, hidden | embedding] with the hidden state in the row before;
    the first one's is in ``hidden_rows`` [count, hidden], which holds that of position p in row p % count and takes
    those of the first ``rows`` rows. ``start``, ``rows``: int32 [1] on the device, like ``first``, which becomes the
    position of the first pair: one less. At the beginning of a text, where no row is before, the first pair is the
    second row's, and the last counts for nothing: what is drafted or committed next stands in its place. ``pairs`` [16,
    2 * hidden]."""
    hidden = hidden_rows.shape[1]
    _pair_committed[(MAX_ROWS,)](
        features, start, rows, hidden_rows, len(hidden_rows), norms.embedded, norms.hidden, norms.eps, first, pairs,
        HIDDEN=hidden, QWEN=norms.rounded_first, BLOCK=power_of_two(hidden), num_warps=8,
    )  # fmt: skip


def pair_first(
    anchor: Tensor, embedding: Tensor, scale: float, hidden_rows: Tensor, cursor: Tensor, draft_width: Tensor,
    norms: PairNorms, steps: DraftPlaces, pairs: Tensor, residual: Tensor | None = None, residual_normed: bool = False,
) -> None:  # fmt: skip
    """Pairs the anchor's embedding with the hidden state behind the newest committed row, in the first row of
    ``pairs``, and says where each step of the draft stands. ``anchor``: int64, whose first counts; ``cursor``,
    ``draft_width``: int32 [1] on the device. ``residual`` [16, hidden] takes the hidden state in its first row, normed
    or not."""
    hidden = hidden_rows.shape[1]
    _pair_drafted[(1,)](
        anchor, embedding, scale, hidden_rows, len(hidden_rows), cursor, draft_width, norms.embedded, norms.hidden,
        norms.eps, steps.cursors, steps.rows, pairs, residual,
        HIDDEN=hidden, APART=APART, QWEN=norms.rounded_first, NORMED=residual_normed, BLOCK=power_of_two(hidden),
        num_warps=8,
    )  # fmt: skip


def pair_next(
    token: Tensor, embedding: Tensor, scale: float, hidden: Tensor, norms: PairNorms, pairs: Tensor,
    residual: Tensor | None = None, residual_normed: bool = False,
) -> None:  # fmt: skip
    """Pairs a drafted token's embedding with what stands before it, the first row of ``hidden``, which may be
    ``residual``."""
    size = hidden.shape[1]
    _pair_drafted[(1,)](
        token, embedding, scale, hidden, 1, None, None, norms.embedded, norms.hidden, norms.eps, None, None, pairs,
        residual,
        HIDDEN=size, APART=APART, QWEN=norms.rounded_first, NORMED=residual_normed, BLOCK=power_of_two(size),
        num_warps=8,
    )  # fmt: skip


@jit
def _store_pair(
    pairs: tl.tensor, embedded: tl.tensor, hidden: tl.tensor, embedded_scales: tl.tensor, hidden_scales: tl.tensor,
    residual: tl.tensor, eps: tl.tensor, lane: tl.tensor, HIDDEN: tl.constexpr, QWEN: tl.constexpr,
    NORMED: tl.constexpr,
) -> None:  # fmt: skip
    embedded = scale_row(embedded, inverse_rms(embedded, eps, HIDDEN), embedded_scales, QWEN)
    normed = scale_row(hidden, inverse_rms(hidden, eps, HIDDEN), hidden_scales, QWEN)
    store_row(pairs, lane, embedded, HIDDEN)
    store_row(pairs + HIDDEN, lane, normed, HIDDEN)
    if residual is not None:
        store_row(residual, lane, normed if NORMED else hidden, HIDDEN)


@early_kernel
def _pair_committed(
    features: tl.tensor, start: tl.tensor, rows: tl.tensor, hidden_rows: tl.tensor, count: tl.tensor,
    embedded_norm: tl.tensor, hidden_norm: tl.tensor, eps: tl.tensor, first: tl.tensor, pairs: tl.tensor,
    HIDDEN: tl.constexpr, QWEN: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each row. The row that the first one reads of ``hidden_rows`` is none that others write: there are
    more of them than a pass has."""
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    embedded_scales = load_scales(embedded_norm, lane, HIDDEN)
    hidden_scales = load_scales(hidden_norm, lane, HIDDEN)
    wait_for_inputs()
    position = tl.load(start)
    live = row < tl.load(rows)
    own = load_row(features + row * 2 * HIDDEN, lane, HIDDEN)
    token = row + (position == 0).to(tl.int32)
    embedded = load_row(features + tl.minimum(token, 15) * 2 * HIDDEN + HIDDEN, lane, HIDDEN)
    before = load_row(features + tl.maximum(token - 1, 0) * 2 * HIDDEN, lane, HIDDEN)
    older = load_row(hidden_rows + (position + count - 1) % count * HIDDEN, lane, HIDDEN)
    let_next_start()
    _store_pair(
        pairs + row * 2 * HIDDEN, embedded, tl.where(token == 0, older, before), embedded_scales, hidden_scales, None,
        eps, lane, HIDDEN, QWEN, False,
    )  # fmt: skip
    hidden_at = hidden_rows + (position + row) % count * HIDDEN
    tl.store(hidden_at + lane, own.to(hidden_rows.dtype.element_ty), mask=live & (lane < HIDDEN))
    tl.store(first, tl.maximum(position - 1, 0), mask=row == 0)


@early_kernel
def _pair_drafted(
    token: tl.tensor, embedding: tl.tensor, scale: tl.tensor, hidden: tl.tensor, count: tl.tensor, cursor: tl.tensor,
    draft_width: tl.tensor, embedded_norm: tl.tensor, hidden_norm: tl.tensor, eps: tl.tensor, cursors: tl.tensor,
    rows: tl.tensor, pairs: tl.tensor, residual: tl.tensor,
    HIDDEN: tl.constexpr, APART: tl.constexpr, QWEN: tl.constexpr, NORMED: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    lane = tl.arange(0, BLOCK)
    embedded_scales = load_scales(embedded_norm, lane, HIDDEN)
    hidden_scales = load_scales(hidden_norm, lane, HIDDEN)
    wait_for_inputs()
    chosen = tl.load(token).to(tl.int64)
    if cursor is not None:
        newest = tl.maximum(tl.load(cursor) - 1, 0)
        width = tl.load(draft_width)
        hidden += newest % count * HIDDEN
    behind = load_row(hidden, lane, HIDDEN)
    embedded = rounded(load_row(embedding + chosen * HIDDEN, lane, HIDDEN) * scale, pairs)
    let_next_start()
    _store_pair(pairs, embedded, behind, embedded_scales, hidden_scales, residual, eps, lane, HIDDEN, QWEN, NORMED)
    if cursor is not None:
        step = tl.arange(0, 16)
        tl.store(cursors + step * APART, newest + step)
        tl.store(rows + step * APART, (step < width - 1).to(tl.int32))


assert MAX_ROWS == 16, "the kernel above is written for drafts of 16 steps"
