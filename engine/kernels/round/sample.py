"""Sampling above temperature zero, on the device, as ``sampling.py`` defines it. Thresholds of top-k and top-p are
found digit by digit, by histograms over the logits' bits. Sums are of whole numbers, so atomics and tiles change no
token."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...sampling.sampling import weight_bits
from ..decode.products.head import HeadOutput
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, cdiv, jit, tl
from .tree_rows import TreeRows

TILE = 2048
"""How many logits one program reads."""
BINS = 2048
SHIFTS = (21, 10, 0)
"""Where each of the three digits of a 32-bit key begins: 11, 11 and 10 bits."""


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """The settings that decide about a token, on the device, one element each."""

    temperature: Tensor
    """fp64: the temperature, above zero."""
    top_k: Tensor
    """int64: how many of the largest logits stay; 0 keeps all."""
    top_p: Tensor
    """fp64: the share of the distribution that stays."""
    seed: Tensor
    """int64: the key of the noise."""

    @classmethod
    def allocate(cls, device: torch.device) -> SamplingSettings:
        def whole() -> Tensor:
            return torch.zeros(1, dtype=torch.int64, device=device)

        return cls(torch.ones(1, dtype=torch.float64, device=device), whole(), whole().double() + 1, whole())


@dataclass(frozen=True, slots=True)
class SampledRows:
    token: Tensor
    """int64 [16]: the token sampled behind each row."""
    probability: Tensor
    """fp32 [16]: of each token, in the distribution that it was sampled from."""
    draft_probability: Tensor
    """fp32 [16]: of the token drafted behind each row."""

    @classmethod
    def allocate(cls, device: torch.device, rows: int = MAX_ROWS) -> SampledRows:
        """Allocates the tensors. ``rows``: those of all tiles of a wide pass."""
        token = torch.zeros(rows, dtype=torch.int64, device=device)
        return cls(token, torch.zeros(rows, device=device), torch.zeros(rows, device=device))

    def tile(self, number: int) -> SampledRows:
        """The samples of one tile of 16 rows of a wide pass."""
        rows = slice(number * MAX_ROWS, (number + 1) * MAX_ROWS)
        return SampledRows(self.token[rows], self.probability[rows], self.draft_probability[rows])


class SampleScratch:
    """What the passes over the logits leave for one another."""

    def __init__(self, vocab: int, device: torch.device):
        # For top-k, then for top-p: sums by bin, for each digit; the threshold's digits found so far; how much is still
        # wanted of the bin to which they lead.
        # wanted of the bin they lead to.
        self.cleared = torch.zeros(2 * MAX_ROWS * (len(SHIFTS) * BINS + 2), dtype=torch.int64, device=device)
        size = 2 * len(SHIFTS) * MAX_ROWS * BINS
        self.bins = self.cleared[:size].view(2, len(SHIFTS), MAX_ROWS, BINS)
        self.threshold, self.wanted = self.cleared[size:].view(2, 2, MAX_ROWS)
        self.tile_weight = torch.zeros(MAX_ROWS, cdiv(vocab, TILE), dtype=torch.int64, device=device)


@jit
def _key(logit: tl.tensor) -> tl.tensor:
    """Keys of fp32 logits: int64 in [0, 2^32), in the logits' order; both zeros have one key."""
    bits = tl.where(logit == 0.0, 0.0, logit).to(tl.int32, bitcast=True).to(tl.int64)
    return tl.where(bits >= 0, bits + 2147483648, -1 - bits)


@jit
def _weight(logit: tl.tensor, peak: tl.tensor, temperature: tl.tensor, BITS: tl.constexpr) -> tl.tensor:
    scaled = (logit.to(tl.float64) - peak.to(tl.float64)) / temperature
    return (tl.exp(scaled) * (1 << BITS)).to(tl.int64)


