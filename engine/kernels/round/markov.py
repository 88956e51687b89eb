"""DSpark's way from logits to drafted ids: over the whole vocabulary, each position's logits are corrected by the token
drafted before it. So the positions follow one another, a launch each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..decode.products.head import HeadOutput, pick_rows
from ..decode.tiling.tiles import Tiles
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, cdiv, jit, power_of_two, tl

CHUNK = 32
"""Channels of one step through a rank."""
WIDE_CHUNK = 512
"""Channels of one step through a hidden size."""
GATES = 32
"""Channels that a program gates."""


@dataclass(frozen=True, slots=True)
class MarkovWeights:
    """What corrects a position's logits, and what says how sure the drafter is of its token."""

    before: Tensor
    """[vocabulary, rank]: rows by the target's id of the token before."""
    after: Tensor
    """[drafted vocabulary, rank]: the logits' correction is ``after @ before[id]``."""
    gate: tuple[Tensor, Tensor] | None = None
    """[rank, hidden + rank] and [rank]: a row and the token before it gate that token's channels."""
    confidence: tuple[Tensor, Tensor] | None = None
    """[1, hidden] or [1, hidden + rank], and [1]: the logit of how likely a token is kept, by its row, or also by the
    channels of the token before."""


def reference_channels(weights: MarkovWeights, row: Tensor, before: int) -> Tensor:
    """[rank]: what the token ``before`` says to the position of a ``row`` [hidden], to whose logits is added
    ``after @ channels``."""
    channels = weights.before[before]
    if weights.gate is not None:
        matrix, bias = weights.gate
        channels = channels * torch.sigmoid(torch.nn.functional.linear(torch.cat((row, channels)), matrix, bias))
    return channels


def gates(weights: MarkovWeights, rows: Tensor, befores: Tensor) -> Tensor | None:
    """[n, 16, rank]: by what each position's row [n, hidden] weighs the channels of each token before it, ``befores``
    [n, 16]; None without a gate."""
    if weights.gate is None:
        return None
    matrix, bias = weights.gate
    hidden = rows.shape[-1]
    of_rows = torch.nn.functional.linear(rows, matrix[:, :hidden], bias)
    return torch.sigmoid(of_rows[:, None] + torch.nn.functional.linear(weights.before[befores], matrix[:, hidden:]))


def reference_confidence(weights: MarkovWeights, row: Tensor, before: int) -> Tensor | None:
    """How likely the token of a ``row`` [hidden] is kept, behind the token ``before``: fp32, without a dimension."""
    if weights.confidence is None:
        return None
    matrix, bias = weights.confidence
    read = row if matrix.shape[1] == len(row) else torch.cat((row, weights.before[before]))
    return torch.sigmoid((matrix[0] @ read + bias[0]).float())


