"""The probabilities that a step tells: what the target gave each token that it emitted, and each draft it could judge.

The oracle is one forward pass of ``transformers`` over the whole text, so that nothing of the rounds is in it.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.commands import GenerationSettings
from engine.decoding.decoder import Decoder, Round
from engine.sampling.sampling import target_probabilities
from tests.engine.conftest import TinyPair
from tests.engine.small_decoders import MAX_CONTEXT, faulty, oracle, prompt_ids, run_turn, scripted, settings

TOLERANCE = 2e-4
"""Probabilities of two programs in fp32, over a vocabulary of some hundred tokens."""
SAMPLERS: dict[str, dict[str, float]] = {
    "greedy": {},
    "warm": {"temperature": 0.8, "seed": 5},
    "truncated": {"temperature": 1.5, "seed": 7, "top_k": 40, "top_p": 0.8},
}


@pytest.fixture
def pair(unstopped_pair: TinyPair) -> TinyPair:
    return unstopped_pair


def distributions(logits: Tensor, wanted: GenerationSettings) -> Tensor:
    """What the target samples from, [n, vocab]: at temperature 0 its softmax."""
    if wanted.temperature == 0:
        return logits.softmax(dim=-1)
    return target_probabilities(logits, wanted.temperature, wanted.top_k, wanted.top_p)


def rounds_of(pair: TinyPair, wanted: GenerationSettings) -> tuple[list[int], tuple[Round, ...]]:
    """A prompt, and rounds of a drafter that is right three times in four."""
    prompt = prompt_ids(30)
    text = run_turn(Decoder(pair.target, None, MAX_CONTEXT), prompt, wanted).ids
    drafter = scripted(pair.drafter, faulty(oracle((*prompt, *text)), 0.25, seed=3))
    return list(prompt), run_turn(Decoder(pair.target, drafter, MAX_CONTEXT), prompt, wanted).rounds


@pytest.mark.parametrize("sampler", SAMPLERS)
@torch.inference_mode()
def test_they_are_those_of_one_pass_over_the_whole_text(sampler: str, pair: TinyPair) -> None:
    wanted = settings(max_new_tokens=60, **SAMPLERS[sampler])
    prompt, rounds = rounds_of(pair, wanted)
    text = prompt + [token for done in rounds for token in done.emitted]
    rows = distributions(pair.reference(torch.tensor([text])).logits[0].float(), wanted)
    position, rejected = len(prompt), 0
    for done in rounds:
        assert len(done.probabilities) == len(done.emitted)
        for place, (token, probability) in enumerate(zip(done.emitted, done.probabilities, strict=True)):
            assert probability == pytest.approx(rows[position + place - 1, token].item(), abs=TOLERANCE)
        # A draft behind the first wrong one stands behind a text that isn't the answer's: nothing is said of it.
        judged = min(done.num_accepted + 1, len(done.draft_ids))
        assert len(done.target_probabilities) == judged
        for place, (draft, probability) in enumerate(zip(done.draft_ids, done.target_probabilities, strict=False)):
            assert probability == pytest.approx(rows[position + place - 1, draft].item(), abs=TOLERANCE)
        rejected += judged > done.num_accepted
        position += len(done.emitted)
    assert rejected > 3 and sum(done.num_accepted for done in rounds) > 20, "both kinds were looked at"


def test_a_draft_that_was_cut_off_has_no_chance(pair: TinyPair) -> None:
    """With top-k the target gives nothing to what it would never say; the raw softmax does."""
    wanted = settings(max_new_tokens=60, temperature=1.5, seed=7, top_k=2)
    _, rounds = rounds_of(pair, wanted)
    given = [p for done in rounds for p in done.target_probabilities[done.num_accepted :]]
    assert given and 0.0 in given
    assert all(probability > 0 for done in rounds for probability in done.probabilities)
