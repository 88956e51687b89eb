"""The training modules against independent references: transformers' Gemma 4, and inference with caches."""

from __future__ import annotations

import random

import pytest
import torch

from engine.demo.caches import DrafterCache
from engine.demo.conversation import Encoded
from engine.demo.drafter_model import DrafterModel
from engine.demo.drafting import BlockAttention, draw_blocks
from engine.demo.generation import Sampler, generate, speculate
from engine.demo.rows import RowDataset, Rows, batches
from engine.demo.shapes import STOP_IDS, TINY_DRAFTER, TINY_TARGET
from engine.demo.target_model import TargetModel
from engine.demo.train_target import PackedAttention

CPU = torch.device("cpu")
FIRST_TEXT_ID = 107


def random_source(rng: random.Random) -> Encoded:
    length = rng.randrange(30, 200)
    ids = [rng.randrange(FIRST_TEXT_ID, TINY_TARGET.vocab_size) for _ in range(length)]
    begin = rng.randrange(5, 20)
    return Encoded(ids, [0.0] * begin + [1.0] * (length - begin - 2) + [0.0] * 2)


def packed_rows(rows: int = 2, length: int = 256) -> Rows:
    return next(batches(RowDataset(random_source, "rows", rows, length), rows, 0, CPU))


def models() -> tuple[TargetModel, DrafterModel]:
    generator = torch.Generator().manual_seed(1)
    target, drafter = TargetModel(TINY_TARGET), DrafterModel(TINY_DRAFTER)
    target.initialise(generator)
    drafter.initialise(generator)
    for model in (target, drafter):
        for parameter in model.parameters():
            if parameter.dim() == 1:  # constants of 1 would hide a weight that is applied nowhere
                parameter.data *= 1 + 0.3 * torch.rand(parameter.shape, generator=generator)
    return target.eval(), drafter.eval()


def test_target_equals_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    target, _ = models()
    config = transformers.Gemma4Config(**TINY_TARGET.to_config())
    config._attn_implementation = "eager"
    reference = transformers.Gemma4ForConditionalGeneration(config).float().eval()
    weights = {f"model.language_model.{name}": tensor for name, tensor in target.state_dict().items()}
    missing, unexpected = reference.load_state_dict(weights, strict=False)
    assert missing == ["lm_head.weight"] and unexpected == []
    reference.tie_weights()

    ids = torch.randint(FIRST_TEXT_ID, TINY_TARGET.vocab_size, (2, 150), generator=torch.Generator().manual_seed(2))
    positions = torch.arange(150).expand(2, -1)
    rows = Rows(ids, positions, torch.zeros_like(ids), torch.ones(ids.shape))
    with torch.no_grad():
        output = target(ids, positions, PackedAttention(TINY_TARGET, rows), taps=(1, 2))
        expected = reference(input_ids=ids, output_hidden_states=True)
    torch.testing.assert_close(target.logits(output.final), expected.logits, atol=2e-4, rtol=0)
    first, second = output.tapped.chunk(2, dim=-1)
    torch.testing.assert_close(first, expected.hidden_states[2], atol=2e-4, rtol=0)
    torch.testing.assert_close(second, expected.hidden_states[3], atol=2e-4, rtol=0)


def test_packed_documents_are_isolated() -> None:
    target, _ = models()
    rows = packed_rows(1)
    with torch.no_grad():
        packed = target(rows.ids, rows.positions, PackedAttention(TINY_TARGET, rows)).final
        begin = int((rows.positions[0] == 0).nonzero()[1])
        length = int((rows.documents[0] == 1).sum())
        alone = Rows(
            *(field[:, begin : begin + length] for field in (rows.ids, rows.positions, rows.documents, rows.weights))
        )
        expected = target(alone.ids, alone.positions, PackedAttention(TINY_TARGET, alone)).final
    torch.testing.assert_close(packed[:, begin : begin + length], expected, atol=1e-5, rtol=0)


