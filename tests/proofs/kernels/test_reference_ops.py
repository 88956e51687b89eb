"""The operations' reference definitions against their formulas, spelled out the slow way."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.kernels.decode.products.head import capped_logits
from engine.kernels.reference.attention import AttentionFunction, reference_attention, sdpa_attention, visible_keys
from engine.kernels.reference.moe import experts, route
from engine.kernels.reference.norm import rms_norm, rms_norm_rounded_first
from engine.kernels.reference.rope import apply_rope, inverse_frequencies, rope_table
from engine.kernels.weights.plain import PlainWeight
from engine.layer_config import RopeConfig
from tests.kernels.tensors import CPU, noise

# --- rotary embedding


def test_proportional_rope_turns_64_of_256_pairs() -> None:
    frequencies = inverse_frequencies(RopeConfig(1e6, 512, 0.25), CPU)
    assert frequencies.shape == (256,)
    assert frequencies[0] == 1 and frequencies[63].item() == pytest.approx(1e6 ** (-126 / 512), rel=1e-6)
    assert round(frequencies[63].item(), 5) == 0.03338
    assert (frequencies[:64] > 0).all() and (frequencies[64:] == 0).all()


def test_default_rope_frequencies() -> None:
    frequencies = inverse_frequencies(RopeConfig(1e4, 256), CPU)
    expected = torch.tensor([1e4 ** (-2 * i / 256) for i in range(128)])
    torch.testing.assert_close(frequencies, expected, rtol=1e-6, atol=0)


def test_rope_turns_dimension_i_with_dimension_i_plus_half() -> None:
    x, positions = noise(3, 2, 8), [0, 5, 1000]
    frequencies = inverse_frequencies(RopeConfig(1e4, 8, 0.5), CPU)
    turned = apply_rope(x, rope_table(torch.tensor(positions), frequencies))
    for row, position in enumerate(positions):
        for head in range(2):
            for i in range(4):
                angle = position * 1e4 ** (-2 * i / 8) if i < 2 else 0.0
                a, b = x[row, head, i].item(), x[row, head, i + 4].item()
                assert turned[row, head, i].item() == pytest.approx(a * math.cos(angle) - b * math.sin(angle), abs=1e-4)
                assert turned[row, head, i + 4].item() == pytest.approx(
                    b * math.cos(angle) + a * math.sin(angle), abs=1e-4
                )
    assert torch.equal(turned[0], x[0]), "position 0 is the identity"


def test_rope_tables_do_not_depend_on_how_positions_are_cut() -> None:
    frequencies = inverse_frequencies(RopeConfig(1e4, 16), CPU)
    whole = rope_table(torch.arange(4000, 4016), frequencies)
    for row in range(16):
        one = rope_table(torch.tensor([4000 + row]), frequencies)
        assert torch.equal(whole[0][row], one[0][0]) and torch.equal(whole[1][row], one[1][0])


# --- attention


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


@pytest.mark.parametrize("attention", [reference_attention, sdpa_attention])
@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (4, 2), (16, 1)])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 1, 4])
def test_attention_head_by_head(
    heads: int, kv_heads: int, causal: bool, window: int | None, attention: AttentionFunction
) -> None:
    q, k, v = noise(5, heads, 8), noise(kv_heads, 11, 8, seed=1), noise(kv_heads, 11, 8, seed=2)
    mixed = attention(q, k, v, causal=causal, window=window, scale=0.5).view(5, heads, 8)
    visible = visible_keys(torch.arange(6, 11), torch.arange(11), causal=causal, window=window)
    for head in range(heads):
        group = head // (heads // kv_heads)
        for row in range(5):
            seen = visible[row].nonzero().flatten().tolist()
            weights = [math.exp(0.5 * float(q[row, head] @ k[group, key])) for key in seen]
            expected = sum(w * v[group, key] for w, key in zip(weights, seen, strict=True)) / sum(weights)
            torch.testing.assert_close(mixed[row, head], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("head_dim", [64, 128, 256, 512])
@pytest.mark.parametrize("rows", [1, 16, 100])
def test_sdpa_equals_the_reference_at_the_published_head_sizes(rows: int, head_dim: int) -> None:
    q, k, v = noise(rows, 16, head_dim), noise(2, 300, head_dim, seed=1), noise(2, 300, head_dim, seed=2)
    for causal, window in ((True, None), (True, 64), (False, None), (False, 250)):
        how = {"causal": causal, "window": window, "scale": head_dim**-0.5}
        torch.testing.assert_close(
            sdpa_attention(q, k, v, **how), reference_attention(q, k, v, **how), atol=1e-5, rtol=0
        )


# --- norms


def exact_rms(x: Tensor, eps: float) -> Tensor:
    return x.double() / (x.double().pow(2).mean(dim=-1, keepdim=True) + eps).sqrt()


def test_norms_in_fp32() -> None:
    x, weight = noise(4, 64), 1 + 0.3 * noise(64, seed=1)
    expected = (exact_rms(x, 1e-6) * weight.double()).float()
    torch.testing.assert_close(rms_norm(x, weight, 1e-6), expected, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(rms_norm_rounded_first(x, weight, 1e-6), expected, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(rms_norm(x, None, 1e-6), exact_rms(x, 1e-6).float(), atol=1e-6, rtol=1e-6)


def test_orders_of_rounding_in_bf16() -> None:
    """Gemma multiplies by the weight before it rounds, Qwen after; the two differ, so each must be where it belongs."""
    x, weight = noise(64, 64).bfloat16(), (1 + 0.3 * noise(64, seed=1)).bfloat16()
    normed = exact_rms(x, 1e-6).float()
    gemma, qwen = (normed * weight.float()).bfloat16(), normed.bfloat16() * weight
    assert not torch.equal(gemma, qwen)
    assert rms_norm(x, weight, 1e-6).dtype is torch.bfloat16
    assert torch.equal(rms_norm(x, weight, 1e-6), gemma)
    assert torch.equal(rms_norm_rounded_first(x, weight, 1e-6), qwen)


# --- experts


def test_route_is_a_softmax_over_the_chosen_times_their_scale() -> None:
    scores, scale = noise(6, 16), 1 + 0.2 * noise(16, seed=1)
    weights, ids = route(scores, 4, scale)
    for row in range(6):
        best = sorted(range(16), key=lambda e: -scores[row, e].item())[:4]
        assert ids[row].tolist() == best
        total = sum(math.exp(scores[row, e].item()) for e in best)
        expected = [math.exp(scores[row, e].item()) / total * scale[e].item() for e in best]
        assert weights[row].tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 16, 70])
def test_experts_row_by_row(rows: int) -> None:
    hidden, inter = 32, 16
    gate_up, down = noise(16, 2 * inter, hidden, seed=1), noise(16, hidden, inter, seed=2)
    x = noise(rows, hidden)
    weights, ids = route(noise(rows, 16, seed=3), 4, 1 + 0.2 * noise(16, seed=4))
    expected = torch.zeros(rows, hidden)
    for row in range(rows):
        for weight, expert in zip(weights[row], ids[row], strict=True):
            gate, up = gate_up[expert, :inter] @ x[row], gate_up[expert, inter:] @ x[row]
            expected[row] += weight * (down[expert] @ (F.gelu(gate, approximate="tanh") * up))
    found = experts(x, weights, ids, PlainWeight(gate_up), PlainWeight(down))
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-5)


def test_all_rows_may_choose_the_same_expert() -> None:
    gate_up, down, x = noise(8, 16, 16, seed=1), noise(8, 16, 8, seed=2), noise(5, 16)
    same = experts(x, torch.ones(5, 1), torch.full((5, 1), 7), PlainWeight(gate_up), PlainWeight(down))
    gate, up = (x @ gate_up[7].T).chunk(2, dim=-1)
    torch.testing.assert_close(same, (F.gelu(gate, approximate="tanh") * up) @ down[7].T, atol=1e-4, rtol=1e-5)


# --- head


def test_softcap_bends_logits_and_keeps_their_order() -> None:
    hidden, embedding = 4 * noise(3, 16), 2 * noise(50, 16, seed=1)
    raw = hidden @ embedding.T
    capped = capped_logits(hidden, PlainWeight(embedding), 30.0)
    assert raw.abs().max() > 30 > capped.abs().max()
    torch.testing.assert_close(capped, 30 * torch.tanh(raw / 30), atol=1e-4, rtol=0)
    assert torch.equal(capped.argsort(dim=-1), raw.argsort(dim=-1))
    assert torch.equal(capped_logits(hidden, PlainWeight(embedding), None), F.linear(hidden, embedding))


def test_logits_are_capped_in_fp32() -> None:
    hidden, embedding = noise(3, 16).bfloat16(), noise(50, 16, seed=1).bfloat16()
    capped = capped_logits(hidden, PlainWeight(embedding), 30.0)
    assert capped.dtype is torch.float32
    assert torch.equal(capped, 30 * torch.tanh(F.linear(hidden, embedding).float() / 30))
