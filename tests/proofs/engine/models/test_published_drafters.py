"""Drafters in each published layout draft what the published mathematics says, at every position of a text, and change
no text. The references share no code with the engine; the features are those of ``transformers``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from engine.decoding.decoder import Decoder
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.dflash.modules import DFlashDrafter
from engine.models.drafter import Draft, Drafter
from engine.models.target import TargetModel
from support.checkpoints import FULL, SLIDING, VOCAB_SIZE, drafter_config, random_target, second_config, write_drafter
from support.eagle import ReferenceEagle, default_taps, eagle_config, write_eagle
from support.reference_drafter import ReferenceDrafter
from support.speculators import write_speculators
from tests.engine.conftest import CPU, no_progress
from tests.engine.models import pre_norm, qwen3_5
from tests.engine.small_decoders import ScriptedDrafter, faulty, oracle, prompt_ids, run_turn, set_stops, settings

DEPTH, RECURRENT_DEPTH, ROUNDS, DRAFTS, CONTEXT = 7, 12, 100, 4, 256
PROMPT = prompt_ids(30)

References = Callable[[Tensor, Sequence[int], int], list[int]]
"""(features of all committed rows, their tokens and the anchor, how many) -> drafts."""


@dataclass(frozen=True)
class Published:
    """A drafter in a layout, beside the features that it reads and what it should draft."""

    taps: Sequence[int]
    write: Callable[[Path, Tensor], References]
    """Writes it into a folder, for a target with this embedding."""


def eagle(
    layout: str,
    family_taps: Sequence[int],
    count: int | None = 40,
    tables: dict[str, bool] | None = None,
    **fields: Any,
) -> Published:
    def write(folder: Path, embedding: Tensor) -> References:
        tensors = write_eagle(folder, layout, VOCAB_SIZE, family_taps, count=count, **(tables or {}), **fields)
        return ReferenceEagle(eagle_config(layout, VOCAB_SIZE, count, family_taps, **fields), tensors, embedding).draft

    return Published(family_taps, write)


def dflash(first_drafts: bool, embedding_too: bool) -> Published:
    """In the speculators layout: raw rows of the embedding, no cap, sliding layers causal, a head of its own."""
    taps = [0, 3]
    config = drafter_config([SLIDING, FULL], taps, DEPTH, block_size=8)

    def write(folder: Path, embedding: Tensor) -> References:
        tensors = write_speculators(folder, config, 3, 40, embedding_too, sample_from_anchor=first_drafts)
        reference, rows = ReferenceDrafter(config, tensors), tensors.get("embed_tokens.weight", embedding)
        tokens = torch.arange(40) + tensors["d2t"]

        def draft(features: Tensor, ids: Sequence[int], count: int) -> list[int]:
            block = torch.full((count if first_drafts else count + 1,), config["dflash_config"]["mask_token_id"])
            block[0] = ids[-1]
            hidden = reference.hidden(features, rows[block])
            logits = (hidden if first_drafts else hidden[1:]) @ tensors["lm_head.weight"].T
            return tokens[logits.argmax(dim=-1)].tolist()

        return draft

    return Published(taps, write)


def second(of_drafted: bool) -> Published:
    """A DFlash 2 in the speculators layout that drafts among few tokens. ``of_drafted``: whether its file has those
    alone that follow one, not all tokens."""
    taps = [0, 3]
    config = second_config(taps, DEPTH)

    def write(folder: Path, embedding: Tensor) -> References:
        tensors = write_speculators(folder, config, 3, 40)
        tokens, name = torch.arange(40) + tensors["d2t"], "candidate_selector.successor_codebook"
        if of_drafted:
            tensors[name] = tensors[name][tokens].clone()
            save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        follow = tensors[name] if of_drafted else tensors[name][tokens]
        reference = ReferenceDrafter(config, tensors)

        def draft(features: Tensor, ids: Sequence[int], count: int) -> list[int]:
            block = torch.full((count + 1,), config["dflash_config"]["mask_token_id"])
            block[0] = ids[-1]
            hidden, drafted = reference.hidden(features, embedding[block])[1:], [ids[-1]]
            for row in hidden:
                logits = row @ tensors["lm_head.weight"].T
                state = tensors["candidate_selector.hidden_projection.weight"] @ row
                pairs = follow @ (tensors["candidate_selector.predecessor_codebook"][drafted[-1]] * state)
                among = torch.zeros(40, dtype=torch.bool).index_fill(0, logits.topk(16).indices, True)
                drafted.append(int(tokens[(logits + pairs).masked_fill(~among, -torch.inf).argmax()]))
            return drafted[1:]

        return draft

    return Published(taps, write)


def retrained() -> Published:
    """z-lab's for Qwen3.5 and 3.6 as they were trained anew: six layers, a window of 4096, eight taps."""
    taps = [1, 2, 3, 4, 5, 6, 7, 8]
    config = drafter_config([*[SLIDING] * 5, FULL], taps, RECURRENT_DEPTH, sliding_window=4096, rope_theta=1e7)
    config["final_logit_softcapping"] = None

    def write(folder: Path, embedding: Tensor) -> References:
        tensors = write_drafter(folder, config, seed=3)
        reference = ReferenceDrafter(config, tensors)

        def draft(features: Tensor, ids: Sequence[int], count: int) -> list[int]:
            block = torch.full((count + 1,), config["dflash_config"]["mask_token_id"])
            block[0] = ids[-1]
            hidden = reference.hidden(features, embedding[block])[1:]
            return (hidden @ embedding.T).argmax(dim=-1).tolist()

        return draft

    return Published(taps, write)


