"""Tiny DSpark drafters in each published layout, and what their drafts are held against."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from dflash_tui.core.exit_codes import exit_code_for
from engine.decoding.decoder import Decoder
from engine.errors import EngineFailure
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.dflash.modules import DFlashDrafter
from engine.models.target import TargetModel
from support.checkpoints import FULL, SLIDING, VOCAB_SIZE, drafter_weights, dspark_config, random_target
from support.reference_dspark import ReferenceDSpark
from support.speculators import as_speculators, own_tables
from tests.engine.conftest import CPU, no_progress
from tests.engine.small_decoders import Answer, prompt_ids, run_turn, settings

BEFORE, AFTER = "markov_head.markov_w1.weight", "markov_head.markov_w2.weight"
HEADS = {"num_attention_heads": 2, "num_key_value_heads": 1}
LAYOUTS = ("SpecForge", "DeepSpec", "DeepSpec, Gemma", "speculators", "speculators, anchor")
"""Who writes them so; the last one's first row drafts, too, as those of the first three do."""
GEMMA = {"attention_k_eq_v": True, "num_global_key_value_heads": 1, "hidden_activation": "gelu_pytorch_tanh"}
"""Fields that make layers Gemma 4's own."""


class Reference(Protocol):
    def draft(self, features: Tensor, anchor: int, count: int) -> tuple[list[int], list[float]]:
        """The ids that are drafted, and how sure the drafter is of each."""


