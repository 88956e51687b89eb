"""What an assistant takes from a round: its definitions, and kernels that equal them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.kernels.decode.attention.attend_rows import AttendScratch, attend_one_query
from engine.kernels.decode.attention.rope import norm_rope_queries
from engine.kernels.reference.attention import reference_attention
from engine.kernels.reference.norm import rms_norm
from engine.kernels.reference.rope import apply_rope, inverse_frequencies, rope_table
from engine.kernels.round.last_row import begin_draft, gather_window, keep_last, reference_keep_last, reference_window
from engine.kernels.toolchain.jit import INTERPRETED
from engine.layer_config import AttentionConfig, RopeConfig
from tests.kernels.tensors import number

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

WINDOW, CAPACITY, HEAD_DIM, HEADS, KV_HEADS = 20, 37, 16, 4, 2
LAYER = AttentionConfig("sliding_attention", HEADS, KV_HEADS, HEAD_DIM, RopeConfig(1e4, HEAD_DIM), 1.0, WINDOW)


@pytest.mark.parametrize("rows", [0, 1, 7, 16])
def test_the_newest_row_is_kept(rows: int) -> None:
    features = torch.randn(16, 24)
    kept, expected = torch.zeros(1, 24), torch.zeros(1, 24)
    reference_keep_last(features, rows, expected)
    keep_last(features, number(rows), kept)
    assert torch.equal(kept, expected)
    hidden, last = torch.zeros(16, 24), number(0)
    begin_draft(kept, number(9), hidden, last)
    assert torch.equal(hidden[:1], kept) and not hidden[1:].any() and int(last) == 8


@pytest.mark.parametrize("cursor", [1, WINDOW - 2, WINDOW - 1, WINDOW, CAPACITY, 3 * CAPACITY + 5])
def test_one_query_sees_its_window_of_a_ring(cursor: int) -> None:
    """From a projection to the mix: norm, turn, the window in order, attention."""
    generator = torch.Generator().manual_seed(cursor)
    k, v = (torch.randn(KV_HEADS, CAPACITY, HEAD_DIM, generator=generator) for _ in range(2))
    queries, norm = torch.randn(16, HEADS * HEAD_DIM, generator=generator), torch.rand(HEAD_DIM, generator=generator)
    frequencies = inverse_frequencies(LAYER.rope, k.device)
    slots = reference_window(cursor, WINDOW, CAPACITY)
    heads = rms_norm(queries[0].view(1, HEADS, HEAD_DIM), norm, 1e-6)
    q = apply_rope(heads, rope_table(torch.tensor([cursor]), frequencies))
    expected = reference_attention(q, k[:, slots], v[:, slots], causal=True, window=None, scale=1.0)

    in_order, last, out = [torch.zeros(KV_HEADS, WINDOW - 1, HEAD_DIM) for _ in range(2)], number(0), queries * 0
    gather_window(k, v, number(cursor), WINDOW, *in_order, last)
    assert int(last) == len(slots) - 1 and torch.equal(in_order[0][:, : len(slots)], k[:, slots])
    norm_rope_queries(queries, norm, 1e-6, frequencies, number(cursor), number(1), HEADS)
    scratch = AttendScratch([replace(LAYER, window=None)], [WINDOW - 1], k.device)
    attend_one_query(queries, *in_order, last, number(1), LAYER, out, scratch)
    torch.testing.assert_close(out[:1], expected, atol=1e-5, rtol=1e-5)
    assert not out[1:].any()
