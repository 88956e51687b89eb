"""At temperature > 0 the loop's output follows the target's distribution, whatever the drafter proposes."""

from __future__ import annotations

import pytest
import torch

from engine.decoding.decoder import Decoder
from engine.kv_cache.cache import Cache
from engine.models.gemma4.modules import Gemma4
from engine.sampling.sampling import target_probabilities
from tests.engine.conftest import CPU, TinyPair
from tests.engine.sampling.chi_square import chi_square_p
from tests.engine.small_decoders import prompt_ids, run_turn, scripted, set_stops, settings
from tests.pace import only_in_ci

TURNS = 500
TOP_K = 4


@torch.inference_mode()
def next_probabilities(target: Gemma4, ids: list[int], top_p: float) -> dict[int, float]:
    cache = Cache(target.config.layers, 64, 64, torch.float32, CPU)
    hidden = target(torch.tensor(ids), 0, cache).hidden[-1:]
    row = target_probabilities(target.logits(hidden), 1.0, TOP_K, top_p)[0]
    return {int(token): row[token].item() for token in row.nonzero()}


@pytest.mark.parametrize("top_p", [0.9, only_in_ci(1.0)])
def test_three_tokens_follow_the_joint_distribution(
    top_p: float, dense_pair: TinyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Token by token enumeration of every text of three tokens against what the loop says under many seeds.

    The drafter proposes the likeliest token of each position, so that some drafts are accepted and some refused.
    """
    target, prompt = dense_pair.target, list(prompt_ids(12, 1))
    set_stops(monkeypatch, target)
    expected: dict[tuple[int, ...], float] = {(): 1.0}
    likeliest = []
    for _ in range(3):
        expected = {
            (*text, token): p * q
            for text, p in expected.items()
            for token, q in next_probabilities(target, [*prompt, *text], top_p).items()
        }
        last: dict[int, float] = {}
        for text, p in expected.items():
            last[text[-1]] = last.get(text[-1], 0.0) + p
        likeliest.append(max(last, key=lambda token: last[token]))
    assert sum(expected.values()) == pytest.approx(1)

    drafter = scripted(dense_pair.drafter, lambda position, _, count: likeliest[position - len(prompt) + 1 :][:count])
    decoder = Decoder(target, drafter, 64)
    seen = dict.fromkeys(expected, 0)
    accepted = drafted = 0
    for seed in range(TURNS):
        wanted = settings(temperature=1.0, top_k=TOP_K, top_p=top_p, seed=seed, max_new_tokens=3)
        answer = run_turn(decoder, prompt, wanted)
        seen[tuple(answer.ids)] += 1
        accepted += sum(done.num_accepted for done in answer.rounds)
        drafted += sum(len(done.draft_ids) for done in answer.rounds)
    assert 0.1 < accepted / drafted < 0.9
    assert chi_square_p(list(seen.values()), [TURNS * p for p in expected.values()]) > 0.01