def reference_markov(
    logits: Tensor, rows: Tensor, weights: MarkovWeights, anchor: int, target_ids: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The target's ids [n] of the drafted tokens, and how likely each is by what the drafter knows, fp32 [n].
    ``logits`` fp32 [n, drafted vocabulary] are those of ``rows`` [n, hidden]; ``target_ids`` int64 [drafted vocabulary]
    the target's ids, None where all are drafted. Where the drafter says how sure it is, that and a token's
    probability count alike, by their geometric mean."""
    ids, chances, before = [], [], anchor
    for logit, row in zip(logits, rows, strict=True):
        channels = reference_channels(weights, row, before)
        corrected = logit + (weights.after @ channels).float()
        best = corrected.argmax()
        chance = corrected.softmax(-1)[best]
        sure = reference_confidence(weights, row, before)
        chances.append(chance if sure is None else (chance * sure).sqrt())
        before = int(best if target_ids is None else target_ids[best])
        ids.append(before)
    return torch.tensor(ids, device=logits.device), torch.stack(chances)


def markov(out: HeadOutput, rows: Tensor, weights: MarkovWeights, block: Tensor, count: int, tiles: Tiles) -> None:
    """``reference_markov`` of the first ``count`` rows, behind the token with which ``block`` begins: fills as many
    places of ``out.token``, by ``out.ids``, and ``out.probability``. ``head_rows`` left its logits in ``out``, with
    these ``tiles``, for ``rows`` [16, hidden]."""
    assert out.logits is not None and out.logits.shape[1] == len(weights.after)
    vocabulary, rank = weights.after.shape
    num_tiles, device = out.tile_best.shape[1], rows.device
    befores = torch.zeros(MAX_ROWS, dtype=torch.int64, device=device)
    gated = of_rows = torch.zeros(0, device=device)
    if weights.gate is not None:
        matrix, bias = weights.gate
        gated = torch.zeros(rank, device=device)
        of_rows = torch.nn.functional.linear(rows[:MAX_ROWS], matrix[:, : rows.shape[1]], bias)
    known = block, out.ids, out.tile_best, out.tile_token
    lanes = {"TILES": num_tiles, "BLOCK": power_of_two(num_tiles)}
    for slot in range(count):
        if weights.gate is not None:
            matrix = weights.gate[0]
            _gate[(cdiv(rank, GATES),)](
                *known, weights.before, matrix, of_rows, gated, slot,
                RANK=rank, STRIDE=matrix.shape[1], CHUNK=CHUNK, GATES=GATES, **lanes, num_warps=4,
            )  # fmt: skip
        _correct[(num_tiles,)](
            *known, out.tile_mass, out.logits, weights.before, weights.after, gated, befores, slot,
            VOCAB=vocabulary, RANK=rank, COLUMNS=tiles.columns, CHUNK=CHUNK, GATED=weights.gate is not None, **lanes,
            num_warps=4,
        )  # fmt: skip
    pick_rows(out)
    if weights.confidence is not None:
        matrix, bias = weights.confidence
        hidden = rows.shape[1]
        _confide[(count,)](
            out.probability, rows, weights.before, matrix, bias, befores,
            HIDDEN=hidden, RANK=matrix.shape[1] - hidden, CHUNK=WIDE_CHUNK, num_warps=4,
        )  # fmt: skip


@jit
def _token_before(
    block: tl.tensor, target_ids: tl.tensor, tile_best: tl.tensor, tile_token: tl.tensor, draft_slot: tl.tensor,
    TILES: tl.constexpr, BLOCK: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """The target's id of the token before a slot: the anchor, or what the slot before picks, by ``pick_rows``."""
    tile = tl.arange(0, BLOCK)
    at = tl.maximum(draft_slot - 1, 0) * TILES + tile
    best = tl.load(tile_best + at, mask=tile < TILES, other=float("-inf"))
    candidate = tl.load(tile_token + at, mask=tile < TILES, other=0)
    winner = tl.min(tl.where(best == tl.max(best, axis=0), candidate, 2147483647), axis=0)
    winner = tl.where(winner == 2147483647, 0, winner).to(tl.int64)
    if target_ids is not None:
        winner = tl.load(target_ids + winner).to(tl.int64)
    return tl.where(draft_slot == 0, tl.load(block), winner)


@early_kernel
def _gate(
    block: tl.tensor, target_ids: tl.tensor, tile_best: tl.tensor, tile_token: tl.tensor, before_table: tl.tensor,
    matrix: tl.tensor, of_rows: tl.tensor, gated: tl.tensor, draft_slot: tl.tensor,
    RANK: tl.constexpr, STRIDE: tl.constexpr, CHUNK: tl.constexpr, GATES: tl.constexpr, TILES: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    wait_for_inputs()
    before = _token_before(block, target_ids, tile_best, tile_token, draft_slot, TILES, BLOCK)
    let_next_start()
    channel = tl.program_id(0) * GATES + tl.arange(0, GATES)
    live = channel < RANK
    gate = tl.load(of_rows + draft_slot * RANK + channel, mask=live, other=0.0).to(tl.float32)
    for start in range(0, RANK, CHUNK):
        lane = start + tl.arange(0, CHUNK)
        given = tl.load(before_table + before * RANK + lane, mask=lane < RANK, other=0.0).to(tl.float32)
        at = channel[:, None] * STRIDE + (STRIDE - RANK) + lane[None, :]
        weight = tl.load(matrix + at, mask=live[:, None] & (lane < RANK)[None, :], other=0.0).to(tl.float32)
        gate += tl.sum(weight * given[None, :], axis=1)
    own = tl.load(before_table + before * RANK + channel, mask=live, other=0.0).to(tl.float32)
    tl.store(gated + channel, own * tl.sigmoid(gate), mask=live)


@early_kernel
def _correct(
    block: tl.tensor, target_ids: tl.tensor, tile_best: tl.tensor, tile_token: tl.tensor, tile_mass: tl.tensor,
    logits: tl.tensor, before_table: tl.tensor, after: tl.tensor, gated: tl.tensor, befores: tl.tensor,
    draft_slot: tl.tensor,
    VOCAB: tl.constexpr, RANK: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr, GATED: tl.constexpr,
    TILES: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each tile of the vocabulary."""
    wait_for_inputs()
    tile = tl.program_id(0)
    columns = tile * COLUMNS + tl.arange(0, COLUMNS)
    live = columns < VOCAB
    logit = tl.load(logits + draft_slot * VOCAB + columns, mask=live, other=float("-inf"))
    before = _token_before(block, target_ids, tile_best, tile_token, draft_slot, TILES, BLOCK)
    for start in range(0, RANK, CHUNK):
        lane = start + tl.arange(0, CHUNK)
        if GATED:
            given = tl.load(gated + lane, mask=lane < RANK, other=0.0)
        else:
            given = tl.load(before_table + before * RANK + lane, mask=lane < RANK, other=0.0).to(tl.float32)
        at = columns[:, None] * RANK + lane[None, :]
        weight = tl.load(after + at, mask=live[:, None] & (lane < RANK)[None, :], other=0.0).to(tl.float32)
        logit += tl.sum(weight * given[None, :], axis=1)
    let_next_start()
    best = tl.max(logit, axis=0)
    token = tl.min(tl.where(logit == best, columns, VOCAB - 1), axis=0)
    tl.store(tile_best + draft_slot * TILES + tile, best)
    tl.store(tile_token + draft_slot * TILES + tile, token)
    tl.store(tile_mass + draft_slot * TILES + tile, tl.sum(tl.exp(logit - best), axis=0))
    if tile == 0:
        tl.store(befores + draft_slot, before)


@early_kernel
def _confide(
    probability: tl.tensor, rows: tl.tensor, before_table: tl.tensor, confidence: tl.tensor, bias: tl.tensor,
    befores: tl.tensor,
    HIDDEN: tl.constexpr, RANK: tl.constexpr, CHUNK: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each drafted token."""
    wait_for_inputs()
    let_next_start()
    row = tl.program_id(0)
    sums = tl.zeros((CHUNK,), tl.float32)
    for start in range(0, HIDDEN, CHUNK):
        lane = start + tl.arange(0, CHUNK)
        given = tl.load(rows + row * HIDDEN + lane, mask=lane < HIDDEN, other=0.0).to(tl.float32)
        sums += given * tl.load(confidence + lane, mask=lane < HIDDEN, other=0.0).to(tl.float32)
    if RANK > 0:
        before = tl.load(befores + row)
        for start in range(0, RANK, CHUNK):
            lane = start + tl.arange(0, CHUNK)
            given = tl.load(before_table + before * RANK + lane, mask=lane < RANK, other=0.0).to(tl.float32)
            sums += given * tl.load(confidence + HIDDEN + lane, mask=lane < RANK, other=0.0).to(tl.float32)
    sure = tl.sigmoid(tl.sum(sums, axis=0) + tl.load(bias).to(tl.float32))
    tl.store(probability + row, tl.sqrt(tl.load(probability + row) * sure))
