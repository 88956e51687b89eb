"""Pairs of candidates as kernels score them, against their definition, in Triton's interpreter."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.kernels.decode.products.head import HeadOutput, head_rows
from engine.kernels.decode.tiling.tiles import Tiles
from engine.kernels.round.choices import Candidates, DraftChoices, pick_candidates, reference_candidates
from engine.kernels.round.lattice import Tables, choose_edges, reference_edges
from engine.kernels.toolchain.jit import INTERPRETED, MAX_ROWS
from engine.kernels.weights.plain import PlainWeight
from tests.kernels.tensors import CPU, noise

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

TARGETS, ANCHOR, TILES = 300, 41, Tiles(columns=32, depth=64)


@pytest.mark.parametrize(
    ("count", "drafted", "rank", "weighed", "bounded"),
    [(3, 300, 32, "by position", True), (7, 90, 24, "no", False), (2, 90, 48, "by pair", False)],
)
def test_choices_behind_each_candidate_are_those_of_the_definition(
    count: int, drafted: int, rank: int, weighed: str, bounded: bool
) -> None:
    """Also where tokens are alike to the last bit: there the lowest goes first, on the host as in kernels."""
    embedding, rows = noise(drafted, 40, seed=1), noise(MAX_ROWS, 40)
    embedding[30:60] = embedding[:30]
    ids = None if drafted == TARGETS else torch.arange(drafted) * 3 + 1
    after = noise(drafted, rank, seed=3) / rank**0.5
    after[30:60] = after[:30]
    shape = {"no": None, "by position": (count, rank), "by pair": (count, 16, rank)}[weighed]
    tables = Tables(noise(TARGETS, rank, seed=2), after, None if shape is None else noise(*shape, seed=4))
    out = replace(HeadOutput.allocate(drafted, TILES, CPU), ids=ids)
    head_rows(rows, PlainWeight(embedding), None, out, TILES)
    assert out.logits is not None
    expected, found = reference_candidates(out.logits[:count], rest=True), Candidates.allocate(count, CPU, rest=True)
    pick_candidates(out, found, TILES)
    assert torch.equal(found.tokens, expected.tokens) and torch.equal(found.logits, expected.logits)
    assert found.rest is not None and expected.rest is not None
    shares = [(each.rest - expected.logits[:, 0]).exp() for each in (found, expected)]  # type: ignore[operator]
    torch.testing.assert_close(*shares, atol=3e-6, rtol=1e-4)
    assert (found.logits.diff() == 0).any()

    edges, block = reference_edges(expected, tables, ANCHOR, ids, bounded), torch.tensor([ANCHOR, 0])
    lattice = edges.lattice()
    for by in (tables, edges.scores):
        choices = DraftChoices.allocate(CPU, conditioned=True)
        choose_edges(found, by, block, choices, ids, bounded)
        assert choices.order is not None and torch.equal(choices.tokens[:count], edges.tokens)
        places = choices.order[:count, :, None] >> torch.arange(0, 16, 4) & 15
        assert places.tolist() == lattice.order
        chances = torch.tensor(lattice.behind)
        torch.testing.assert_close(choices.probabilities[:count], chances, atol=1e-6, rtol=1e-4)
        assert not choices.order[count:].any()