DRAFTERS = {
    "SafeAILab": eagle("SafeAILab", default_taps(DEPTH)),
    "SpecForge": eagle("SpecForge", [0, 2, 4], tables={"head_norms": True}, fc_norm=True, norm_output=True),
    "NVIDIA": eagle("NVIDIA", [1, 3], count=None),
    "speculators": eagle("speculators", [0, 2, 6], norm_before_fc=True),
    "speculators, EAGLE-3.1": eagle(
        "speculators", [0, 2, 4], fc_norm=True, norm_output=True, norm_before_residual=False
    ),
    "speculators, two layers, an embedding of its own": eagle(
        "speculators", [0, 2, 4], tables={"embedding": True, "head_norms": True}, num_hidden_layers=2
    ),
    "SpecForge, three layers": eagle("SpecForge", [1, 3], num_hidden_layers=3, norm_output=True),
    "DeepSpec": eagle("DeepSpec", [0, 1, 2, 4, 5], count=None, tables={"embedding": True, "head_norms": True}),
    "DeepSpec, Gemma": eagle("DeepSpec, Gemma", [0, 1, 2, 4, 5], count=None, tables={"embedding": True}),
    "DeepSpec, Gemma, the target's embedding": eagle("DeepSpec, Gemma", [0, 2, 4], count=None),
    "z-lab, for Qwen3.5": retrained(),
    "speculators DFlash 2, few tokens": second(True),
    "speculators DFlash 2, few tokens, all may follow": second(False),
    "speculators DFlash": dflash(False, True),
    "speculators DFlash, first row drafts": dflash(True, False),
}


RETRAINED = "z-lab, for Qwen3.5"
SCALED = ("speculators", "speculators, two layers, an embedding of its own", "speculators DFlash")
"""Those that are read beside a target, too, that scales its embeddings and caps its logits."""


class Watched(ScriptedDrafter):
    """Drafts as the real drafter does, which is noted, and says what mostly is right, so that rounds accept many."""

    def __init__(self, real: Drafter, text: Sequence[int]):
        super().__init__(cast(DFlashDrafter, real), faulty(oracle(text), 0.5, 1))
        self.seen: list[tuple[int, list[int]]] = []

    def draft(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> Draft:  # type: ignore[override]
        self.seen.append((cache.length, self._real.draft(target, anchor, block_size, cache).ids.tolist()))
        ids = list(self.proposal(cache.length, anchor, block_size - 1))
        return Draft(torch.tensor(ids), torch.full((block_size - 1,), 0.5))


def target_of(family: str, folder: Path) -> PreTrainedModel:
    if family == "gemma4":
        model: PreTrainedModel = random_target([*[SLIDING, SLIDING, FULL] * 2, FULL], False, seed=4)
        model.save_pretrained(folder)
        return model
    if family == "qwen3_5":
        kinds = [*[qwen3_5.RECURS] * 3, qwen3_5.ATTENDS] * (RECURRENT_DEPTH // 4)
        tied = {"num_hidden_layers": RECURRENT_DEPTH, "layer_types": kinds, "tie_word_embeddings": True}
        return qwen3_5.write_target(folder, 4, **tied)  # type: ignore[no-any-return]
    return pre_norm.write_target(folder, family, 4, num_hidden_layers=DEPTH)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("name", "family"),
    [
        *((name, "llama") for name in DRAFTERS if name != RETRAINED and "Gemma" not in name),
        *((name, "gemma4") for name in (*SCALED, *(name for name in DRAFTERS if "Gemma" in name))),
        (RETRAINED, "qwen3_5"),
    ],
)
@torch.inference_mode()
def test_drafts_of_a_hundred_rounds(name: str, family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = DRAFTERS[name]
    theirs = target_of(family, tmp_path / "target")
    target = load_target(tmp_path / "target", CPU, no_progress)
    set_stops(monkeypatch, target)  # type: ignore[arg-type]
    reference = published.write(tmp_path / "drafter", target.embed_tokens.weight)
    drafter = load_drafter(tmp_path / "drafter", target, no_progress)
    asked = [
        settings(max_new_tokens=115, block_size=DRAFTS + 1),
        settings(max_new_tokens=115, block_size=DRAFTS + 1, temperature=0.8, seed=3),
    ]
    rounds = 0
    for wanted in asked:
        plain = run_turn(Decoder(target, None, CONTEXT), PROMPT, wanted)
        text = [*PROMPT, *plain.ids]
        watched = Watched(drafter, text)
        answer = run_turn(Decoder(target, cast(Drafter, watched), CONTEXT), PROMPT, wanted)
        assert answer.ids == plain.ids
        hidden = theirs(torch.tensor([text]), output_hidden_states=True).hidden_states
        states = [hidden[tap + 1][0] for tap in published.taps]
        if (last := len(target.config.layers) - 1) in published.taps:  # transformers norms the last
            states[-1] = outputs_of(theirs, text)[last]
        features = torch.cat(states, dim=-1)
        for end, drafts in watched.seen:
            assert drafts == reference(features[:end], text[: end + 1], len(drafts)), end
        accepted = [done.num_accepted for done in answer.rounds]
        assert max(accepted) == DRAFTS and 0 in accepted[1:]
        rounds += len(watched.seen)
    assert rounds >= ROUNDS


def outputs_of(model: PreTrainedModel, text: Sequence[int]) -> list[Tensor]:
    """The outputs of all layers."""
    found: list[Tensor] = []
    layers = model.get_decoder().layers

    def note(_module: object, _inputs: object, output: Any) -> None:
        found.append((output[0] if isinstance(output, tuple) else output)[0])

    hooks = [layer.register_forward_hook(note) for layer in layers]
    model(torch.tensor([text]))
    for hook in hooks:
        hook.remove()
    return [each if each.dim() == 2 else each[0] for each in found]
