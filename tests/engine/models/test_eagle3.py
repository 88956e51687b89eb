"""EAGLE-3 is read from each published layout to one description; what is damaged, or of another kind, is refused by
name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.decoding.readings import FEWEST, better_reading, look_at_guesses
from engine.errors import WeightsFailure
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_drafter
from engine.models.drafter import DraftBinding, RoundRows
from engine.models.eagle3.config import Eagle3Config
from engine.models.eagle3.modules import Eagle3
from engine.models.family import EMBEDDED
from engine.models.registry import drafter_config_of
from engine.models.target import TargetModel
from support.checkpoints import VOCAB_SIZE
from support.eagle import LAYOUTS, ReferenceEagle, default_taps, eagle_config, write_eagle
from tests.engine.conftest import CPU, TinyPair, no_progress
from tests.engine.small_decoders import prompt_ids
from tests.kernels.tensors import number
from tests.pace import examples

TAPS, COUNT = [0, 2], 40


@torch.inference_mode()
def test_other_readings_are_looked_at(dense_pair: TinyPair, tmp_path: Path) -> None:
    """Taps one off and a residual read otherwise draft otherwise; where all are equally wrong, none is said."""
    write_eagle(tmp_path, "speculators", VOCAB_SIZE, [1], count=COUNT)
    drafter = load_drafter(tmp_path, dense_pair.target, no_progress)
    text = prompt_ids(FEWEST + 20)
    found = list(look_at_guesses(dense_pair.target, drafter, text))
    assert found[-1] is None and len(found) > 4 * 32  # four readings at 32 places
    assert better_reading(dense_pair.target, drafter, [(text[:60], 40)]) is None


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")
@pytest.mark.parametrize(
    ("layout", "fields"),
    [("SpecForge", {"num_hidden_layers": 2, "norm_output": True, "fc_norm": True}), ("DeepSpec, Gemma", {})],
)
@torch.inference_mode()
def test_the_reference_host_and_device_draft_alike_behind_the_first_rows_of_a_text(
    layout: str, fields: dict[str, int], dense_pair: TinyPair, tmp_path: Path
) -> None:
    """No row is before the first, so that one begins no pair."""
    tensors = write_eagle(tmp_path, layout, VOCAB_SIZE, TAPS, count=None, embedding=True, **fields)
    drafter: Any = load_drafter(tmp_path, dense_pair.target, no_progress)
    table = dense_pair.target.embed_tokens.weight
    reference = ReferenceEagle(eagle_config(layout, VOCAB_SIZE, None, TAPS, **fields), tensors, table)
    features, tokens = torch.randn(16, 3 * 64), torch.zeros(16, dtype=torch.int64)
    features[:, 128:] = tensors["embed_tokens.weight"][:16]
    for committed in (1, 6, 16):
        of_host, of_device = (
            drafter.new_cache(Cache((), 64, 16, torch.float32, CPU), 64, 16, torch.float32, CPU) for _ in range(2)
        )
        drafter.ingest(features[:committed], of_host)
        rows = RoundRows(*(number(each) for each in (committed, 5, 0, committed)))
        drafting = drafter.draft_pass(dense_pair.target, of_device, DraftBinding(features, tokens, rows))
        drafting.ingest()
        drafting.block[0] = 7
        drafting.draft(4)
        by_host = drafter.draft(dense_pair.target, 7, 5, of_host).ids.tolist()
        assert by_host == reference.draft(features[:committed, :128], [*range(committed), 7], 4), committed
        assert tokens[:4].tolist() == by_host, committed


Change = Callable[[dict[str, Any], dict[str, Tensor]], object]
"""Damages a config and tensors."""


def described(config: dict[str, Any], pair: TinyPair, depth: int = 12) -> Eagle3Config:
    target = pair.target.config
    layers = (target.layers * depth)[:depth]
    read = drafter_config_of(config).beside(replace(target, layers=layers))
    assert isinstance(read, Eagle3Config)
    return replace(read, residual_normed=False)


@pytest.mark.parametrize("count", [None, COUNT])
def test_all_layouts_are_read_to_the_same_description(count: int | None, dense_pair: TinyPair) -> None:
    """Taps are outputs, in whatever way a layout counts; without numbers they are the trainers' default."""
    taps = default_taps(12)
    first, *others = (described(eagle_config(layout, VOCAB_SIZE, count, taps), dense_pair) for layout in LAYOUTS)
    assert all(other == first for other in others)
    assert first.target_layer_ids == (1, 5, 8, EMBEDDED) and first.tables.vocabulary == count
    boundaries = eagle_config("NVIDIA", VOCAB_SIZE, count, [4, 8, 12])  # NVIDIA's v3: the last is the target's depth
    assert described(boundaries, dense_pair).taps == (3, 7, 11)


def test_what_equals_the_targets_is_not_held_twice(dense_pair: TinyPair, tmp_path: Path) -> None:
    """An embedding that is the target's again stays on disk; a head of its own is held, or else the target's drafts."""
    target: TargetModel = dense_pair.target
    tensors = write_eagle(tmp_path, "NVIDIA", VOCAB_SIZE, TAPS, count=None)
    stored = load_file(tmp_path / "model.safetensors")
    for name, head in (("its own", tensors["lm_head.weight"]), ("the target's", target.head.detach().clone())):
        save_file(
            {**stored, "embed_tokens.weight": target.embed_tokens.weight.detach().clone(), "lm_head.weight": head},
            tmp_path / "model.safetensors",
        )
        drafter = load_drafter(tmp_path, target, no_progress)
        assert isinstance(drafter, Eagle3) and not drafter.config.tables.embedding
        assert drafter.config.tables.head == (name == "its own")