class ReferencedPair(NamedTuple):
    target: TargetModel
    drafter: DFlashDrafter
    reference: Reference


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
    if layout == "DeepSpec, Gemma":
        turns = {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": config["rope_theta"]}
        own = GEMMA | {"rope_parameters": {FULL: turns}, "global_head_dim": config["head_dim"], "head_dim": 8}
        rest = {name: value for name, value in config.items() if name not in ("dflash_config", "hidden_act")}
        taps = {name: config["dflash_config"][name] for name in ("mask_token_id", "target_layer_ids")}
        return {**rest, **taps, **head, **own, "architectures": ["Gemma4DSparkModel"]}
    said = {"sample_from_anchor": True} if layout.endswith("anchor") else {}
    kind = {"architectures": ["DSparkDraftModel"], "speculators_model_type": "dspark"}
    return {**as_speculators(config), **kind, **head, **said}


def write_dspark(folder: Path, layout: str, table: Tensor, count: int | None = None, **changes: Any) -> ReferenceDSpark:
    """Saves a random drafter in this layout, beside a target whose raw embedding and head are ``table`` [vocabulary,
    hidden], and returns what it should draft. ``count``: tokens of a vocabulary of its own."""
    ours, gemma = layout.startswith(("SpecForge", "DeepSpec")), layout.endswith("Gemma")
    changes |= {"final_logit_softcapping": 3.0} if gemma else {}
    kinds = [FULL, FULL] if ours else [SLIDING, FULL]
    causal = {"is_causal": False} if ours else {}
    config = dspark_config(kinds, [0, 1], 2, shift_label=layout != "speculators", **HEADS, **changes)
    weights = drafter_weights(config, seed=2)
    for index in range(2 if gemma else 0):
        begin = f"layers.{index}."
        del weights[f"{begin}self_attn.v_proj.weight"]
        norms = (f"{begin}{place}_feedforward_layernorm.weight" for place in ("pre", "post"))
        weights |= {name: 1 + 0.25 * torch.randn(64) for name in norms} | {f"{begin}layer_scalar": torch.tensor([0.8])}
    head = table
    if count is not None:
        brought = own_tables(64, VOCAB_SIZE, count, embedding=False)
        weights |= brought | {AFTER: weights[AFTER][:count].clone()}
        head = brought["lm_head.weight"]
    stored = dict(weights)
    if layout.startswith("DeepSpec"):
        stored |= {"embed_tokens.weight": table.contiguous(), "lm_head.weight": table.clone()}
    elif layout != "SpecForge":
        stored |= {"embed_tokens.weight": table.contiguous(), "verifier_norm.weight": torch.ones(64)}
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(
        json.dumps(published(layout, config) | ({"draft_vocab_size": count} if count else {}))
    )
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    # SpecForge's rows and Gemma's own are scaled as the target's are, Gemma's by 64 ** 0.5.
    scale = 8.0 if layout in ("SpecForge", "DeepSpec, Gemma") else 1.0
    return ReferenceDSpark({**config, **causal}, weights, table * scale, head)


def referenced_pair(folder: Path, write: Callable[[Path, Tensor], Reference]) -> ReferencedPair:
    """A target beside the drafter that ``write`` saves, given the target's raw embedding."""
    random_target([SLIDING, FULL], False, seed=2, **HEADS).save_pretrained(folder / "target")
    target = load_target(folder / "target", CPU, no_progress)
    target.config = replace(target.config, stop_token_ids=())
    reference = write(folder / "drafter", target.embed_tokens.weight)
    drafter = load_drafter(folder / "drafter", target, no_progress)
    assert isinstance(drafter, DFlashDrafter)
    return ReferencedPair(target, drafter, reference)


def dspark_pair(folder: Path, layout: str, count: int | None = None, **changes: Any) -> ReferencedPair:
    return referenced_pair(folder, lambda drafter, table: write_dspark(drafter, layout, table, count, **changes))


@torch.inference_mode()
def assert_drafts_are_the_references(pair: ReferencedPair, answer: Answer, prompt: Sequence[int]) -> int:
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


def answers(pair: ReferencedPair, tokens: int, **how: Any) -> tuple[Answer, Answer]:
    """An answer with speculation and one without, of a decoder whose text never stops by itself."""
    prompt, wanted = prompt_ids(30), settings(max_new_tokens=tokens, block_size=16, **how)
    decoders = Decoder(pair.target, pair.drafter, 64 + tokens), Decoder(pair.target, None, 64 + tokens)
    drafted, alone = (run_turn(decoder, prompt, wanted) for decoder in decoders)
    return drafted, alone


class Damage(NamedTuple):
    """What is wrong with a drafter's files, and words of which one names it."""

    field: str
    value: Any
    words: tuple[str, ...]


NOT_SIZES = (-1, 0, 1.5, "x", True, [], 10**9)
FIELDS: dict[str, tuple[tuple[Any, ...], tuple[str, ...]]] = {
    "markov_rank": ((-1, 0, 1.5, "x", True, [], 10**9, 24), ("markov_rank", "markov_head")),
    "markov_head_type": (("rnn", "novel", 3, "gated"), ("markov_head",)),
    "enable_confidence_head": ((False, 1, "yes"), ("confidence_head",)),
    "confidence_head_with_markov": ((False, 1, "yes"), ("confidence_head",)),
    "mask_token_id": ((None, -1, 1.5, "x", True, 10**6, VOCAB_SIZE), ("mask", "10000")),
    "taps": ((None, [], "x", [-1, 1], [0, 9], [1, 1], [1], [0, 1, 1], [0.5, 1], 3), ("layer", "fc.weight")),
    "block_size": ((-1, 0, 1, 1.5, "x", True, 10**6), ("block_size",)),
    "sample_from_anchor": ((1, "x", []), ("sample_from_anchor",)),
    "vocab_size": ((None, *NOT_SIZES, VOCAB_SIZE - 1), ("vocab",)),
    "hidden_size": ((None, *NOT_SIZES, 48), ("hidden_size", "width", "weight")),
    "intermediate_size": ((None, *NOT_SIZES, 48), ("intermediate_size", "mlp")),
    "num_hidden_layers": ((None, *NOT_SIZES, 1, 3), ("num_hidden_layers", "layer")),
    "head_dim": ((-2, 0, 1.5, 15, "x", 32), ("head_dim", "self_attn")),
    "num_attention_heads": ((*NOT_SIZES, 4), ("num_attention_heads", "self_attn")),
    "hidden_act": (("gelu_pytorch_tanh", 3), ("hidden_act",)),
    "draft_vocab_size": ((-1, 0, 1.5, "x", 10**9, 200), ("draft_vocab_size", "d2t", "vocabulary")),
}
"""For each field of a drafter, values that are refused, and words of which a refusal has one."""


def damages(layout: str) -> list[Damage]:
    """Everything in ``FIELDS`` that this layout has, and what may befall a tensor."""
    ours = layout.startswith(("SpecForge", "DeepSpec"))
    taps = "target_layer_ids" if ours else "aux_hidden_state_layer_ids"
    known = {taps if field == "taps" else field: said for field, said in FIELDS.items()}
    if ours:
        del known["draft_vocab_size"]
    if layout.endswith("Gemma"):
        known["global_head_dim"] = known.pop("head_dim")
        known["hidden_activation"] = (("silu", 3), ("hidden_activation",))
        del known["hidden_act"]
    fields = [Damage(field, value, words) for field, (values, words) in known.items() for value in values]
    names = ("fc.weight", "norm.weight", "layers.1.mlp.up_proj.weight", BEFORE, AFTER, "confidence_head.proj.bias")
    if layout.startswith("DeepSpec"):  # which brings its tables
        fields += [Damage("lm_head.weight", what, ("lm_head",)) for what in ("cut", "doubled", "NaN", "other")]
    return fields + [
        Damage(name, what, (name,)) for name in names for what in ("lost", "cut", "doubled", "NaN", "other")
    ]


def damage(folder: Path, layout: str, wrong: Damage, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Writes a drafter's files with one thing wrong."""
    said, stored, name = json.loads(json.dumps(config)), dict(tensors), wrong.field
    if name not in tensors:
        inner = {"SpecForge": "dflash_config", "DeepSpec": ""}.get(layout, "transformer_layer_config")
        holder = next((part for part in (said.get(inner, {}), said) if name in part), said)
        holder[name] = wrong.value
    elif wrong.value == "lost":
        del stored[name]
    elif wrong.value == "cut":
        stored[name] = stored[name][..., :-1].contiguous() if stored[name].ndim > 1 else stored[name].repeat(2)
    elif wrong.value == "doubled":
        stored[f"model.{name}"] = stored[name].clone()
    elif wrong.value == "NaN":
        stored[name] = stored[name].clone()
        stored[name].view(-1)[-1] = float("nan")
    else:
        stored[name] = stored[name].to(torch.int32)
    (folder / "config.json").write_text(json.dumps(said))
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})


def unnamed(folder: Path, target: TargetModel, tried: Sequence[Damage], write: Callable[[Damage], None]) -> list[str]:
    """Those damages of a drafter's folder that are read as if nothing were wrong, or refused without a name or in
    another way than with exit code 3."""
    silent = []
    for wrong in tried:
        write(wrong)
        try:
            load_drafter(folder, target, no_progress)
        except EngineFailure as failure:
            if exit_code_for(failure.kind) == 3 and failure.hint and any(word in str(failure) for word in wrong.words):
                continue
            silent.append(f"{wrong.field} {wrong.value!r}: {failure}")
        else:
            silent.append(f"{wrong.field} {wrong.value!r}: loads")
    return silent


def silent_damages(folder: Path, layout: str, every: int = 1) -> tuple[int, list[str]]:
    """How many damages were tried, and those that were not refused by name."""
    pair = dspark_pair(folder, layout)
    config = json.loads((folder / "drafter" / "config.json").read_text())
    tensors = load_file(folder / "drafter" / "model.safetensors")
    tried, drafter = damages(layout)[::every], folder / "drafter"
    write = partial(damage, drafter, layout, config=config, tensors=tensors)
    return len(tried), unnamed(drafter, pair.target, tried, write)
