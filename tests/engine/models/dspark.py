"""Tiny DSpark drafters in each published layout, and what their drafts are held against."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.decoding.decoder import Decoder
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.dflash.modules import DFlashDrafter
from engine.models.target import TargetModel
from support.checkpoints import FULL, SLIDING, VOCAB_SIZE, drafter_weights, dspark_config, random_target
from support.reference_dspark import ReferenceDSpark
from support.speculators import as_speculators, own_tables
from tests.engine.conftest import CPU, no_progress
from tests.engine.small_decoders import Answer, prompt_ids, run_turn, settings

AFTER = "markov_head.markov_w2.weight"
HEADS = {"num_attention_heads": 2, "num_key_value_heads": 1}
LAYOUTS = ("SpecForge", "DeepSpec", "speculators", "speculators, anchor")
"""Who writes them so; the last one's first row drafts, too, as those of the first two do."""


class DSparkPair(NamedTuple):
    target: TargetModel
    drafter: DFlashDrafter
    reference: ReferenceDSpark


def published(layout: str, config: dict[str, Any]) -> dict[str, Any]:
    """A drafter's config, given as SpecForge writes it, in this layout."""
    own = config["dflash_config"]
    head = {name: own[name] for name in ("markov_rank", "markov_head_type", "enable_confidence_head")}
    head |= {"confidence_head_with_markov": own["confidence_head_with_markov"]}
    if layout == "SpecForge":
        return config
    if layout == "DeepSpec":
        rest = {name: value for name, value in config.items() if name != "dflash_config"}
        taps = {name: own[name] for name in ("mask_token_id", "target_layer_ids")}
        noise = {"num_anchors": 512, "partial_rotary_factor": 0.25, "tie_word_embeddings": False}
        return {**rest, **taps, **head, **noise, "architectures": ["Qwen3DSparkModel"]}
    said = {"sample_from_anchor": True} if layout.endswith("anchor") else {}
    kind = {"architectures": ["DSparkDraftModel"], "speculators_model_type": "dspark"}
    return {**as_speculators(config), **kind, **head, **said}


def write_dspark(folder: Path, layout: str, table: Tensor, count: int | None = None, **changes: Any) -> ReferenceDSpark:
    """Saves a random drafter in this layout, beside a target whose raw embedding and head are ``table`` [vocabulary,
    hidden], and returns what it should draft. ``count``: tokens of a vocabulary of its own."""
    ours = layout in ("SpecForge", "DeepSpec")
    kinds = [FULL, FULL] if ours else [SLIDING, FULL]
    causal = {"is_causal": False} if ours else {}
    config = dspark_config(kinds, [0, 1], 2, shift_label=layout != "speculators", **HEADS, **changes)
    weights = drafter_weights(config, seed=2)
    head = table
    if count is not None:
        brought = own_tables(64, VOCAB_SIZE, count, embedding=False)
        weights |= brought | {AFTER: weights[AFTER][:count].clone()}
        head = brought["lm_head.weight"]
    stored = dict(weights)
    if layout == "DeepSpec":
        stored |= {"embed_tokens.weight": table.contiguous(), "lm_head.weight": table.clone()}
    elif layout != "SpecForge":
        stored |= {"embed_tokens.weight": table.contiguous(), "verifier_norm.weight": torch.ones(64)}
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(
        json.dumps(published(layout, config) | ({"draft_vocab_size": count} if count else {}))
    )
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    scale = 8.0 if layout == "SpecForge" else 1.0  # z-lab's layout scales rows as its target does, Gemma by 64 ** 0.5
    return ReferenceDSpark({**config, **causal}, weights, table * scale, head)


def dspark_pair(folder: Path, layout: str, count: int | None = None, **changes: Any) -> DSparkPair:
    random_target([SLIDING, FULL], False, seed=2, **HEADS).save_pretrained(folder / "target")
    target = load_target(folder / "target", CPU, no_progress)
    target.config = replace(target.config, stop_token_ids=())
    reference = write_dspark(folder / "drafter", layout, target.embed_tokens.weight, count, **changes)
    drafter = load_drafter(folder / "drafter", target, no_progress)
    assert isinstance(drafter, DFlashDrafter)
    return DSparkPair(target, drafter, reference)


@torch.inference_mode()
def assert_drafts_are_the_references(pair: DSparkPair, answer: Answer, prompt: Sequence[int]) -> int:
    """Every draft of an answer, at every position, is what the reference drafts there; returns how many drafts."""
    text = [*prompt, *answer.ids]
    cache = Cache(pair.target.config.layers, len(text), len(text), torch.float32, CPU)
    taps = pair.drafter.config.target_layer_ids
    features = pair.target(torch.tensor(text), 0, cache, taps).features
    place, drafts = len(prompt) - 1, 0  # of the anchor
    for done in answer.rounds:
        if done.draft_ids:
            ids, sure = pair.reference.draft(features[:place], text[place], len(done.draft_ids))
            assert list(done.draft_ids) == ids, place
            torch.testing.assert_close(torch.tensor(done.draft_probabilities), torch.tensor(sure), atol=1e-4, rtol=1e-3)
            drafts += 1
        place += len(done.emitted)
    return drafts


def answers(pair: DSparkPair, tokens: int, **how: Any) -> tuple[Answer, Answer]:
    """An answer with speculation and one without, of a decoder whose text never stops by itself."""
    prompt, wanted = prompt_ids(30), settings(max_new_tokens=tokens, block_size=16, **how)
    decoders = Decoder(pair.target, pair.drafter, 64 + tokens), Decoder(pair.target, None, 64 + tokens)
    drafted, alone = (run_turn(decoder, prompt, wanted) for decoder in decoders)
    return drafted, alone
