"""Qwen3.5 against ``transformers``: logits, taps, answers; what its layers keep, to the bit; what is refused of it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import Qwen3_5ForCausalLM

from engine.errors import WeightsFailure
from engine.kernels.reference.attention import reference_attention
from engine.kernels.weights.kinds import weight_of
from engine.kv_cache.cache import Cache
from engine.kv_cache.delta_state import DeltaState
from engine.loading.checkpoint import load_drafter, load_target, read_target_config
from engine.models.dflash.modules import DFlashDrafter
from engine.models.packed import packed_in
from engine.models.qwen3_5.modules import GatedDeltaNet, Qwen35Attention, Qwen35Target
from engine.models.registry import family_of
from support.checkpoints import FULL, SLIDING, VOCAB_SIZE, drafter_config, write_drafter
from tests.engine.conftest import CPU, no_progress
from tests.engine.edited import copied, edit_config
from tests.engine.models.against_transformers import (
    assert_same,
    assert_same_far_out,
)
from tests.engine.models.qwen3_5 import (
    ATTENDS,
    KINDS,
    RECURS,
    save,
    saved,
    write_target,
)
from tests.engine.small_decoders import prompt_ids
from tests.pace import IN_CI

TAPS = [0, 3, 6]
LENGTH = 200
"""Over three chunks of ``transformers``' way to read prompts."""


@dataclass(frozen=True)
class Small:
    folder: Path
    reference: Qwen3_5ForCausalLM
    target: Qwen35Target
    drafter: DFlashDrafter

    @property
    def path(self) -> Path:
        return self.folder / "target"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    folder = tmp_path_factory.mktemp("qwen3_5")
    reference = write_target(folder / "target")
    target = load_target(folder / "target", CPU, no_progress)
    config = drafter_config([SLIDING, FULL], TAPS, len(KINDS), final_logit_softcapping=None)
    write_drafter(folder / "drafter", config)
    drafter = load_drafter(folder / "drafter", target, no_progress)
    assert isinstance(target, Qwen35Target) and isinstance(drafter, DFlashDrafter)
    return Small(folder, reference, target, drafter)


SIZES = {
    "whole": [LENGTH],
    "pieces": [63, 1, 65, 71],
    "few rows": [*[1] * 30, 2, 3, 4, *[16] * 10, 1],
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_logits_and_taps_equal_those_of_transformers(sizes: list[int], small: Small) -> None:
    assert_same(small.target, small.reference, torch.tensor(prompt_ids(LENGTH)), sizes, TAPS)


def test_the_text_model_alone_and_a_tied_head(tmp_path: Path) -> None:
    reference = write_target(tmp_path, 1, alone=True, tie_word_embeddings=True)
    target = load_target(tmp_path, CPU, no_progress)
    assert target.head is target.embed_tokens.weight and target.config.stop_token_ids == (1,)
    assert_same(target, reference, torch.tensor(prompt_ids(40)), [40])


@pytest.mark.parametrize("stacked", [True, False], ids=["stacked", "expert by expert"])
def test_experts_and_the_one_that_all_rows_share(stacked: bool, tmp_path: Path) -> None:
    """As published in bf16, and in FP8."""
    reference = write_target(tmp_path, 2, experts=True, num_hidden_layers=4, layer_types=KINDS[:4])
    if stacked:
        tensors = {name: tensor for name, tensor in saved(tmp_path).items() if ".experts." not in name}
        for name, parameter in reference.named_parameters():
            if ".experts." in name:
                tensors[name.replace("model.", "model.language_model.", 1)] = parameter.detach().clone()
        save(tmp_path, tensors)
    target = load_target(tmp_path, CPU, no_progress)
    assert family_of(json.loads((tmp_path / "config.json").read_text())).name == "Qwen3.5-MoE"
    for sizes in ([90], [16] * 5 + [1]):
        assert_same(target, reference, torch.tensor(prompt_ids(90)), sizes)


def test_qwen3_next_is_the_same_stored_otherwise(tmp_path: Path) -> None:
    """What a layer that recurs projects to comes fused there, key head by key head."""
    reference = write_target(tmp_path, 4, fused=True, num_hidden_layers=4, layer_types=KINDS[:4])
    assert "model.layers.0.linear_attn.in_proj_qkvz.weight" in saved(tmp_path)
    target = load_target(tmp_path, CPU, no_progress)
    for sizes in ([90], [16] * 5 + [1]):
        assert_same(target, reference, torch.tensor(prompt_ids(90)), sizes)
    tensors = saved(tmp_path)
    name = "model.layers.0.linear_attn.in_proj_qkvz.weight"
    save(tmp_path, tensors | {name.replace("qkvz", "z"): tensors[name][:96].clone()})
    with pytest.raises(WeightsFailure, match=r"against its config, 1 tensors.*in_proj_z"):
        load_target(tmp_path, CPU, no_progress)


def test_positions_far_out_turn_as_in_transformers(small: Small) -> None:
    """Layers that recur know no position; those that attend turn a quarter of each head."""
    attention = next(module for module in small.target.modules() if isinstance(module, Qwen35Attention))
    frequencies = small.reference.model.rotary_emb.inv_freq
    turning = small.target.frequencies[: len(frequencies)]
    torch.testing.assert_close(turning, frequencies, atol=0, rtol=1e-6)
    assert not small.target.frequencies[len(frequencies) :].any() and attention.config.scale == 32**-0.5
    assert_same_far_out(small.target, small.reference)


# --- what a layer keeps, to the bit: products and attention are made row by row, as kernels make them


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Qwen35Target]:
    """A target with products and attention that have the same bits for a row alone and among many."""
    folder = tmp_path_factory.mktemp("exact")
    write_target(folder, 3, num_hidden_layers=2, layer_types=[RECURS, ATTENDS])
    target = load_target(folder, CPU, no_progress)
    assert isinstance(target, Qwen35Target)
    for module in target.modules():
        if isinstance(module, Qwen35Attention | GatedDeltaNet):
            module.together = None
        if isinstance(module, Qwen35Attention):
            module.attend = _attend_row_by_row
    whole = F.linear

    def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return torch.cat([whole(row, weight, bias) for row in x.split(1)]) if x.ndim == 2 else whole(x, weight, bias)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(F, "linear", linear)
        yield target


