"""Drafts that are looked up in the text: by host and device alike, whoever else drafts, and never another text."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch

from engine.commands import DraftBy, GenerationSettings
from engine.decoding.decoder import Decoder
from engine.kernels.toolchain.jit import INTERPRETED
from engine.speculation.auto import Auto
from engine.speculation.choice import RoundPlan
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.lookup import LookupMatch, continuation, longest_match
from tests.engine.checkpoints import VOCAB_SIZE
from tests.engine.decoding.test_device_rounds import (
    CONTEXT,
    Pair,
    assert_same_rounds,
    by_host,
    mostly_right,
    on_device,
    pair,
)
from tests.engine.small_decoders import Answer, assert_caches_equal_recomputation, run_turn, settings
from tests.kernels.ordered_sums import sum_in_order
from tests.pace import only_in_ci

__all__ = ["pair"]

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

TABLE = CostTable((0,), (RoundCosts(0.3, tuple(2.0 + 0.02 * row for row in range(16)), 0.01, 0.02),))
AUTO = settings(block_size="auto", max_new_tokens=24)
PROMPT = (*(0, 1, 2, 3, 1, 2, 0) * 5, 2, 2)
LONG_CONTEXT = 4096
ALONE, BESIDE, NEITHER = RoundPlan(False, True), RoundPlan(True, True), RoundPlan(False)


class Told(Auto):
    """Looks up, drafts or does both as it is told, round by round, and learns nothing."""

    plans: tuple[RoundPlan, ...] = ()
    asked = 0

    def plan(self, context: int, length: int) -> RoundPlan:
        self.asked += 1
        plan = self.plans[(self.asked - 1) % len(self.plans)]
        return RoundPlan(plan.draft and self.has_drafter, plan.lookup)

    def observe(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def repeating(pair: Pair) -> Pair:
    """It knows four tokens, so that its texts soon repeat themselves. The others are copies of these, each a little
    smaller than the one before: were they alike, the last bit of a processor's sums would choose between them."""
    target = deepcopy(pair.target)
    token = torch.arange(VOCAB_SIZE)
    with torch.no_grad():
        target.embed_tokens.weight.copy_(target.embed_tokens.weight[token % 4] * (1 - token // 4 / 1024)[:, None])
    target.prepare()
    drafter = deepcopy(pair.drafter)
    drafter.prepare()
    return Pair(target, drafter)


def with_policy(decoder: Decoder, *plans: RoundPlan) -> Decoder:
    policy = Told(TABLE) if plans else Auto(TABLE)
    if isinstance(policy, Told):
        policy.plans = plans
    decoder.use_policy(policy)
    return decoder


def plain(pair: Pair, wanted: GenerationSettings) -> list[int]:
    return run_turn(Decoder(pair.target, None, CONTEXT), PROMPT, replace(wanted, speculation=False)).ids


def assert_matches_are_those_of_the_text(answer: Answer) -> None:
    text = list(PROMPT)
    for done in answer.rounds:
        if done.match is not None:
            assert done.match == longest_match(text)
            assert list(done.draft_ids) == continuation(text, done.match.distance, len(done.draft_ids))
        text += done.emitted


def matches(answer: Answer) -> list[tuple[LookupMatch | None, int]]:
    return [(done.match, done.num_agreed) for done in answer.rounds]


@pytest.mark.parametrize("by", get_args(DraftBy))
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_no_text_depends_on_who_drafts(by: DraftBy, temperature: float, repeating: Pair) -> None:
    wanted = replace(AUTO, draft_by=by, temperature=temperature, seed=5)
    decoder = with_policy(by_host(repeating))
    answer = run_turn(decoder, PROMPT, wanted)
    assert answer.ids == plain(repeating, wanted)
    assert_matches_are_those_of_the_text(answer)
    assert temperature or any(done.match for done in answer.rounds) == (by != "drafter")
    assert_caches_equal_recomputation(decoder)


@pytest.mark.parametrize("prompt", [(1,), (1, 2), (3, 1, 0, 2)], ids=["one token", "in turns", "a pattern"])
@pytest.mark.parametrize("pair", [False], indirect=True, ids=["dense"])
def test_no_text_depends_on_what_stands_a_thousand_times(prompt: tuple[int, ...], repeating: Pair) -> None:
    """Not even where it is looked up in every round, whatever came of it."""
    text, wanted = prompt * 1000, replace(AUTO, max_new_tokens=48)
    alone = run_turn(Decoder(repeating.target, None, LONG_CONTEXT), text, replace(wanted, speculation=False))
    answer = run_turn(with_policy(by_host(repeating, max_context=LONG_CONTEXT), ALONE, BESIDE), text, wanted)
    assert answer.ids == alone.ids and any(done.match for done in answer.rounds)


def test_no_text_depends_on_matches_across_turns(repeating: Pair) -> None:
    """The second prompt is the first one, its answer, and the first one again."""
    decoder = with_policy(by_host(repeating), ALONE)
    first = run_turn(decoder, PROMPT[:20], AUTO)
    text = (*PROMPT[:20], *first.ids, *PROMPT[:20])
    answer = run_turn(decoder, text, AUTO)
    alone = run_turn(Decoder(repeating.target, None, CONTEXT), text, replace(AUTO, speculation=False))
    assert answer.num_reused and answer.ids == alone.ids
    assert any(done.match and done.match.distance > len(first.ids) for done in answer.rounds)
    assert_caches_equal_recomputation(decoder)


@pytest.mark.parametrize(
    ("pair", "plans", "values"),
    [
        (False, (ALONE,), {"draft_by": "lookup"}),
        (False, (ALONE, NEITHER, NEITHER, BESIDE), {}),
        only_in_ci(True, (ALONE,), {"draft_by": "lookup"}),
        only_in_ci(False, (BESIDE, RoundPlan(True)), {"temperature": 0.5, "seed": 3}),
    ],
    indirect=["pair"],
    ids=["without a drafter", "with one", "with experts", "sampled"],
)
def test_the_device_looks_up_what_the_host_does(
    plans: tuple[RoundPlan, ...], values: dict[str, Any], repeating: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole pass full, however short the drafter's block is."""
    wanted = replace(AUTO, max_new_tokens=20, **values)
    sum_in_order(monkeypatch)  # tokens that are held for one have the same logit, to the last bit
    proposal = mostly_right([*PROMPT, *plain(repeating, wanted)])
    monkeypatch.setattr(repeating.drafter, "config", replace(repeating.drafter.config, block_size=7))
    device = with_policy(on_device(repeating, proposal), *plans)
    answer = run_turn(device, PROMPT, wanted)
    host = run_turn(with_policy(by_host(repeating, proposal), *plans), PROMPT, wanted)
    assert_same_rounds(answer, host)
    assert matches(answer) == matches(host)
    # Of the tokens that the pair holds for one, sampling says any: its texts repeat nothing.
    assert wanted.temperature or any(done.match and done.num_accepted for done in answer.rounds)
    assert wanted.temperature or max(len(done.draft_ids) for done in answer.rounds) > 7
    assert_caches_equal_recomputation(device)
