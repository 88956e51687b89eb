"""The drafter and the whole decoding loop against z-lab's own ``dflash`` package."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import Gemma4ForConditionalGeneration, Qwen3Config

from engine.commands import Message
from engine.decoding.decoder import Decoder
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.dflash.modules import DFlashDrafter
from engine.models.gemma4.modules import Gemma4
from engine.tokenization.tokenizer import ChatTokenizer
from support.checkpoints import DRAFT_WINDOW, FULL, SLIDING, drafter_config, second_config, write_drafter
from tests.engine.conftest import CPU, TinyPair, no_progress
from tests.engine.small_decoders import run_turn, settings

if os.environ.get("CI") != "true":
    pytest.importorskip("dflash", reason="the dflash package is not installed: make test installs it")
from dflash import model as dflash_model

ROUNDS, BLOCK, NEW_TOKENS = 30, 16, 48
EMBEDDING_SCALE = 0.25
"""Small, so that random layers outweigh the mask's embedding, and drafts differ. The package takes the target's
embeddings as they are and scales them by the config alone."""

LLAMA3_SCALING = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
YARN_SCALING = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}

VARIANTS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "gemma: causal sliding layers, then a full one": ([SLIDING, SLIDING, FULL], {}),
    "qwen3: all full": ([FULL, FULL], {}),
    "no layer sees only the past": ([SLIDING, FULL], {"is_causal": False}),
    "every layer sees only the past": ([SLIDING, FULL], {"is_causal": True}),
    "slow rotation": ([SLIDING, FULL], {"rope_theta": 1e4}),
    "llama3: pairs that turn more slowly": (
        [FULL, FULL],
        {"rope_theta": 1e3, "rope_scaling": LLAMA3_SCALING, "max_position_embeddings": 4096},
    ),
    "gpt-oss: biases": ([FULL, FULL], {"attention_bias": True, "rope_theta": 1e4}),
    "yarn": ([FULL], {"rope_theta": 1e3, "rope_scaling": YARN_SCALING, "max_position_embeddings": 4096}),
}


def load_package_drafter(folder: Path) -> Any:
    """z-lab's model from a folder in z-lab's layout."""
    said = json.loads((folder / "config.json").read_text())
    config = Qwen3Config(**said)
    kind = getattr(dflash_model, said["architectures"][0])
    return kind.from_pretrained(folder, config=config, dtype=torch.float32).eval()


class PackageRounds:
    """The package's drafter, driven as its own loop drives it: context grows, the block's rows are cropped off."""

    def __init__(self, model: Any, target: Any):
        self.model = model
        self.target = target
        self.cache = dflash_model._make_cache(model.config)
        self.length = 0

    def draft(self, features: Tensor, anchor: int, block: int) -> tuple[Tensor, list[int]]:
        """Normed hidden states [block, hidden] and the drafted tokens, after ingesting new features [n, taps * h]."""
        ids = torch.full((1, block), self.model.mask_token_id)
        ids[0, 0] = anchor
        positions = torch.arange(self.length, self.length + len(features) + block)[None]
        hidden = self.model(
            target_hidden=features[None],
            noise_embedding=dflash_model._raw_input_embeddings(self.target, ids, EMBEDDING_SCALE),
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
        )
        self.length += len(features)
        dflash_model._crop_to(self.cache, self.length)
        if isinstance(self.model, dflash_model.DFlash2DraftModel):
            drafted = self.model.propose(hidden[:, 1:], torch.tensor([anchor]), self.target.lm_head, 0.0)[0]
            return hidden[0], drafted[0].tolist()
        logits = self.model.compute_logits(hidden[:, 1:], self.target.lm_head)
        return hidden[0], logits.argmax(dim=-1)[0].tolist()


@torch.inference_mode()
def drafted_alike(pair: TinyPair, folder: Path, block: int, seed: int | str) -> tuple[set[int], int, int]:
    """Compares hidden states and drafts over many rounds, of up to ``block`` new tokens each. Returns the tokens that
    were drafted, in how many rounds those aren't each position's likeliest, and how long the context became."""
    target, drafter = pair.target, load_drafter(folder, pair.target, no_progress)
    assert isinstance(drafter, DFlashDrafter)
    package = PackageRounds(load_package_drafter(folder), pair.reference)
    cache = Cache(drafter.config.layers, 4096, BLOCK, torch.float32, CPU)
    rng, generator = random.Random(seed), torch.Generator().manual_seed(4)
    drafts, others = set[int](), 0
    for _ in range(ROUNDS):
        features = torch.randn(rng.randint(1, block), 2 * 64, generator=generator)
        anchor = rng.randrange(107, 512)
        expected_hidden, expected_ids = package.draft(features, anchor, block)
        drafter.ingest(features, cache)
        hidden = drafter.hidden(drafter.embed(target, torch.tensor([anchor] + [4] * (block - 1))), cache)
        torch.testing.assert_close(hidden, expected_hidden, atol=1e-4, rtol=0)
        assert drafter.draft(target, anchor, block, cache).ids.tolist() == expected_ids
        others += drafter.logits(target, hidden[1:]).argmax(-1).tolist() != expected_ids
        drafts.update(expected_ids)
    return drafts, others, cache.length


def test_dflash_2_over_many_rounds(dense_pair: TinyPair, tmp_path: Path) -> None:
    """Convolutions, and drafts chosen one behind the other; a shorter block is the beginning of a longer one."""
    write_drafter(tmp_path, second_config([0, 2], 3, input_embedding_scale=EMBEDDING_SCALE), seed=3)
    drafts, others, _ = drafted_alike(dense_pair, tmp_path, 8, 2)
    assert len(drafts) > 20 and others > ROUNDS // 2


@pytest.mark.parametrize("name", VARIANTS)
def test_hidden_states_and_drafts_over_many_rounds(name: str, dense_pair: TinyPair, tmp_path: Path) -> None:
    kinds, changes = VARIANTS[name]
    changes = {**changes, "input_embedding_scale": EMBEDDING_SCALE}
    write_drafter(tmp_path, drafter_config(kinds, [0, 2], 3, **changes), seed=3)
    drafts, others, length = drafted_alike(dense_pair, tmp_path, BLOCK, name)
    assert length > 5 * (DRAFT_WINDOW + BLOCK) and len(drafts) > 10 and others == 0


@pytest.fixture(scope="module")
def bundled(bundled_pair: Path) -> tuple[Gemma4, DFlashDrafter, ChatTokenizer]:
    target = load_target(bundled_pair / "target", CPU, no_progress)
    return target, load_drafter(bundled_pair / "drafter", target, no_progress), ChatTokenizer(bundled_pair / "target")


@pytest.mark.parametrize(("text", "block_size"), [("Write a quicksort in Python", 16), ("What is 23 + 48?", 5)])
def test_the_package_s_own_loop_says_the_same(
    text: str,
    block_size: int,
    bundled_pair: Path,
    bundled: tuple[Gemma4, DFlashDrafter, ChatTokenizer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its generate function over ``transformers``, and the engine's decoder: the same tokens in the same rounds."""
    monkeypatch.setattr(dflash_model, "_cuda_time", perf_counter)  # it would wait for a GPU
    target, drafter, tokenizer = bundled
    prompt = tokenizer.prompt([Message("user", text)], thinking=False).ids
    expected = dflash_model.dflash_generate(
        load_package_drafter(bundled_pair / "drafter"),
        Gemma4ForConditionalGeneration.from_pretrained(bundled_pair / "target", dtype=torch.float32).eval(),
        torch.tensor([prompt]),
        max_new_tokens=NEW_TOKENS,
        stop_token_ids=list(target.config.stop_token_ids),
        block_size=block_size,
        return_stats=True,
    )
    answer = run_turn(Decoder(target, drafter, 512), prompt, settings(block_size=block_size, max_new_tokens=NEW_TOKENS))
    assert answer.ids == expected.output_ids[0, len(prompt) :].tolist() and len(answer.ids) > 10
    produced = [len(done.emitted) for done in answer.rounds[1:]]
    assert produced == expected.acceptance_lengths and max(produced) > 1
