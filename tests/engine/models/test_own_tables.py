"""A drafter with tables of its own: it drafts with its own head, among its own tokens, from its own embedding."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from engine.errors import WeightsFailure
from engine.kernels.round.choices import DraftChoices
from engine.kernels.toolchain.jit import INTERPRETED, MAX_ROWS
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.kinds import bytes_of
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_drafter
from engine.loading.memory_plan import plan_memory
from engine.models.dflash.draft_pass import DFlashDraftPass
from engine.models.dflash.modules import DFlashDrafter
from engine.models.dflash.weights import hold_in_8_bits
from engine.models.drafter import DraftBinding, RoundRows
from engine.models.family import OwnTables
from support.checkpoints import FULL, SLIDING, VOCAB_SIZE, drafter_config
from support.speculators import as_speculators, few_tokens, write_speculators
from tests.engine.conftest import CPU, TinyPair, no_progress
from tests.engine.decoding.pairs import DRAFT_TILES
from tests.pace import examples

COUNT, CONTEXT, BLOCK, ANCHOR, INGESTED = 40, 64, 7, 200, 11
TOKENS = few_tokens(COUNT, VOCAB_SIZE, 9)
CONFIG = drafter_config([SLIDING, FULL], [0, 2], 3)


def drafter_of(folder: Path, pair: TinyPair, **tables: Any) -> DFlashDrafter:
    write_speculators(folder, CONFIG, 3, **tables)
    drafter = load_drafter(folder, pair.target, no_progress)
    assert isinstance(drafter, DFlashDrafter)
    return drafter


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")
@pytest.mark.parametrize("packed", [False, True])
@torch.inference_mode()
def test_host_and_device_draft_alike_among_few_tokens(packed: bool, dense_pair: TinyPair, tmp_path: Path) -> None:
    """What is drafted are the target's ids; of each position's choices, too. In 8 bits the head is its own as well."""
    target = dense_pair.target
    drafter = deepcopy(drafter_of(tmp_path, dense_pair, count=COUNT, embedding=True, sample_from_anchor=packed)).float()
    assert drafter.config.tables == OwnTables(True, True, COUNT) and drafter.in_8_bits is False
    if packed:
        hold_in_8_bits(drafter)
    head = drafter.head_in_8_bits(target) if packed else None
    features = torch.randn(MAX_ROWS, 2 * target.config.hidden_size, generator=torch.Generator().manual_seed(3))
    caches = [Cache(drafter.config.layers, CONTEXT, MAX_ROWS, torch.float32, CPU) for _ in range(2)]
    drafter.ingest(features[:INGESTED], caches[0])
    expected = drafter.draft(target, ANCHOR, BLOCK, caches[0])
    likeliest = drafter.probabilities(target, ANCHOR, BLOCK, caches[0]).topk(4)
    assert likeliest.values.shape == (BLOCK - 1, 4) and set(expected.ids.tolist()) <= set(
        few_tokens(COUNT, VOCAB_SIZE, 9).tolist()
    )
    rows = BLOCK - 1 + drafter.config.first_slot
    where = RoundRows(*(torch.tensor([number], dtype=torch.int32) for number in (INGESTED, rows, 0, INGESTED)))
    for choices in (None, DraftChoices.allocate(CPU)):
        tokens = torch.zeros(MAX_ROWS, dtype=torch.int64)
        bound = DraftBinding(features, tokens, where, DRAFT_TILES, head, choices)
        launched = DFlashDraftPass(deepcopy(drafter), target, caches[1], bound)
        launched.block[0] = ANCHOR
        launched.ingest()
        launched.draft(BLOCK - 1, tree=choices is not None)
        assert torch.equal(tokens[: BLOCK - 1], expected.ids)
        torch.testing.assert_close(launched.out.probability[: BLOCK - 1], expected.probabilities, atol=1e-4, rtol=1e-3)
        if choices is not None:
            assert torch.equal(choices.tokens[: BLOCK - 1], drafter.tokens(likeliest.indices))


def test_a_plan_counts_tables_that_are_the_drafters_own(dense_pair: TinyPair, tmp_path: Path) -> None:
    drafter = drafter_of(tmp_path, dense_pair, count=COUNT, embedding=True)
    plan = plan_memory(dense_pair.folder / "target", tmp_path, 64, CPU)
    assert plan.drafter_bytes == bytes_of(drafter)
    assert bytes_of(drafter) > 4 * drafter.config.hidden_size * (COUNT + VOCAB_SIZE)
    assert isinstance(drafter.head_in_8_bits(dense_pair.target), Int8Weight)


Change = Callable[[dict[str, Any], dict[str, Tensor]], object]
"""Damages a config and tensors."""


def edited(name: str, edit: Callable[[Tensor], Tensor]) -> Change:
    return lambda config, tensors: tensors.update({name: edit(tensors[name].clone()).contiguous()})


def lost(name: str) -> Change:
    return lambda config, tensors: tensors.pop(name)


def put(place: int, value: int) -> Callable[[Tensor], Tensor]:
    return lambda tensor: tensor.index_fill_(0, torch.tensor([place]), value)


def layers(**fields: int) -> Change:
    return lambda config, tensors: config["transformer_layer_config"].update(fields)


def config(**fields: object) -> Change:
    return lambda config, tensors: config.update(fields)


@st.composite
def damages(draw: st.DrawFn) -> tuple[str, Change]:
    """A damage, and what its refusal names."""
    place = draw(st.integers(1, COUNT - 1))
    table, tables = draw(st.sampled_from(["lm_head.weight", "embed_tokens.weight"])), ["d2t", "t2d"]
    other = draw(st.sampled_from(["fc.weight", "norm.weight", "hidden_norm.weight", "layers.1.mlp.up_proj.weight"]))
    tensor, outside = draw(st.sampled_from(tables)), draw(st.sampled_from([-place - 1, VOCAB_SIZE, 1 << 40, -1 << 40]))
    found: tuple[str, Change] = draw(
        st.sampled_from(
            [
                (
                    "one of the target's",
                    edited("d2t", lambda offsets: put(place, int(offsets[place - 1]) - 1)(offsets)),
                ),
                ("d2t sends", edited("d2t", put(place, outside))),
                ("t2d says", edited("t2d", lambda used: ~used)),
                ("t2d says", edited("t2d", put(int(TOKENS[place]), 0))),
                ("d2t", edited("d2t", lambda offsets: offsets + torch.arange(COUNT))),  # ids in place of offsets
                (tensor, edited(tensor, lambda each: each[:-1])),
                (tensor, edited(tensor, lambda each: each.float())),
                ("d2t", lost("d2t")),
                ("lm_head.weight", lost("lm_head.weight")),
                (table, edited(table, lambda each: each[:, :-1])),
                (table, edited(table, lambda each: each.index_fill_(0, torch.tensor([place]), float("nan")))),
                (other, lost(other)),
                (other, edited(other, lambda each: each.fill_(float("inf")))),
                ("layers.2.", lambda config, tensors: tensors.update({"layers.2.mlp.up_proj.weight": torch.ones(3)})),
                ("d2t", config(draft_vocab_size=draw(st.sampled_from([16, COUNT - 1, COUNT + 1, VOCAB_SIZE])))),
                ("width", layers(hidden_size=128)),
                ("vocabulary", layers(vocab_size=600)),
                ("reads target layers", config(aux_hidden_state_layer_ids=draw(st.sampled_from([[1, 9], [2, 2]])))),
            ]
        )
    )
    return found


@settings(max_examples=examples(120), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=damages())
def test_damaged_tables_are_refused_by_name(damage: tuple[str, Change], dense_pair: TinyPair, tmp_path: Path) -> None:
    named, change = damage
    tensors = write_speculators(tmp_path, CONFIG, 3, count=COUNT, embedding=True)
    said = as_speculators(CONFIG, draft_vocab_size=COUNT)
    change(said, tensors)
    (tmp_path / "config.json").write_text(json.dumps(said))
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(WeightsFailure) as refused:
        load_drafter(tmp_path, dense_pair.target, no_progress)
    assert named in str(refused.value) and refused.value.hint
