"""The target's training module against an independent reference, transformers' Gemma 4."""

from __future__ import annotations

import pytest
import torch

from engine.lab.demo.model.shapes import TINY_TARGET
from engine.lab.demo.model.target_model import TrainableTarget
from engine.lab.demo.model.train_target import PackedAttention
from engine.lab.training.rows import TextRows
from tests.proofs.engine.lab.packed_rows import FIRST_TEXT_ID, packed_rows


def model() -> TrainableTarget:
    generator = torch.Generator().manual_seed(1)
    target = TrainableTarget(TINY_TARGET)
    target.initialise(generator)
    for parameter in target.parameters():
        if parameter.dim() == 1:  # constants of 1 would hide a weight that is applied nowhere
            parameter.data *= 1 + 0.3 * torch.rand(parameter.shape, generator=generator)
    return target.eval()


def test_target_equals_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    target = model()
    config = transformers.Gemma4Config(**TINY_TARGET.to_config())
    config._attn_implementation = "eager"
    reference = transformers.Gemma4ForConditionalGeneration(config).float().eval()
    weights = {f"model.language_model.{name}": tensor for name, tensor in target.state_dict().items()}
    missing, unexpected = reference.load_state_dict(weights, strict=False)
    assert missing == ["lm_head.weight"] and unexpected == []
    reference.tie_weights()

    ids = torch.randint(FIRST_TEXT_ID, TINY_TARGET.vocab_size, (2, 150), generator=torch.Generator().manual_seed(2))
    positions = torch.arange(150).expand(2, -1)
    rows = TextRows(ids, positions, torch.zeros_like(ids), torch.ones(ids.shape))
    with torch.no_grad():
        output = target(ids, positions, PackedAttention(TINY_TARGET, rows), taps=(1, 2))
        expected = reference(input_ids=ids, output_hidden_states=True)
    torch.testing.assert_close(target.logits(output.final), expected.logits, atol=2e-4, rtol=0)
    first, second = output.tapped.chunk(2, dim=-1)
    torch.testing.assert_close(first, expected.hidden_states[2], atol=2e-4, rtol=0)
    torch.testing.assert_close(second, expected.hidden_states[3], atol=2e-4, rtol=0)


def test_packed_documents_are_isolated() -> None:
    target = model()
    rows = packed_rows(1)
    with torch.no_grad():
        packed = target(rows.ids, rows.positions, PackedAttention(TINY_TARGET, rows)).final
        begin = int((rows.positions[0] == 0).nonzero()[1])
        length = int((rows.documents[0] == 1).sum())
        alone = TextRows(
            *(field[:, begin : begin + length] for field in (rows.ids, rows.positions, rows.documents, rows.weights))
        )
        expected = target(alone.ids, alone.positions, PackedAttention(TINY_TARGET, alone)).final
    torch.testing.assert_close(packed[:, begin : begin + length], expected, atol=1e-5, rtol=0)
