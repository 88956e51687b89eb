"""Wide rounds on a device, in Triton's interpreter: what the host's say, and what plain decoding says."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

import pytest
import torch

from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.toolchain.jit import INTERPRETED
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.trees import WIDE_ROWS
from engine.speculation.verify_width import Auto, Plan
from engine.tuning import costs
from tests.engine.checkpoints import VOCAB_SIZE
from tests.engine.decoding.test_device_rounds import DRAFT_TILES, TILES, Pair, assert_same_rounds, pair
from tests.engine.decoding.test_lookup_rounds import PROMPT, Told
from tests.engine.small_decoders import Answer, assert_caches_equal_recomputation, run_turn, set_stops, settings

__all__ = ["pair"]

pytestmark = [
    pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)"),
    pytest.mark.parametrize("pair", [True], indirect=True, ids=["experts"]),
]

MOST, CONTEXT = WIDE_ROWS[-1], 240
TABLE = CostTable((0,), (RoundCosts(0.3, tuple(2.0 + 0.02 * row for row in range(MOST)), 0.01, 0.02),))
AUTO = settings(block_size="auto", max_new_tokens=100)
WIDE, HALF, NARROW = (Plan(False, True, rows) for rows in (MOST, MOST // 2, 16))
DRAFT, BESIDE, ALONE = Plan(True), Plan(True, True), Plan(False)


@pytest.fixture(scope="module")
def repeating(pair: Pair) -> Pair:
    """It knows four tokens, so that its texts soon repeat themselves."""
    target = deepcopy(pair.target)
    with torch.no_grad():
        target.embed_tokens.weight.copy_(target.embed_tokens.weight[torch.arange(VOCAB_SIZE) % 4])
    target.prepare()
    drafter = deepcopy(pair.drafter)
    drafter.prepare()
    return Pair(target, drafter)


class ToldWide(Told):
    """Of these plans, rows too."""

    def plan(self, context: int, length: int) -> Plan:
        plan = super().plan(context, length)
        return plan._replace(rows=self.plans[(self.asked - 1) % len(self.plans)].rows)


def decoder_of(pair: Pair, *plans: Plan, drafts: bool = True, device: bool = True, context: int = CONTEXT) -> Decoder:
    decoder = Decoder(pair.target, pair.drafter if drafts else None, context)
    if device:
        decoder.use_rounds(DeviceRounds(RoundLaunches(decoder, tiles=TILES, draft_tiles=DRAFT_TILES)))
    policy = ToldWide(TABLE) if plans else Auto(TABLE)
    if isinstance(policy, ToldWide):
        policy.plans = plans
    decoder.use_policy(policy)
    return decoder


def plain(pair: Pair, wanted: Any, context: int = CONTEXT) -> Answer:
    return run_turn(Decoder(pair.target, None, context), PROMPT, replace(wanted, speculation=False))


def widths(answer: Answer) -> list[int]:
    return [done.verify_width for done in answer.rounds]


@pytest.mark.parametrize("drafts", [True, False], ids=["told", "alone"])
def test_wide_rounds_are_those_of_the_host(drafts: bool, repeating: Pair) -> None:
    """Between narrow ones of every kind, which then find what the wide ones have left in the drafter's context."""
    plans = (NARROW, WIDE, WIDE, DRAFT, HALF, ALONE, WIDE, BESIDE) if drafts else (WIDE, NARROW, HALF)
    answers = []
    for device in (True, False):
        decoder = decoder_of(repeating, *plans, drafts=drafts, device=device)
        answers.append(run_turn(decoder, PROMPT, AUTO))
        assert_caches_equal_recomputation(decoder)
    assert_same_rounds(*answers)
    assert answers[0].ids == plain(repeating, AUTO).ids
    assert max(widths(answers[0])) > 32


def test_what_wide_rounds_refuse_leaves_no_trace(repeating: Pair) -> None:
    wanted = replace(AUTO, temperature=0.8, top_k=2, seed=5, max_new_tokens=40)
    decoder = decoder_of(repeating, WIDE)
    answer = run_turn(decoder, PROMPT, wanted)
    assert answer.ids == plain(repeating, wanted).ids
    assert max(widths(answer)) > 32 and any(done.num_accepted < done.verify_width - 1 for done in answer.rounds)
    assert_caches_equal_recomputation(decoder)


def test_a_copy_comes_to_wide_rounds_by_itself(repeating: Pair) -> None:
    decoder = decoder_of(repeating)
    answer = run_turn(decoder, PROMPT, AUTO)
    assert answer.ids == plain(repeating, AUTO).ids
    assert max(len(done.emitted) for done in answer.rounds) > 16


def test_a_stop_token_ends_it_inside_a_wide_round(repeating: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    free = plain(repeating, AUTO).ids
    stop = max(set(free), key=free.index)
    set_stops(monkeypatch, repeating.target, stop)
    decoder = decoder_of(repeating, WIDE)
    answer = run_turn(decoder, PROMPT, AUTO)
    assert (answer.ids, answer.finish) == (free[: free.index(stop) + 1], "stop")
    assert_caches_equal_recomputation(decoder)


@pytest.mark.parametrize(("most", "context", "finish"), [(100, len(PROMPT) + 50, "context"), (37, CONTEXT, "length")])
def test_it_ends_with_the_context_and_with_the_budget(most: int, context: int, finish: str, repeating: Pair) -> None:
    wanted = replace(AUTO, max_new_tokens=most)
    answer = run_turn(decoder_of(repeating, WIDE, context=context), PROMPT, wanted)
    expected = plain(repeating, wanted, context)
    assert (answer.ids, answer.finish) == (expected.ids, expected.finish) == (expected.ids, finish)
    assert max(widths(answer)) > 16


def test_wide_passes_are_timed_where_they_fit(repeating: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "CONTEXTS", (20,))
    monkeypatch.setattr(costs, "WIDTHS", (1, 16))
    monkeypatch.setattr(costs, "REPEATS", 1)
    decoder = decoder_of(repeating)
    table = costs.time_rounds(decoder, PROMPT)
    assert table is not None and len(table.costs[0].verify) == MOST
    launches = cast(DeviceRounds, decoder.rounds).launches
    assert int(launches.state.pending) == 0
    assert run_turn(decoder, PROMPT, replace(AUTO, max_new_tokens=20)).ids == plain(repeating, AUTO).ids[:20]
