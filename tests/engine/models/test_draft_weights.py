"""A drafter that reads its weights in 8 bits drafts as one whose weights were rounded so."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn

from engine.kernels.toolchain.jit import INTERPRETED, MAX_ROWS
from engine.kernels.weights.int8 import Int8Weight
from engine.kv_cache.cache import Cache
from engine.models.dflash.draft_pass import DFlashDraftPass
from engine.models.dflash.modules import DFlashDrafter
from engine.models.dflash.weights import DraftWeights
from engine.models.drafter import DraftBinding, RoundRows
from engine.models.gemma4.modules import Gemma4
from tests.engine.conftest import CPU, TinyPair
from tests.engine.decoding.pairs import DRAFT_TILES

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

CONTEXT, INGESTED, BLOCK = 64, 11, 7


def rounded_drafter(drafter: DFlashDrafter) -> DFlashDrafter:
    """A copy, every product of which has the weights that 8 bits leave."""
    copy = deepcopy(drafter)
    for module in copy.modules():
        if isinstance(module, nn.Linear):
            module.weight = nn.Parameter(Int8Weight.of(module.weight).restored(), requires_grad=False)
    return copy


def hidden_states(drafter: DFlashDrafter, target: Gemma4, embedding: Int8Weight | None) -> torch.Tensor:
    """Of a block of 7 behind 11 positions that it was told of."""
    cache = Cache(drafter.config.layers, CONTEXT, MAX_ROWS, torch.float32, CPU)
    generator = torch.Generator().manual_seed(3)
    width = len(drafter.config.target_layer_ids) * drafter.config.hidden_size
    features = torch.randn(MAX_ROWS, width, generator=generator)
    where = RoundRows(*(torch.tensor([number], dtype=torch.int32) for number in (INGESTED, BLOCK, 0, INGESTED)))
    tokens = torch.zeros(MAX_ROWS, dtype=torch.int64)
    rows = DFlashDraftPass(drafter, target, cache, DraftBinding(features, tokens, where, DRAFT_TILES, embedding))
    rows.ingest()
    rows.draft(MAX_ROWS - 1)
    return rows._buffers.normed[:BLOCK].clone()


@torch.inference_mode()
def test_8_bits_are_the_only_difference(dense_pair: TinyPair) -> None:
    target, rounded = deepcopy(dense_pair.target), rounded_drafter(dense_pair.drafter)
    copy = Int8Weight.of(target.head)
    in_8_bits = hidden_states(deepcopy(dense_pair.drafter), target, copy)
    torch.testing.assert_close(in_8_bits, hidden_states(rounded, target, None), atol=1e-4, rtol=1e-4)
    whole = hidden_states(deepcopy(dense_pair.drafter), target, None)
    assert not torch.allclose(in_8_bits, whole, atol=1e-4, rtol=1e-4)


def test_a_copy_is_half_of_what_bf16_takes(dense_pair: TinyPair) -> None:
    drafter = deepcopy(dense_pair.drafter).bfloat16()
    whole, copy = DraftWeights.of(drafter, in_8_bits=False), DraftWeights.of(drafter, in_8_bits=True)
    assert 0.5 < copy.nbytes / whole.nbytes < 0.55  # four bytes for the scale of each row come on top