@early_kernel
def _count_digits(
    logits: tl.tensor, peak: tl.tensor, bins: tl.tensor, threshold: tl.tensor, outer_threshold: tl.tensor,
    temperature: tl.tensor, top_k: tl.tensor, top_p: tl.tensor, rows: tl.tensor, shift: tl.tensor,
    shift_before: tl.tensor,
    VOCAB: tl.constexpr, BITS: tl.constexpr, BY_WEIGHT: tl.constexpr, BINS: tl.constexpr, TILE: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each (tile, row): adds up tokens, or the weight that top-k left them, by one digit of their
    keys."""
    wait_for_inputs()
    row = tl.program_id(1)
    wanted = (tl.load(top_p) < 1.0) if BY_WEIGHT else ((tl.load(top_k) > 0) & (tl.load(top_k) < VOCAB))
    if wanted & (row < tl.load(rows)):
        token = tl.program_id(0) * TILE + tl.arange(0, TILE)
        logit = tl.load(logits + row * VOCAB + token, mask=token < VOCAB, other=0.0)
        key = _key(logit)
        counted = (token < VOCAB) & ((key >> shift_before) == (tl.load(threshold + row) >> shift_before))
        amount = tl.full((TILE,), 1, tl.int64)
        if BY_WEIGHT:
            counted = counted & (key >= tl.load(outer_threshold + row))
            amount = _weight(logit, tl.load(peak + row), tl.load(temperature), BITS)
        digit = (key >> shift) & ((1 << (shift_before - shift)) - 1)
        let_next_start()
        tl.atomic_add(bins + row * BINS + digit, amount, mask=counted & (amount > 0), sem="relaxed")


@early_kernel
def _find_digit(
    bins: tl.tensor,
    threshold: tl.tensor,
    still_wanted: tl.tensor,
    top_k: tl.tensor,
    top_p: tl.tensor,
    rows: tl.tensor,
    shift: tl.tensor,
    VOCAB: tl.constexpr,
    BY_WEIGHT: tl.constexpr,
    FIRST: tl.constexpr,
    BINS: tl.constexpr,
) -> None:
    """A program for each row: the highest bin that, with those above it, holds what is wanted; the threshold's next
    digit."""
    wait_for_inputs()
    let_next_start()
    row = tl.program_id(0)
    wanted = (tl.load(top_p) < 1.0) if BY_WEIGHT else ((tl.load(top_k) > 0) & (tl.load(top_k) < VOCAB))
    if wanted & (row < tl.load(rows)):
        inside = tl.load(bins + row * BINS + tl.arange(0, BINS))
        total = tl.sum(inside, 0)
        above = total - tl.cumsum(inside, 0)
        amount = tl.load(still_wanted + row)
        if shift == FIRST:
            all_wanted = tl.ceil(total.to(tl.float64) * tl.load(top_p)) if BY_WEIGHT else tl.load(top_k)
            amount = all_wanted.to(tl.int64)
        digit = tl.sum((above + inside >= amount).to(tl.int64), 0) - 1
        passed = tl.sum(tl.where(tl.arange(0, BINS) == digit, above, 0), 0)
        tl.store(still_wanted + row, amount - passed)
        tl.store(threshold + row, tl.load(threshold + row) + (digit << shift))


@jit
def _kept_weight(
    logit: tl.tensor,
    live: tl.tensor,
    threshold: tl.tensor,
    row: tl.tensor,
    peak: tl.tensor,
    temperature: tl.tensor,
    BITS: tl.constexpr,
) -> tl.tensor:
    """The weight that both thresholds leave; a threshold that nothing set is zero, below every key."""
    least = tl.maximum(tl.load(threshold + row), tl.load(threshold + 16 + row))
    weight = _weight(logit, tl.load(peak + row), tl.load(temperature), BITS)
    return tl.where(live & (_key(logit) >= least), weight, 0)


@early_kernel
def _weigh_tiles(
    logits: tl.tensor,
    peak: tl.tensor,
    threshold: tl.tensor,
    tile_weight: tl.tensor,
    temperature: tl.tensor,
    rows: tl.tensor,
    VOCAB: tl.constexpr,
    BITS: tl.constexpr,
    TILE: tl.constexpr,
) -> None:
    """The kernel of ``sample_rows``: a program for each (tile, row)."""
    wait_for_inputs()
    row = tl.program_id(1)
    if row < tl.load(rows):
        token = tl.program_id(0) * TILE + tl.arange(0, TILE)
        logit = tl.load(logits + row * VOCAB + token, mask=token < VOCAB, other=0.0)
        weight = _kept_weight(logit, token < VOCAB, threshold, row, peak, temperature, BITS)
        let_next_start()
        tl.store(tile_weight + row * tl.num_programs(0) + tl.program_id(0), tl.sum(weight, 0))


@early_kernel
def _draw(
    logits: tl.tensor, peak: tl.tensor, threshold: tl.tensor, tile_weight: tl.tensor, temperature: tl.tensor,
    seed: tl.tensor, cursor: tl.tensor, rows: tl.tensor, drafted: tl.tensor, depths: tl.tensor, token_out: tl.tensor,
    probability_out: tl.tensor, draft_probability_out: tl.tensor,
    VOCAB: tl.constexpr, TILES: tl.constexpr, TILES_BLOCK: tl.constexpr, BITS: tl.constexpr, TILE: tl.constexpr,
    TREE: tl.constexpr, DRAFTED_STRIDE: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each row: the tile at which the row's random number falls, and the token in it."""
    wait_for_inputs()
    let_next_start()
    row = tl.program_id(0)
    if row < tl.load(rows):
        tile = tl.arange(0, TILES_BLOCK)
        weights = tl.load(tile_weight + row * TILES + tile, mask=tile < TILES, other=0)
        total = tl.sum(weights, 0)
        depth = tl.load(depths + row) if TREE else row
        position = (tl.load(cursor) + 1 + depth).to(tl.uint32)
        zero = position & 0
        word, _, _, _ = tl.philox(tl.load(seed), position, zero, zero, zero)
        # word * total / 2^32 needs 94 bits, so the halves of the total are multiplied one by one.
        wide = word.to(tl.uint64)
        low = (wide * (total & 0xFFFFFFFF).to(tl.uint64)) >> 32
        target = (word.to(tl.int64) * (total >> 32)) + low.to(tl.int64)
        through = tl.cumsum(weights, 0)
        chosen = tl.sum((through <= target).to(tl.int32), 0)
        before = tl.sum(tl.where(tile < chosen, weights, 0), 0)
        lane = tl.arange(0, TILE)
        candidate = chosen * TILE + lane
        logit = tl.load(logits + row * VOCAB + candidate, mask=candidate < VOCAB, other=0.0)
        inside = _kept_weight(logit, candidate < VOCAB, threshold, row, peak, temperature, BITS)
        offset = tl.sum((before + tl.cumsum(inside, 0) <= target).to(tl.int32), 0)
        weight = tl.sum(tl.where(lane == offset, inside, 0), 0)
        # Without any weight (logits are NaN) nothing is chosen; a token is stored all the same, since the row will be
        # read.
        tl.store(token_out + row, tl.minimum(chosen * TILE + offset, VOCAB - 1).to(tl.int64))
        tl.store(probability_out + row, (weight.to(tl.float64) / total.to(tl.float64)).to(tl.float32))
        asked = tl.load(logits + row * VOCAB + tl.load(drafted + depth * DRAFTED_STRIDE))
        given = _kept_weight(asked, asked == asked, threshold, row, peak, temperature, BITS)
        tl.store(draft_probability_out + row, (given.to(tl.float64) / total.to(tl.float64)).to(tl.float32))


def sample_rows(
    head: HeadOutput,
    settings: SamplingSettings,
    cursor: Tensor,
    rows: Tensor,
    drafted: Tensor,
    out: SampledRows,
    scratch: SampleScratch,
    tree: TreeRows | None = None,
) -> None:
    """Samples the token of position cursor + 1 + depth behind each of up to 16 rows (depth i for row i of a chain).
    ``head``: fp32 logits [16, vocab] and their peaks; ``cursor``, ``rows`` int32 [1] on the device; ``drafted`` int64
    [16], strided: the tokens of ``out.draft_probability`` by depth. Defined by ``sampling.sample``."""
    logits = head.logits
    assert logits is not None
    vocab = logits.shape[1]
    tiles, bits = cdiv(vocab, TILE), weight_bits(vocab)
    scratch.cleared.zero_()
    temperature, top_k, top_p = settings.temperature, settings.top_k, settings.top_p
    for stage in range(2):
        before = 32
        for digit, shift in enumerate(SHIFTS):
            bins, threshold = scratch.bins[stage, digit], scratch.threshold[stage]
            _count_digits[(tiles, MAX_ROWS)](
                logits, head.peak, bins, threshold, scratch.threshold[0], temperature, top_k, top_p, rows, shift,
                before, VOCAB=vocab, BITS=bits, BY_WEIGHT=stage == 1, BINS=BINS, TILE=TILE, num_warps=4,
            )  # fmt: skip
            _find_digit[(MAX_ROWS,)](
                bins, threshold, scratch.wanted[stage], top_k, top_p, rows, shift,
                VOCAB=vocab, BY_WEIGHT=stage == 1, FIRST=SHIFTS[0], BINS=BINS, num_warps=8,
            )  # fmt: skip
            before = shift
    _weigh_tiles[(tiles, MAX_ROWS)](
        logits, head.peak, scratch.threshold, scratch.tile_weight, temperature, rows,
        VOCAB=vocab, BITS=bits, TILE=TILE, num_warps=4,
    )  # fmt: skip
    _draw[(MAX_ROWS,)](
        logits, head.peak, scratch.threshold, scratch.tile_weight, temperature, settings.seed, cursor, rows, drafted,
        None if tree is None else tree.depths, out.token, out.probability, out.draft_probability,
        VOCAB=vocab, TILES=tiles, TILES_BLOCK=1 << (tiles - 1).bit_length(), BITS=bits, TILE=TILE,
        TREE=tree is not None, DRAFTED_STRIDE=drafted.stride(0), num_warps=8,
    )  # fmt: skip
