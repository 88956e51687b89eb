"""DSpark's corrections as kernels against their definition, in Triton's interpreter."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.kernels.decode.products.head import HeadOutput, head_rows
from engine.kernels.decode.tiling.tiles import Tiles
from engine.kernels.round.markov import MarkovWeights, markov, reference_markov
from engine.kernels.toolchain.jit import INTERPRETED, MAX_ROWS
from engine.kernels.weights.plain import PlainWeight
from tests.kernels.tensors import noise

HIDDEN, TARGETS, COUNT, ANCHOR = 64, 300, 6, 41
TILES = Tiles(columns=128, depth=64)


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")
@pytest.mark.parametrize(
    ("rank", "drafted", "gated", "confides"),
    [(32, 300, False, 0), (24, 200, False, 24), (48, 200, True, 0), (32, 300, True, 32)],
)
def test_drafts_are_those_of_the_definition(rank: int, drafted: int, gated: bool, confides: int) -> None:
    """Ranks that are no power of two, vocabularies that don't end with a tile, ids that are not the target's."""
    rows = noise(MAX_ROWS, HIDDEN)
    ids = torch.randperm(TARGETS, generator=torch.Generator().manual_seed(1))[:drafted].sort().values
    weights = MarkovWeights(
        before=noise(TARGETS, rank, seed=2),
        after=noise(drafted, rank, seed=3),
        gate=(noise(rank, HIDDEN + rank, seed=4) / 4, noise(rank, seed=5)) if gated else None,
        confidence=None if rank == 48 else (noise(1, HIDDEN + confides, seed=6) / 8, noise(1, seed=7)),
    )
    out = HeadOutput.allocate(drafted, TILES, torch.device("cpu"))
    out = replace(out, ids=None if drafted == TARGETS else ids)
    head_rows(rows, PlainWeight(noise(drafted, HIDDEN, seed=8)), None, out, TILES)
    assert out.logits is not None
    found, chances = reference_markov(out.logits[:COUNT], rows[:COUNT], weights, ANCHOR, out.ids)
    apart = out.logits[:COUNT].argmax(-1)
    assert (apart if drafted == TARGETS else ids[apart]).tolist() != found.tolist(), "nothing depends on tokens before"
    markov(out, rows, weights, torch.tensor([ANCHOR, 0]), COUNT, TILES)
    assert out.token[:COUNT].tolist() == found.tolist()
    torch.testing.assert_close(out.probability[:COUNT], chances, atol=1e-5, rtol=1e-4)
