"""MTP assistants: drafts are those of ``transformers``' assisted decoding, texts are the target's own, and what doesn't
belong to a target is refused in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from transformers import DynamicCache, Gemma4ForConditionalGeneration
from transformers.generation.candidate_generator import SinglePositionMultiTokenCandidateGenerator as TheirDrafts

from engine.decoding.decoder import Decoder
from engine.errors import WeightsFailure
from engine.loading.checkpoint import load_drafter, load_target, read_drafter_config, read_target_config
from engine.models.drafter import Drafter
from engine.models.gemma4.modules import Gemma4
from support.checkpoints import FULL, SLIDING, WINDOW, randomised, target_config
from tests.engine.assistants import assistant_of, lending_keys, write_assistant
from tests.engine.conftest import CPU, no_progress
from tests.engine.small_decoders import Answer, prompt_ids, run_turn, settings

FEW_TOKENS = 12
"""Of a vocabulary so small, some of a random drafter's guesses are right."""
DRAFTS = 4


@dataclass(frozen=True)
class Both:
    """A pair, as the engine has it and as ``transformers`` has it."""

    target: Gemma4
    drafter: Drafter
    their_target: Gemma4ForConditionalGeneration
    their_assistant: Any


def random_pair(folder: Path, moe: bool, seed: int) -> Both:
    config = target_config([SLIDING, FULL] * 2, moe)
    config.text_config.vocab_size = config.text_config.vocab_size_per_layer_input = FEW_TOKENS
    with lending_keys():
        theirs = randomised(Gemma4ForConditionalGeneration(config), seed)
    theirs.generation_config.eos_token_id = 1
    theirs.save_pretrained(folder / "target")
    assistant = write_assistant(folder / "assistant", theirs, seed)
    target = load_target(folder / "target", CPU, no_progress)
    target.config = replace(target.config, stop_token_ids=())
    theirs.generation_config.eos_token_id = None
    return Both(target, load_drafter(folder / "assistant", target, no_progress), theirs, assistant)