def _attend_row_by_row(q: Tensor, k: Tensor, v: Tensor, *, causal: bool, window: int | None, scale: float) -> Tensor:
    before = k.shape[1] - len(q)
    return torch.cat(
        [
            reference_attention(
                row, k[:, : before + index + 1], v[:, : before + index + 1], causal=True, window=None, scale=scale
            )
            for index, row in enumerate(q.split(1))
        ]
    )


class Rounds:
    """A cache that is drafted ahead of, beside one that never was."""

    def __init__(self, target: Qwen35Target, seed: int):
        self.target, self.random = target, random.Random(seed)
        self.cache = Cache(target.config.layers, 512, 64, torch.float32, CPU)
        self.text: list[int] = []
        self.moments: list[tuple[int, Any]] = []

    def tokens(self, count: int) -> list[int]:
        return [self.random.randrange(VOCAB_SIZE) for _ in range(count)]

    def run(self, ids: list[int]) -> Tensor:
        self.cache.note_written(self.cache.length + len(ids))
        return self.target(torch.tensor(ids), self.cache.length, self.cache).hidden

    def prompt(self, count: int) -> None:
        ids = self.tokens(count)
        self.run(ids)
        self.cache.commit(self.cache.length + count)
        self.text += ids

    def round(self) -> None:
        """Rows of which some are accepted: perhaps none but the anchor, or all."""
        rows = self.random.choice((1, 2, 5, 8, 15, 16, 16, 16, 32))
        accepted = self.random.randint(1, rows)
        ids = self.tokens(rows)
        if self.random.random() < 0.2:
            self.run(self.tokens(self.random.randint(1, 16)))  # another branch, or a pass that was stopped
        self.run(ids)
        self.cache.commit(self.cache.length + accepted)
        self.text += ids[:accepted]
        chance = self.random.random()
        if chance < 0.1:
            self.moments.append((self.cache.length, self.cache.snapshot()))
        elif chance < 0.2 and self.moments:
            length, moment = self.random.choice(self.moments)
            if length <= self.cache.length:
                self.cache.restore(moment)
                self.back_to(length)
        elif chance < 0.3:
            length = self.cache.length - self.random.randint(0, 16)
            if length >= 0 and self.cache.can_rewind_to(length):
                self.cache.rewind(length)
                self.back_to(length)
        elif chance < 0.32:
            self.cache.clear()
            self.back_to(0)
            self.prompt(self.random.choice((1, 3, 17, 70)))

    def back_to(self, length: int) -> None:
        del self.text[length:]
        self.moments = [each for each in self.moments if each[0] <= length]

    def check(self) -> None:
        """All is as if each token had come alone."""
        plain = Cache(self.target.config.layers, 512, 64, torch.float32, CPU)
        for place, token in enumerate(self.text):
            self.target(torch.tensor([token]), place, plain)
            plain.commit(place + 1)
        following = torch.tensor(self.tokens(3))
        outputs = [self.target(following, len(self.text), cache).hidden for cache in (self.cache, plain)]
        assert torch.equal(*outputs)
        for ours, theirs in zip(self.cache.layers, plain.layers, strict=True):
            if isinstance(ours, DeltaState) and isinstance(theirs, DeltaState):
                assert all(torch.equal(one, other) for one, other in zip(ours.now, theirs.now, strict=True))


