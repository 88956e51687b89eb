"""The head of a few rows against its definition, in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from engine.kernels.decode.products.head import HeadOutput, capped_logits, head_rows, pick_rows
from engine.kernels.decode.tiling.tiles import Tiles
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.plain import PlainWeight
from engine.kernels.weights.weight import Weight
from tests.kernels.tensors import FP32_AND_BF16, noise

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

TILES = Tiles(16, 32)


def run(hidden: Tensor, embedding: Weight, softcap: float | None, max_rows: int = 16, keep: bool = True) -> HeadOutput:
    out = HeadOutput.allocate(embedding.shape[0], TILES, torch.device("cpu"), keep)
    head_rows(hidden, embedding, softcap, out, TILES, max_rows)
    pick_rows(out, max_rows=max_rows)
    return out


@FP32_AND_BF16
@pytest.mark.parametrize("softcap", [30.0, None])
@pytest.mark.parametrize(("vocab", "size"), [(101, 72), (128, 64), (17, 40)])
@pytest.mark.parametrize("kind", [PlainWeight, Int8Weight.of])
def test_logits_argmax_and_probability(
    vocab: int, size: int, softcap: float | None, kind: Callable[[Tensor], Weight], dtype: torch.dtype
) -> None:
    hidden, embedding = noise(16, size).to(dtype), kind(noise(vocab, size, seed=1).to(dtype))
    out = run(hidden, embedding, softcap)
    expected = capped_logits(hidden.float(), PlainWeight(embedding.restored()), softcap)
    assert out.logits is not None
    torch.testing.assert_close(out.logits, expected, atol=3e-5, rtol=1e-5)
    assert torch.equal(out.token, out.logits.argmax(-1))
    torch.testing.assert_close(out.probability, expected.softmax(-1).amax(-1), atol=1e-5, rtol=1e-4)
    assert torch.equal(out.peak, out.logits.amax(-1))


def test_of_equal_logits_the_lower_token_wins() -> None:
    embedding = noise(101, 40, seed=1)
    embedding[[3, 5, 60, 99]] = 4 * noise(40)
    out = run(noise(1, 40).expand(16, -1).contiguous(), PlainWeight(embedding), 30.0)
    assert out.token.tolist() == [3] * 16


def test_a_head_that_keeps_no_logits_picks_the_same() -> None:
    hidden, embedding = noise(16, 40), PlainWeight(noise(101, 40, seed=1))
    with_logits, without = run(hidden, embedding, 30.0), run(hidden, embedding, 30.0, keep=False)
    assert without.logits is None
    assert torch.equal(with_logits.token, without.token) and torch.equal(with_logits.probability, without.probability)


@FP32_AND_BF16
@pytest.mark.usefixtures("ordered_sums")
@pytest.mark.parametrize("max_rows", [1, 6])
def test_a_row_has_the_same_bits_at_every_width(max_rows: int, dtype: torch.dtype) -> None:
    hidden, embedding = noise(16, 72).to(dtype), PlainWeight(noise(50, 72, seed=1).to(dtype))
    whole, few = run(hidden, embedding, 30.0), run(hidden, embedding, 30.0, max_rows)
    assert whole.logits is not None and few.logits is not None
    assert torch.equal(few.logits[:max_rows], whole.logits[:max_rows]) and (few.logits[max_rows:] == 0).all()
    assert torch.equal(few.probability[:max_rows], whole.probability[:max_rows])
    assert (few.token[max_rows:] == 0).all()


def test_rows_that_are_no_numbers_pick_a_token_of_the_vocabulary() -> None:
    """Its row of the embedding is read next, which must not end the process: the host finds out by the probability."""
    out = run(torch.full((16, 40), torch.nan), PlainWeight(noise(101, 40)), 30.0)
    assert ((out.token >= 0) & (out.token < 101)).all() and out.probability.isnan().all()
