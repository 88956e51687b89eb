"""What rounds promise, whoever runs them, whoever drafts, of every family: the text is the target's own, an answer ends
exactly where it should, and the caches hold what a fresh pass would write. Each cell is a conversation of two turns
with random settings, on the device (in Triton's interpreter) and by the host, which tell the same of every round."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from engine.commands import GenerationSettings
from engine.decoding.decoder import Decoder
from engine.kv_cache.delta_state import DeltaState
from engine.speculation.choice import RoundPlan
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.policy import Policy
from engine.speculation.trees import WIDE_ROWS
from support.ordered_sums import sum_in_order
from tests.engine.decoding.pairs import (
    Drafts,
    Pair,
    Steady,
    assert_matches_are_those_of_the_text,
    assert_same_rounds,
    by_host,
    choices_of,
    on_device,
    repeating,
    told,
)
from tests.engine.small_decoders import (
    Answer,
    assert_caches_equal_recomputation,
    prompt_ids,
    run_turn,
    set_stops,
    settings,
)

FLAT = CostTable((0,), (RoundCosts(4.0, tuple(20.0 + 0.02 * row for row in range(16))),))
"""Sixteen rows cost hardly more than one: whole trees are verified."""
STEEP = CostTable((0,), (RoundCosts(4.0, tuple(20.0 + 0.5 * row for row in range(16))),))
"""Some of a draft is left out."""
LONG = CostTable((0,), (RoundCosts(0.3, tuple(2.0 + 0.02 * row for row in range(WIDE_ROWS[-1])), 0.01, 0.02),))
ALONE, BESIDE, DRAFT, NEITHER = RoundPlan(False, True), RoundPlan(True, True), RoundPlan(True), RoundPlan(False)


@dataclass(frozen=True)
class Way:
    """Who drafts, and how much of it is verified."""

    policy: Callable[[int], Policy] | None = None
    """Of the first turn, 0, and of the second."""
    right: Sequence[int | None] | None = (0, 0, None, 0, 0, 0, None)
    """Of the drafts; None: whatever the drafter drafts."""
    shows: Callable[[Answer], object] = lambda answer: max(done.num_accepted for done in answer.rounds) > 1
    """That the way was taken."""
    repeats: bool = False
    speculation: bool = True
    tokens: int = 7
    """Of an answer, or up to three more."""
    blocks: Sequence[int] = (3, 7, 16)


def shows_match(answer: Answer) -> bool:
    return any(done.match for done in answer.rounds)


WAYS = {
    "none": Way(speculation=False, shows=lambda answer: {done.verify_width for done in answer.rounds} == {0, 1}),
    "block": Way(),
    "own drafts": Way(right=None, shows=lambda answer: any(done.draft_ids for done in answer.rounds), tokens=3),
    "own drafts, few": Way(
        right=None, shows=lambda answer: any(done.draft_ids for done in answer.rounds), tokens=3, blocks=(3,)
    ),
    "width": Way(lambda _: Steady(STEEP)),
    "tree": Way(
        lambda turn: Steady(STEEP if turn else FLAT),
        (0, 1, 0, 2, None),
        lambda answer: any(done.tree for done in answer.rounds),
    ),
    "own trees": Way(
        lambda _: told(FLAT, DRAFT, BESIDE), None, lambda answer: any(done.tree for done in answer.rounds), tokens=8
    ),
    "lookup": Way(lambda _: told(LONG, ALONE), None, shows_match, repeats=True),
    "in turns": Way(lambda _: told(LONG, BESIDE, ALONE, NEITHER, DRAFT), shows=shows_match, repeats=True),
    "beside": Way(lambda _: told(LONG, BESIDE), (0, None, None), shows_match, repeats=True, tokens=14),
}


class Talk:
    """Two turns, both ways, beside decoders that start from nothing and have no drafter."""

    def __init__(self, pair: Pair, way: Way, seed: str):
        self.pair, self.way, self.random = pair, way, random.Random(seed)
        size = self.random.randint(12, 36)
        self.prompt = [*prompt_ids(size, self.random.randrange(99))]
        if way.repeats:
            self.prompt = [0, 1, 2, 3, 1, 2, 0] * 5 + [2, 2]
        self.samplings: list[dict[str, Any]] = [{}, {"temperature": 0.8, "seed": 3, "top_k": 60, "top_p": 0.9}]
        self.random.shuffle(self.samplings)

    def plain(self, prompt: Sequence[int], wanted: GenerationSettings, context: int = 512) -> Answer:
        decoder = Decoder(self.pair.target, None, context)
        return run_turn(decoder, prompt, replace(wanted, speculation=False))

    def wanted(self, turn: int) -> GenerationSettings:
        """Whatever repeats itself is never sampled: of tokens that are much alike that says any."""
        sampling = {} if self.way.repeats else self.samplings[turn]
        block = "auto" if self.way.policy is not None else self.random.choice(self.way.blocks)
        tokens = self.way.tokens + self.random.randint(0, 3)
        return settings(block_size=block, speculation=self.way.speculation, max_new_tokens=tokens, **sampling)

    def run(self, patch: pytest.MonkeyPatch) -> None:
        first = self.wanted(0)
        ends = self.plain(self.prompt, first)
        assert len(ends.ids) == first.max_new_tokens and ends.finish == "length"
        if not self.way.repeats and self.random.random() < 0.5:
            stop = ends.ids[self.random.randrange(2, len(ends.ids))]
            set_stops(patch, self.pair.target, stop)
            ends = self.plain(self.prompt, first)
            assert ends.finish == "stop"
        following = [*self.prompt, *ends.ids, *(self.prompt[:9] if self.way.repeats else prompt_ids(5, 100))]
        context = len(following) + self.way.tokens + self.random.randint(0, 3)
        second = replace(self.wanted(1), max_new_tokens=200)
        whole = self.plain(following, second, context)
        assert whole.finish == ("context" if len(whole.ids) + len(following) == context else "stop")
        right = self.way.right
        drafts = None if right is None else Drafts([*following, *whole.ids], right)
        device = on_device(self.pair, drafts, context)
        host = by_host(self.pair, drafts, context, choices_of(device))
        answers = []
        for turn, (prompt, wanted, expected) in enumerate(((self.prompt, first, ends), (following, second, whole))):
            answered = []
            for decoder in (device, host):
                decoder.use_policy(None if self.way.policy is None else self.way.policy(turn))
                answered.append(run_turn(decoder, prompt, wanted))
                assert_caches_equal_recomputation(decoder)
            assert_same_rounds(*answered)
            assert (answered[1].ids, answered[1].finish) == (expected.ids, expected.finish)
            assert_matches_are_those_of_the_text(prompt, answered[1])
            answers.append(answered[1])
        assert answers[1].num_reused > 0
        assert any(self.way.shows(answer) for answer in answers)


def talk(pair: Pair, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation of two turns."""
    if WAYS[way].repeats:
        pair = repeating(pair)
        # What is looked up fills a whole pass, however short the drafter's block is.
        monkeypatch.setattr(pair.drafter, "config", replace(pair.drafter.config, block_size=7))
        sum_in_order(monkeypatch)  # tokens that are held for one have the same logit, to the last bit
    Talk(pair, WAYS[way], way).run(monkeypatch)


def draft_and_compare_bits(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """In bf16, where sums in another order would soon say something else; what the caches hold, too."""
    sum_in_order(monkeypatch)
    same = Pair(deepcopy(pair.target).bfloat16(), deepcopy(pair.drafter).bfloat16())
    same.target.prepare()
    same.drafter.prepare()
    wanted, prompt = settings(max_new_tokens=7, temperature=0.9, seed=1, block_size=6), prompt_ids(30)
    plain = on_device(same)
    alone = run_turn(plain, prompt, replace(wanted, speculation=False))
    drafting = on_device(same, Drafts([*prompt, *alone.ids], (0, 0, 0, None)))
    drafted = run_turn(drafting, prompt, wanted)
    assert drafted.ids == alone.ids and len(drafted.rounds) < len(alone.rounds)
    end = plain.cache.length
    for one, other in zip(plain.cache.layers, drafting.cache.layers, strict=True):
        ours, theirs = (
            layer.moment(end) if isinstance(layer, DeltaState) else layer.read(layer.first_visible(end), end)  # type: ignore[attr-defined]
            for layer in (one, other)
        )
        assert all(torch.equal(*parts) for parts in zip(ours, theirs, strict=True))