@torch.inference_mode()
def random_rounds(target: Qwen35Target, seed: int, count: int) -> int:
    rounds, done = Rounds(target, seed), 0
    rounds.prompt(rounds.random.choice((1, 2, 3, 4, 16, 17, 66)))
    while done < count and len(rounds.text) < 400:
        rounds.round()
        done += 1
    rounds.check()
    return done


def test_random_rounds_leave_the_bits_of_never_having_drafted(exact: Qwen35Target) -> None:
    """In CI hundreds of them."""
    seeds = range(40 if IN_CI else 3)
    assert sum(random_rounds(exact, seed, 12) for seed in seeds) >= 8 * len(seeds)


@torch.inference_mode()
def test_each_count_of_accepted_rows(exact: Qwen35Target) -> None:
    ids = list(prompt_ids(40))
    for accepted in (1, 2, 3, 4, 9, 15, 16):
        rounds = Rounds(exact, accepted)
        rounds.prompt(5)
        rounds.run(ids[:16])
        rounds.cache.commit(5 + accepted)
        rounds.text += ids[:accepted]
        rounds.check()


# --- loading


def test_packing_leaves_small_parts_alone(small: Small) -> None:
    names = set(packed_in(load_target(small.path, CPU, no_progress), "int4"))
    assert {name.split(".", 2)[2] for name in names if name.startswith("layers.0.")} == {
        "linear_attn.in_proj_qkv.weight", "linear_attn.in_proj_z.weight", "linear_attn.out_proj.weight",
        "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight",
    }  # fmt: skip
    for weights, far in (("int4", 0.12), ("fp8", 0.04)):
        target = load_target(small.path, CPU, no_progress, weights=weights)  # type: ignore[arg-type]
        for part in ("layers.3.self_attn.q_proj", "layers.3.self_attn.k_proj", "layers.0.linear_attn.in_proj_qkv"):
            plain = small.target.get_submodule(part).weight
            assert isinstance(plain, Tensor)
            assert (weight_of(target.get_submodule(part)).restored() - plain).norm() < far * plain.norm()


def test_what_decides_how_long_is_remembered_is_not_rounded(small: Small) -> None:
    with torch.device("meta"):
        model = small.target.config.build().to(torch.bfloat16)
    net = next(module for module in model.modules() if isinstance(module, GatedDeltaNet))
    assert net.A_log.dtype is net.dt_bias.dtype is torch.float32 and net.norm.weight.dtype is torch.bfloat16


def test_layers_are_told_or_follow_from_their_interval(small: Small) -> None:
    config = read_target_config(small.path)
    assert config.stop_token_ids == (1, 106) and family_of({"text_config": {"model_type": "qwen3_5_text"}})
    listed = [type(layer).__name__ for layer in config.layers]
    assert listed == (["DeltaConfig"] * 3 + ["AttentionConfig"]) * 2


CHANGES = {
    "taps": ({"linear_conv_kernel_dim": 3}, "sees 3 rows"),
    "ungated": ({"attn_output_gate": False}, "has no gate"),
    "sigmoid": ({"output_gate_type": "sigmoid"}, "gate is a sigmoid"),
    "gate": ({"output_gate_type": "relu"}, "output_gate_type"),
    "biases": ({"attention_bias": True}, "adds biases"),
    "stretched": ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}}, "stretches its positions"),
    "odd": ({"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.05}}, "no whole pairs"),
    "heads": ({"linear_num_value_heads": 5}, "multiple of 2"),
    "channels": ({"linear_key_head_dim": 24}, "powers of two"),
    "kinds": ({"layer_types": [RECURS] * 7}, "layer_types"),
    "others": ({"layer_types": [RECURS, ATTENDS] * 4}, "lacks"),
    "wider": ({"linear_num_value_heads": 4}, "asks for"),
}


@pytest.mark.parametrize(("changes", "said"), CHANGES.values(), ids=CHANGES)
def test_configs_that_are_refused(changes: dict[str, Any], said: str, small: Small, tmp_path: Path) -> None:
    edit_config(copied(small.path, tmp_path), "text_config", **changes)
    with pytest.raises(WeightsFailure, match=said) as refused:
        load_target(tmp_path, CPU, no_progress)
    assert refused.value.hint