@pytest.fixture(scope="module", params=[False, True], ids=["dense", "experts"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return random_pair(tmp_path_factory.mktemp("mtp"), request.param, seed=3)


def small_prompt(length: int, seed: int) -> list[int]:
    """Without token 0, with which ``transformers`` pads."""
    return [1 + token % (FEW_TOKENS - 1) for token in prompt_ids(length, seed)]


@contextmanager
def their_drafts(committed_only: bool) -> Iterator[list[tuple[int, ...]]]:
    """What ``transformers`` drafts, round by round. ``committed_only``: it shows the assistant also the key and value
    of a draft that was just refused, where the anchor will stand; this hides them, as the engine does."""
    drafted: list[tuple[int, ...]] = []
    original = TheirDrafts.get_candidates

    def recording(self: Any, input_ids: Any, *, model_outputs: Any, is_first_iteration: bool, **more: Any) -> Any:
        if committed_only and not is_first_iteration:
            end, lent = input_ids.shape[1] - 1, model_outputs.shared_kv_states
            model_outputs.shared_kv_states = {kind: (k[:, :, :end], v[:, :, :end]) for kind, (k, v) in lent.items()}
        found = original(self, input_ids, model_outputs=model_outputs, is_first_iteration=is_first_iteration, **more)
        if found[1] is not None:
            drafted.append(tuple(found[0][0, input_ids.shape[1] :].tolist()))
        return found

    with patch.object(TheirDrafts, "get_candidates", recording):
        yield drafted


def their_answer(both: Both, prompt: list[int], tokens: int, **more: Any) -> list[int]:
    both.their_assistant.generation_config.num_assistant_tokens = DRAFTS
    out = both.their_target.generate(
        torch.tensor([prompt]), assistant_model=both.their_assistant, max_new_tokens=tokens, do_sample=False, **more
    )
    said: list[int] = out[0, len(prompt) :].tolist()
    return said


def our_answer(both: Both, prompt: list[int], tokens: int, **more: Any) -> Answer:
    wanted = settings(**{"block_size": DRAFTS + 1, "max_new_tokens": tokens} | more)
    return run_turn(Decoder(both.target, both.drafter, 256), prompt, wanted)


def drafts_of(answer: Answer) -> list[tuple[int, ...]]:
    return [done.draft_ids for done in answer.rounds if done.draft_ids]


@pytest.mark.parametrize(("length", "seed"), [(3, 0), (WINDOW + 1, 2), (3 * WINDOW, 3)])
def test_every_draft_is_that_of_transformers(both: Both, length: int, seed: int) -> None:
    """From well below the window to well beyond it, through refused and accepted drafts."""
    prompt = small_prompt(length, seed)
    with their_drafts(committed_only=True) as theirs:
        said = their_answer(both, prompt, 40, past_key_values=DynamicCache())
    ours = our_answer(both, prompt, 40)
    assert ours.ids == said
    assert drafts_of(ours) == theirs
    assert 0 < sum(done.num_accepted for done in ours.rounds) < sum(map(len, theirs))


def test_the_first_draft_is_that_of_transformers_as_it_is(both: Both) -> None:
    """Where nothing was refused before, it shows its assistant what the engine shows."""
    for seed, length in enumerate((1, 5, WINDOW - 1, WINDOW, WINDOW + 1, WINDOW + 2, 2 * WINDOW)):
        prompt = small_prompt(length, seed)
        with their_drafts(committed_only=False) as theirs:
            their_answer(both, prompt, 6)
        assert drafts_of(our_answer(both, prompt, 6))[0] == theirs[0], length


def test_the_text_is_the_targets_own(both: Both) -> None:
    """Sampled; greedy texts are those of ``transformers``, see above."""
    for seed, length in enumerate((2, 50)):
        prompt, wanted = small_prompt(length, seed), {"temperature": 0.8, "seed": seed, "max_new_tokens": 24}
        plain = run_turn(Decoder(both.target, None, 256), prompt, settings(**wanted))
        for block in (2, 9):
            assert our_answer(both, prompt, 24, block_size=block, **wanted).ids == plain.ids


def test_turns_go_on_back_and_without_speculation(both: Both) -> None:
    """Whatever stands in the caches, a draft is that of a decoder which starts from nothing."""
    decoder = Decoder(both.target, both.drafter, 256)
    text = small_prompt(30, 7)
    for step, speculation in enumerate((True, False, True, True)):
        wanted = settings(block_size=4, max_new_tokens=9, speculation=speculation)
        answer = run_turn(decoder, text, wanted)
        fresh = run_turn(Decoder(both.target, both.drafter, 256), text, wanted)
        assert (answer.ids, drafts_of(answer)) == (fresh.ids, drafts_of(fresh)), step
        text = [*text, *answer.ids][: -5 if step == 2 else None] + small_prompt(3, step)


REFUSALS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda c: c.update(backbone_hidden_size=128), "made for a target of width 128; this one's is 64"),
    (lambda c: c["text_config"].update(vocab_size=640), "vocabulary of 640 tokens; this target's has 512"),
    (lambda c: c["text_config"].update(head_dim=32), "reads 2 heads of 32 from the target's last sliding attention"),
    (lambda c: c["text_config"].update(sliding_window=8), "turns or sees them otherwise"),
    (lambda c: c["text_config"].update(num_kv_shared_layers=2), "keys or embeddings of their own"),
    (lambda c: c["text_config"].update(enable_moe_block=True), "enable_moe_block is set"),
    (lambda c: c.update(use_ordered_embeddings=True), "orders its vocabulary by centroids"),
    (lambda c: c.update(tie_word_embeddings=False), "output head of its own"),
    (lambda c: c.update(architectures=["LlamaForCausalLM"]), "LlamaForCausalLM"),
    (lambda c: c.pop("backbone_hidden_size"), "lacks backbone_hidden_size"),
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    with lending_keys():
        theirs = randomised(Gemma4ForConditionalGeneration(target_config([SLIDING, FULL], False)), 1)
    theirs.save_pretrained(folder / "target")
    assistant_of(theirs, 1).save_pretrained(folder / "assistant")
    return folder


@pytest.mark.parametrize(("change", "said"), REFUSALS)
def test_a_foreign_assistant_is_refused(
    stored: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    config = json.loads((stored / "assistant" / "config.json").read_text())
    change(config)
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(WeightsFailure, match=said) as failure:
        read_drafter_config(tmp_path, read_target_config(stored / "target"))
    assert failure.value.hint