def edited(name: str, edit: Callable[[Tensor], Tensor]) -> Change:
    return lambda config, tensors: tensors.update({name: edit(tensors[name].clone()).contiguous()})


def lost(name: str) -> Change:
    return lambda config, tensors: tensors.pop(name)


def said(**fields: object) -> Change:
    return lambda config, tensors: config.update(fields)


def modelopt(**fields: object) -> Change:
    return lambda config, tensors: config["eagle_config"].update(fields)


def put(**tensors: Tensor) -> Change:
    return lambda config, stored: stored.update({name.replace("__", "."): each for name, each in tensors.items()})


TENSORS = (
    *("fc.weight", "norm.weight", "midlayer.hidden_norm.weight", "midlayer.self_attn.k_proj.weight"),
    *("layers.1.input_layernorm.weight", "layers.1.self_attn.k_proj.weight", "layers.1.mlp.down_proj.weight"),
)
SECOND = torch.tensor([1])
OUTSIDE: list[Any] = [[], [0, 3], [1, 1], [-1, 2], [1 << 9], "0", [[1]]]
NUMBERS = "eagle_aux_hidden_state_layer_ids"


@st.composite
def damages(draw: st.DrawFn) -> tuple[str, Change]:
    """A damage, and what its refusal names: either of two."""
    name, moved = draw(st.sampled_from(TENSORS)), draw(st.sampled_from([1, VOCAB_SIZE, -VOCAB_SIZE]))
    found: tuple[str, Change] = draw(
        st.sampled_from(
            [
                (name, lost(name)),
                (name, edited(name, lambda each: each[..., :-1])),
                (name.removeprefix("midlayer."), edited(name, lambda each: each.fill_(float("nan")))),
                (name, edited(name, lambda each: each.int())),
                ("d2t|t2d", edited("d2t", lambda offsets: offsets + moved)),
                ("d2t", lost("d2t")),
                ("t2d", edited("t2d", lambda used: ~used)),
                ("lm_head", lost("lm_head.weight")),
                ("layers.0", put(layers__0__hidden_norm__weight=torch.ones(64))),
                ("k_norm", put(midlayer__self_attn__q_norm__weight=torch.ones(16))),
                ("embed_tokens", put(embed_tokens__weight=torch.ones(VOCAB_SIZE - 1, 64))),
                ("embed_tokens", put(embed_tokens__weight=torch.full((VOCAB_SIZE, 64), float("inf")))),
                ("d2t|t2d", edited("d2t", lambda offsets: offsets.index_copy(0, SECOND, offsets[:1] - 1))),
                (f"{NUMBERS}|target layers", modelopt(**{NUMBERS: draw(st.sampled_from(OUTSIDE))})),
                ("fc.weight", modelopt(**{NUMBERS: [1]})),
                ("use_aux_hidden_state", modelopt(use_aux_hidden_state=False)),
                ("use_mtp_layernorm", modelopt(use_mtp_layernorm=True)),
                ("parallel_draft_step", modelopt(parallel_draft_step=4)),
                ("input_norm", modelopt(norm_before_fc=True)),
                ("fc_norm", said(fc_norm=True)),
                ("layers.2|num_hidden_layers", said(num_hidden_layers=draw(st.sampled_from([3, 0, 600, "2"])))),
                ("layers.1", said(num_hidden_layers=1)),
                ("width", said(hidden_size=128)),
                ("36 layers", said(num_target_layers=36)),
                ("packed", edited("midlayer.self_attn.k_proj.weight", Tensor.byte)),
                ("target_hidden_size", said(target_hidden_size=32)),
                ("vocabulary", said(vocab_size=600)),
                ("draft_vocab_size|d2t", said(draft_vocab_size=draw(st.sampled_from([0, 1, 41, 513, None, "40"])))),
                ("hidden_act", said(hidden_act="gelu")),
                ("partial_rotary_factor", said(partial_rotary_factor=0.5)),
                ("num_aux_hidden_states", said(num_aux_hidden_states=3)),
            ]
        )
    )
    return found


@settings(max_examples=examples(160), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=damages())
def test_what_is_damaged_is_refused_by_name(damage: tuple[str, Change], dense_pair: TinyPair, tmp_path: Path) -> None:
    named, change = damage
    write_eagle(tmp_path, "NVIDIA", VOCAB_SIZE, TAPS, count=COUNT, num_hidden_layers=2)
    config, tensors = json.loads((tmp_path / "config.json").read_text()), load_file(tmp_path / "model.safetensors")
    change(config, tensors)
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(WeightsFailure) as refused:
        load_drafter(tmp_path, dense_pair.target, no_progress)
    assert any(word in str(refused.value) for word in named.split("|")) and refused.value.hint


@pytest.mark.parametrize("layout", ["DeepSpec", "DeepSpec, Gemma"])
def test_a_head_that_its_makers_put_in_is_missed(layout: str, dense_pair: TinyPair, tmp_path: Path) -> None:
    tensors = write_eagle(tmp_path, layout, VOCAB_SIZE, TAPS, count=None, embedding=True)
    del tensors["lm_head.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(WeightsFailure, match="lm_head"):
        load_drafter(tmp_path, dense_pair.target, no_progress)
