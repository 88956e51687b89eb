"""Sampling on the device draws the tokens that ``engine/sampling/sampling.py`` defines."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from engine.kernels.decode.products.head import HeadOutput
from engine.kernels.decode.tiling.tiles import Tiles
from engine.kernels.round import sample as kernels
from engine.kernels.round.sample import SampledRows, SampleScratch, SamplingSettings, sample_rows
from engine.kernels.round.tree_rows import TreeRows
from engine.sampling.sampling import sample
from tests.kernels.drawn_trees import drawn_tree, posed
from tests.kernels.tensors import CPU


def head_of(logits: Tensor) -> HeadOutput:
    """What the head would leave of these logits [n, vocab], n at most 16; the other rows hold no numbers."""
    out = HeadOutput.allocate(logits.shape[1], Tiles(columns=64, depth=64), CPU)
    assert out.logits is not None
    out.logits.fill_(float("nan"))
    out.logits[: len(logits)] = logits
    out.peak[: len(logits)] = logits.amax(dim=-1)
    return out


def draw(
    logits: Tensor,
    position: int,
    drafted: list[int],
    *,
    temperature: float,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    tree: TreeRows | None = None,
) -> SampledRows:
    settings = SamplingSettings.allocate(CPU)
    settings.temperature[0], settings.top_k[0], settings.top_p[0], settings.seed[0] = temperature, top_k, top_p, seed
    out = SampledRows.allocate(CPU)
    asked = torch.zeros(16, dtype=torch.int64)
    asked[: len(drafted)] = torch.tensor(drafted)
    cursor, rows = torch.tensor([position - 1], dtype=torch.int32), torch.tensor([len(logits)], dtype=torch.int32)
    sample_rows(head_of(logits), settings, cursor, rows, asked, out, SampleScratch(logits.shape[1], CPU), tree)
    return out


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (7, 1.0), (0, 0.6), (64, 0.95), (10**6, 0.5), (1, 0.1)])
@pytest.mark.parametrize(("rows", "vocab"), [(1, 300), (4, 1100)])
def test_draws_the_tokens_of_the_definition(rows: int, vocab: int, top_k: int, top_p: float) -> None:
    """Flat and peaked rows, ties in bf16 steps, negative logits and both zeros, large positions and seeds."""
    rng = random.Random(f"{top_k} {top_p} {vocab}")
    for spread in (0.3, 6.0):
        logits = spread * torch.randn(rows, vocab, generator=torch.Generator().manual_seed(vocab))
        logits = logits.bfloat16().float()
        logits[0, :9] = torch.tensor([0.0, -0.0, 0.0, -0.0, 0.0, -0.0, -3.0, -3.0, 3.0])
        position, drafted = rng.randrange(2**20), [rng.randrange(vocab) for _ in range(rows)]
        noise = {
            "temperature": rng.choice([0.3, 0.8, 2.0]),
            "top_k": top_k,
            "top_p": top_p,
            "seed": rng.randrange(2**63),
        }
        expected = sample(logits, position, drafted, **noise)  # type: ignore[arg-type]
        actual = draw(logits, position, drafted, **noise)  # type: ignore[arg-type]
        assert actual.token[:rows].tolist() == expected.ids
        assert actual.probability[:rows].tolist() == pytest.approx(expected.probabilities, abs=1e-6)
        assert actual.draft_probability[:rows].tolist() == pytest.approx(expected.draft_probabilities, abs=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_rows_of_a_tree_are_sampled_at_their_depths(seed: int) -> None:
    """With their positions' random numbers, and asked for the draft that their depth is followed by."""
    rng = random.Random(seed)
    tree = drawn_tree(rng, 16)
    logits = torch.randn(len(tree) + 1, 300, generator=torch.Generator().manual_seed(seed))
    drafted = [rng.randrange(300) for _ in range(16)]
    noise = {"temperature": 0.8, "top_k": 50, "top_p": 0.9, "seed": seed}
    rows, _ = posed(tree)
    actual = draw(logits, 1000, drafted, tree=rows, **noise)  # type: ignore[arg-type]
    for row, depth in enumerate([0, *(node.depth for node in tree)]):
        expected = sample(logits[row : row + 1], 1000 + depth, drafted[depth:][:1], **noise)  # type: ignore[arg-type]
        assert [int(actual.token[row])] == expected.ids
        assert actual.probability[row].item() == pytest.approx(expected.probabilities[0], abs=1e-6)
        assert actual.draft_probability[row].item() == pytest.approx(expected.draft_probabilities[0], abs=1e-6)


def test_draws_do_not_depend_on_how_the_vocabulary_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = torch.randn(4, 1000, generator=torch.Generator().manual_seed(6))
    noise = {"temperature": 1.3, "top_k": 300, "top_p": 0.9, "seed": 5}
    whole = draw(logits, 77, [], **noise)  # type: ignore[arg-type]
    monkeypatch.setattr(kernels, "TILE", 128)
    cut = draw(logits, 77, [], **noise)  # type: ignore[arg-type]
    assert torch.equal(whole.token, cut.token) and torch.equal(whole.probability, cut.probability)


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (7, 0.5)])
def test_rows_that_are_no_numbers_draw_a_token_of_the_vocabulary(top_k: int, top_p: float) -> None:
    drawn = draw(torch.full((2, 300), torch.nan), 9, [1, 2], temperature=1.0, top_k=top_k, top_p=top_p)
    assert ((drawn.token >= 0) & (drawn.token < 300)).all()