def test_a_row_depends_on_seed_and_index_only() -> None:
    dataset = RowDataset(random_source, "seed", 4, 128)
    assert all(torch.equal(a, b) for a, b in zip(dataset[3], RowDataset(random_source, "seed", 9, 128)[3], strict=True))
    assert not torch.equal(dataset[0][0], dataset[1][0])


def test_blocks_predict_the_token_at_their_own_position() -> None:
    rows = packed_rows()
    blocks = draw_blocks(rows, 32, 16, torch.Generator().manual_seed(0))
    for row in range(2):
        assert len(set(blocks.anchors[row].tolist())) == 32
        for number, anchor in enumerate(blocks.anchors[row].tolist()):
            labels = blocks.labels[row].view(32, 16)[number]
            weights = blocks.weights[row].view(32, 16)[number]
            inputs = blocks.inputs[row].view(32, 16)[number]
            used = int((weights > 0).sum())
            assert rows.supervised[row, anchor] and weights[0] == 0 and used >= 1
            assert inputs[0] == rows.ids[row, anchor] and (inputs[1:] == 4).all()
            assert torch.equal(labels[1 : used + 1], rows.ids[row, anchor + 1 : anchor + used + 1])
            assert rows.supervised[row, anchor : anchor + used + 1].all()
            end = anchor + used + 1
            assert used == 15 or end == 256 or not rows.supervised[row, end] or rows.positions[row, end] == 0


def test_drafter_training_equals_cached_inference() -> None:
    """The mask of the training step against the round loop: context appended piece by piece, block by block."""
    target, drafter = models()
    rows = packed_rows(1)
    blocks = draw_blocks(rows, 12, 16, torch.Generator().manual_seed(3))
    with torch.no_grad():
        features = target(
            rows.ids, rows.positions, PackedAttention(TINY_TARGET, rows), TINY_DRAFTER.tapped_layers
        ).tapped
        trained = drafter(
            drafter.context(features),
            rows.positions,
            target.embed(blocks.inputs),
            blocks.positions,
            BlockAttention(TINY_DRAFTER, rows, blocks),
        ).view(12, 16, -1)
        for number in blocks.anchors[0].argsort().tolist():
            anchor = int(blocks.anchors[0, number])
            begin = anchor - int(rows.positions[0, anchor])
            cache = DrafterCache(TINY_DRAFTER, 1, 512, CPU)
            seen = anchor - begin
            pieces = sorted({seen, *random.Random(number).sample(range(1, seen), min(5, seen - 1))})
            done = 0
            # Each round also feeds rows beyond the committed ones, as a rejected draft does: they must not matter.
            for end in pieces:
                beyond = min(end + 7, len(features[0]) - begin)
                block = slice(number * 16, number * 16 + 16)
                positions = torch.arange(end, end + 16)[None]
                inputs = blocks.inputs[:, block]
                context = torch.arange(done, beyond)[None]
                out = drafter(
                    drafter.context(features[:, begin + done : begin + beyond]),
                    context,
                    target.embed(inputs),
                    positions,
                    cache.round(context, positions),
                )
                done = end
            torch.testing.assert_close(out[0], trained[number], atol=1e-4, rtol=0)


def test_speculation_changes_nothing() -> None:
    target, drafter = models()
    rng = random.Random(5)
    prompts = [[rng.randrange(FIRST_TEXT_ID, 1024) for _ in range(rng.randrange(3, 40))] for _ in range(6)]
    plain = generate(target, prompts, 100, Sampler(0, 0, CPU))
    for block in (2, 8, 16):
        fast = speculate(target, drafter, prompts, 100, Sampler(0, 0, CPU), block)
        assert [answer.ids for answer in fast] == [answer.ids for answer in plain]
    assert all(answer.ended or len(answer.ids) == 100 for answer in plain)
    assert all(answer.ended == (answer.ids[-1] in STOP_IDS) for answer in plain)
