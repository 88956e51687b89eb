"""DSpine's way from candidates to drafted ids: how well each candidate of a place follows each of the place before is
scored for all of them at once, and a walk takes the best behind the one before."""

from __future__ import annotations

import torch
from torch import Tensor

from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import dot, tl
from .choices import CANDIDATES
from .lattice import Edges

CHUNK = 256
"""Channels of one step through a hidden size."""


def reference_walk_edges(edges: Edges) -> tuple[Tensor, Tensor]:
    """The ids [n] that are chosen, each behind the one before it, and their probabilities among the candidates, fp32
    [n]. Of equal scores the first candidate's is chosen."""
    ids, chances, chosen = [], [], 0
    for scores, tokens in zip(edges.scores, edges.tokens, strict=True):
        row = scores[chosen]
        chosen = int(row.argmax())
        ids.append(tokens[chosen])
        chances.append(row.softmax(-1)[chosen])
    return torch.stack(ids), torch.stack(chances)


def score_edges(refined: Tensor, head: Tensor, candidates: Tensor, edges: Tensor) -> None:
    """``edges`` fp32 [n, 16, 16]: products of rows ``refined`` [n * 16, hidden], one for each token before a place,
    with the head's rows [vocabulary, hidden] of the place's ``candidates`` int64 [n, 16]."""
    hidden = refined.shape[1]
    assert refined.is_contiguous() and head.is_contiguous() and candidates.is_contiguous() and edges.is_contiguous()
    _score[(candidates.shape[0],)](
        refined, head, candidates, edges, HIDDEN=hidden, CANDIDATES=CANDIDATES, CHUNK=CHUNK, num_warps=4, num_stages=3
    )


def walk_edges(edges: Tensor, candidates: Tensor, token: Tensor, probability: Tensor) -> None:
    """``reference_walk_edges``: fills as many places of ``token`` int64 and ``probability`` fp32."""
    _walk_edges[(1,)](
        edges, candidates, token, probability, COUNT=candidates.shape[0], CANDIDATES=CANDIDATES, num_warps=1
    )


@early_kernel
def _score(
    refined: tl.tensor, head: tl.tensor, candidates: tl.tensor, edges: tl.tensor,
    HIDDEN: tl.constexpr, CANDIDATES: tl.constexpr, CHUNK: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each place."""
    slot = tl.program_id(0)
    candidate = tl.arange(0, CANDIDATES)
    wait_for_inputs()
    token = tl.load(candidates + slot * CANDIDATES + candidate).to(tl.int64)
    total = tl.zeros([CANDIDATES, CANDIDATES], dtype=tl.float32)
    for start in tl.range(0, HIDDEN, CHUNK):
        lane = start + tl.arange(0, CHUNK)
        live = (lane < HIDDEN)[None, :]
        before = tl.load(refined + (slot * CANDIDATES + candidate)[:, None] * HIDDEN + lane[None, :], live, other=0.0)
        after = tl.load(head + token[:, None] * HIDDEN + lane[None, :], live, other=0.0)
        total = dot(before, after.T, total)
    let_next_start()
    at = (slot * CANDIDATES + candidate)[:, None] * CANDIDATES + candidate[None, :]
    tl.store(edges + at, total)


@early_kernel
def _walk_edges(
    edges: tl.tensor, candidates: tl.tensor, token: tl.tensor, probability: tl.tensor,
    COUNT: tl.constexpr, CANDIDATES: tl.constexpr,
) -> None:  # fmt: skip
    lane = tl.arange(0, CANDIDATES)
    square = lane[:, None] * CANDIDATES + lane[None, :]
    wait_for_inputs()
    let_next_start()
    chosen = 0
    for slot in tl.static_range(COUNT):  # of each place everything is loaded, so that no load waits for a choice
        scores = tl.load(edges + slot * CANDIDATES * CANDIDATES + square)
        each = tl.load(candidates + slot * CANDIDATES + lane)
        row = tl.sum(tl.where(lane[:, None] == chosen, scores, 0.0), axis=0)
        best = tl.max(row, axis=0)
        chosen = tl.min(tl.where(row == best, lane, CANDIDATES), axis=0)
        tl.store(token + slot, tl.sum(tl.where(lane == chosen, each, 0), axis=0))
        tl.store(probability + slot, 1 / tl.sum(tl.exp(row - best), axis=0))
