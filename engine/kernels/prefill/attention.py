"""Flash attention of a prompt's rows, heads of up to 512 channels. PyTorch's fast kernels stop at 256 and know no
windows. A program reads only keys that its tile of queries sees, so a window costs the same in any prompt."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..decode.attention.attend_rows import LOG2_E
from ..reference.attention import sdpa_attention
from ..shared.sinks import sink_score
from ..toolchain.card import Card, card_of
from ..toolchain.jit import MAX_ROWS, cdiv, dot, jit, tl


@dataclass(frozen=True, slots=True)
class ChunkTiles:
    queries: int
    keys: int
    warps: int
    stages: int
    values: int = 256
    """The most channels of the values that a program mixes; scores are computed anew for each such part."""

    def shared_memory(self, head_dim: int) -> int:
        """Bytes of shared memory of a program, on cards (all but Hopper) where the weights of keys pass through it."""
        channels = head_dim + min(self.values, head_dim)
        rows = self.queries * head_dim + (self.stages - 1) * self.keys * channels
        return 2 * (rows + self.queries * self.keys)


LEAST_KEYS = 16
"""The fewest keys that a step may have: the depth of the smallest product of tensor cores."""


def chunk_tiles(head_dim: int, card: Card) -> ChunkTiles:
    """The tiles on a card. What a program adds up fills half of the registers: 512 channels of 64 queries, or, with
    fewer keys to read, half the channels of 128."""
    if card.multiplies_from_shared_memory:
        if head_dim > 256:
            return ChunkTiles(queries=128, keys=32, warps=8, stages=2)
        if head_dim > 128:
            return ChunkTiles(queries=128, keys=64, warps=8, stages=2)
        return ChunkTiles(queries=64, keys=64, warps=4, stages=3)
    # Warps stand side by side over the channels of the mix, hence over the keys as well: 32 keys keep four of them
    # busy.
    queries, keys, stages = (32, 32, 2) if head_dim > 256 else (64, 64, 2) if head_dim > 128 else (64, 64, 3)
    tiles = ChunkTiles(queries, keys, 4, stages, values=head_dim)
    while tiles.keys > LEAST_KEYS and card.programs_of(tiles.shared_memory(head_dim)) == 0:
        tiles = replace(tiles, keys=tiles.keys // 2)
    return tiles


def chunk_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool,
    window: int | None,
    scale: float,
    sinks: Tensor | None = None,
    tiles: ChunkTiles | None = None,
) -> Tensor:
    """``attention.reference_attention`` for head sizes that are powers of two, 16 to 512. ``k`` and ``v`` may be views
    with a contiguous last dimension."""
    n, heads, head_dim = q.shape
    kv_heads, num_keys, _ = k.shape
    tiles = tiles or chunk_tiles(head_dim, card_of(q.device))
    out = torch.empty(n, heads * head_dim, dtype=q.dtype, device=q.device)
    values = min(tiles.values, head_dim)
    _attend_chunk[(cdiv(n, tiles.queries), heads, head_dim // values)](
        q, k, v, sinks, out, n, num_keys, q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1),
        scale * LOG2_E,
        GROUP=heads // kv_heads, HEAD_DIM=head_dim, WINDOW=window or 0, CAUSAL=causal, QUERIES=tiles.queries,
        KEYS=tiles.keys, VALUES=values, num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    return out


def triton_attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool, window: int | None, scale: float) -> Tensor:
    """``chunk_attention`` for the rows of a prompt; a few rows over many keys would leave most of a GPU idle."""
    attend = sdpa_attention if q.shape[0] <= MAX_ROWS else chunk_attention
    return attend(q, k, v, causal=causal, window=window, scale=scale)


@jit
def _attend_chunk(
    q: tl.tensor, k: tl.tensor, v: tl.tensor, sinks: tl.tensor, out: tl.tensor, num_queries: tl.tensor,
    num_keys: tl.tensor, q_row: tl.tensor, q_head: tl.tensor, k_head: tl.tensor, k_row: tl.tensor, v_head: tl.tensor,
    v_row: tl.tensor, scale: tl.tensor,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, WINDOW: tl.constexpr, CAUSAL: tl.constexpr, QUERIES: tl.constexpr,
    KEYS: tl.constexpr, VALUES: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each (tile of queries, head, part of the values). Of causal queries the last tile sees most, so it
    goes first."""
    head = tl.program_id(1)
    first_row = (tl.num_programs(0) - 1 - tl.program_id(0)) * QUERIES
    row = first_row + tl.arange(0, QUERIES)
    lane = tl.arange(0, HEAD_DIM)
    value = tl.program_id(2) * VALUES + tl.arange(0, VALUES)
    position = num_keys - num_queries + row
    queries = tl.load(
        q + row[:, None] * q_row + head * q_head + lane[None, :], mask=(row < num_queries)[:, None], other=0.0
    )
    k_rows = k + (head // GROUP).to(tl.int64) * k_head
    v_rows = v + (head // GROUP).to(tl.int64) * v_head
    begin = num_keys * 0
    if WINDOW > 0:
        begin = tl.maximum(num_keys - num_queries + first_row - WINDOW + 1, 0) // KEYS * KEYS
    end = num_keys
    if CAUSAL:
        end = tl.minimum(num_keys - num_queries + first_row + QUERIES, num_keys)
    # Between these bounds all rows see all keys; only outside of them each key is compared with each row.
    all_from = begin
    all_to = num_keys
    if WINDOW > 0:
        all_from = num_keys - num_queries + first_row + QUERIES - WINDOW
        all_to = tl.minimum(all_to, num_keys - num_queries + first_row + WINDOW)
    if CAUSAL:
        all_to = tl.minimum(all_to, num_keys - num_queries + first_row + 1)
    highest = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    if sinks is not None:  # the sink counts as a key that comes first and has no value
        highest = tl.zeros((QUERIES,), tl.float32) + sink_score(sinks, head)
        total += 1.0
    mixed = tl.zeros((QUERIES, VALUES), tl.float32)
    for start in tl.range(begin, end, KEYS):
        key = start + tl.arange(0, KEYS)
        exists = key < num_keys
        keys = tl.load(k_rows + key[:, None] * k_row + lane[None, :], mask=exists[:, None], other=0.0)
        scores = dot(queries, keys.T, tl.zeros((QUERIES, KEYS), tl.float32))
        if (start < all_from) | (start + KEYS > all_to):
            distance = position[:, None] - key[None, :]
            visible = exists[None, :]
            if CAUSAL:
                visible = visible & (distance >= 0)
            if WINDOW > 0:
                visible = visible & (distance < WINDOW) & (distance > -WINDOW)
            scores = tl.where(visible, scores, float("-inf"))
        now_highest = tl.maximum(highest, tl.max(scores, 1) * scale)
        # Before a row's first visible key the highest score is -inf, and a difference of two would be no number.
        shift = tl.where(now_highest == float("-inf"), 0.0, now_highest)
        fading = tl.exp2(highest - shift)
        weights = tl.exp2(tl.fma(scores, scale, -shift[:, None]))
        values = tl.load(v_rows + key[:, None] * v_row + value[None, :], mask=exists[:, None], other=0.0)
        total = total * fading + tl.sum(weights, 1)
        mixed = dot(weights.to(values.dtype), values, mixed * fading[:, None])
        highest = now_highest
    mixed = mixed / tl.where(total > 0.0, total, 1.0)[:, None]
    at = out + row[:, None] * (tl.num_programs(1) * HEAD_DIM) + head * HEAD_DIM + value[None, :]
    tl.store(at, mixed.to(out.dtype.element_ty), mask=(row < num_queries)[:, None])
