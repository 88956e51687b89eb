"""The best four tokens of each row against their definition, in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.kernels.decode.products.head import HeadOutput, head_rows, pick_rows
from engine.kernels.decode.tiling.tiles import Tiles
from engine.kernels.round.choices import DraftChoices, pick_choices, reference_choices
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kernels.weights.plain import PlainWeight
from tests.kernels.tensors import CPU

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

TILES = Tiles(16, 32)


def picked(hidden: Tensor, embedding: Tensor) -> tuple[HeadOutput, DraftChoices]:
    """Checks as well that the first choice is what ``pick_rows`` picks, bit for bit."""
    out, choices = HeadOutput.allocate(len(embedding), TILES, CPU), DraftChoices.allocate(CPU)
    head_rows(hidden, PlainWeight(embedding), 30.0, out, TILES)
    pick_rows(out)
    alone = [numbers.clone() for numbers in (out.token, out.probability, out.peak)]
    for numbers in (out.token, out.probability, out.peak):
        numbers.zero_()
    pick_choices(out, choices, TILES)
    for numbers, expected in zip((out.token, out.probability, out.peak), alone, strict=True):
        assert torch.equal(numbers, expected)
    assert torch.equal(choices.tokens[:, 0], out.token)
    assert torch.equal(choices.probabilities[:, 0], out.probability)
    return out, choices


def check(out: HeadOutput, choices: DraftChoices) -> None:
    assert out.logits is not None
    tokens, probabilities = reference_choices(out.logits)
    assert torch.equal(choices.tokens, tokens)
    torch.testing.assert_close(choices.probabilities, probabilities, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("vocab", [4, 16, 40, 101, 300])
def test_they_equal_the_reference(vocab: int) -> None:
    """Vocabularies of fewer tiles than choices, and of a last tile that is not full."""
    noise = torch.Generator().manual_seed(vocab)
    check(*picked(torch.randn(16, 40, generator=noise), torch.randn(vocab, 40, generator=noise)))


@pytest.mark.parametrize(
    "best",
    [[100, 20, 21, 60], [17, 18, 19, 20, 21, 22], [5, 25, 45, 65, 85, 99], [30, 31, 33, 34, 35, 1]],
    ids=["over tiles", "in one tile", "in more tiles than choices", "two and two"],
)
def test_of_equal_logits_the_lower_tokens_win(best: list[int]) -> None:
    noise = torch.Generator().manual_seed(0)
    embedding, hidden = torch.randn(101, 40, generator=noise), torch.randn(1, 40, generator=noise)
    embedding[best] = 4 * hidden
    out, choices = picked(hidden.expand(16, -1).contiguous(), embedding)
    check(out, choices)
    assert choices.tokens.tolist() == [sorted(best)[:4]] * 16
    assert (choices.probabilities == choices.probabilities[0, 0]).all()


def test_rows_that_are_no_numbers_choose_tokens_of_the_vocabulary() -> None:
    out, choices = HeadOutput.allocate(101, TILES, CPU), DraftChoices.allocate(CPU)
    head_rows(torch.full((16, 40), torch.nan), PlainWeight(torch.ones(101, 40)), 30.0, out, TILES)
    pick_choices(out, choices, TILES)
    assert ((choices.tokens >= 0) & (choices.tokens < 101)).all()
