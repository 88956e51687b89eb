"""What no comparison with ``transformers`` shows of the operations' definitions: how they round, the published
frequencies, and that the two definitions of attention agree. ``tests/engine/models`` holds their formulas."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.kernels.decode.products.head import capped_logits
from engine.kernels.reference.attention import reference_attention, sdpa_attention, visible_keys
from engine.kernels.reference.norm import rms_norm, rms_norm_rounded_first
from engine.kernels.reference.rope import inverse_frequencies
from engine.kernels.weights.plain import PlainWeight
from engine.layer_config import RopeConfig
from tests.kernels.tensors import CPU, noise


def test_proportional_rope_turns_64_of_256_pairs() -> None:
    frequencies = inverse_frequencies(RopeConfig(1e6, 512, 0.25), CPU)
    assert frequencies.shape == (256,)
    assert frequencies[0] == 1 and frequencies[63].item() == pytest.approx(1e6 ** (-126 / 512), rel=1e-6)
    assert round(frequencies[63].item(), 5) == 0.03338
    assert (frequencies[:64] > 0).all() and (frequencies[64:] == 0).all()


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 1, 5, 16])
def test_visible_keys_by_brute_force(causal: bool, window: int | None) -> None:
    queries, keys = range(20, 36), range(3, 36)
    visible = visible_keys(torch.tensor(queries), torch.tensor(keys), causal=causal, window=window)
    for row, query in enumerate(queries):
        for column, key in enumerate(keys):
            expected = not (causal and key > query)
            if window is not None and abs(query - key) >= window:
                expected = False
            assert visible[row, column].item() is expected, (query, key)


@pytest.mark.parametrize("head_dim", [64, 128, 256, 512])
@pytest.mark.parametrize("rows", [1, 16, 100])
def test_sdpa_equals_the_reference_at_the_published_head_sizes(rows: int, head_dim: int) -> None:
    q, k, v = noise(rows, 16, head_dim), noise(2, 300, head_dim, seed=1), noise(2, 300, head_dim, seed=2)
    for causal, window in ((True, None), (True, 64), (False, None), (False, 250)):
        how = {"causal": causal, "window": window, "scale": head_dim**-0.5}
        torch.testing.assert_close(
            sdpa_attention(q, k, v, **how), reference_attention(q, k, v, **how), atol=1e-5, rtol=0
        )


def exact_rms(x: Tensor, eps: float) -> Tensor:
    return x.double() / (x.double().pow(2).mean(dim=-1, keepdim=True) + eps).sqrt()


def test_orders_of_rounding_in_bf16() -> None:
    """Gemma multiplies by the weight before it rounds, Qwen after; the two differ, so each must be where it belongs."""
    x, weight = noise(64, 64).bfloat16(), (1 + 0.3 * noise(64, seed=1)).bfloat16()
    normed = exact_rms(x, 1e-6).float()
    gemma, qwen = (normed * weight.float()).bfloat16(), normed.bfloat16() * weight
    assert not torch.equal(gemma, qwen)
    assert rms_norm(x, weight, 1e-6).dtype is torch.bfloat16
    assert torch.equal(rms_norm(x, weight, 1e-6), gemma)
    assert torch.equal(rms_norm_rounded_first(x, weight, 1e-6), qwen)


def test_logits_are_capped_in_fp32() -> None:
    hidden, embedding = noise(3, 16).bfloat16(), noise(50, 16, seed=1).bfloat16()
    capped = capped_logits(hidden, PlainWeight(embedding), 30.0)
    assert capped.dtype is torch.float32
    assert torch.equal(capped, 30 * torch.tanh(F.linear(hidden, embedding).float() / 30))
