"""Wide rounds on a device, in Triton's interpreter: what the host's say, and what plain decoding says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.pass_check import wide_rows_depart
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.decode.wide_experts import WideAssignment
from engine.kernels.toolchain.jit import INTERPRETED
from engine.measured import costs
from engine.models.gemma4 import wide_pass
from engine.speculation.auto import Auto
from engine.speculation.choice import RoundPlan
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.trees import WIDE_ROWS
from tests.engine.decoding.pairs import DRAFT_TILES, TILES, Pair, Told, assert_same_rounds, copying, of, pair
from tests.engine.small_decoders import Answer, assert_caches_equal_recomputation, run_turn, set_stops, settings
from tests.kernels.ordered_sums import sum_in_order

__all__ = ["pair"]

pytestmark = [
    pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)"),
    of("experts"),
]

MOST, CONTEXT = WIDE_ROWS[-1], 240
TABLE = CostTable((0,), (RoundCosts(0.3, tuple(2.0 + 0.02 * row for row in range(MOST)), 0.01, 0.02),))
PROMPT = (0, 1) * 20
AUTO = settings(block_size="auto", max_new_tokens=100)
SAMPLED = replace(AUTO, temperature=0.8)
WIDE, HALF, NARROW = (RoundPlan(False, True, rows) for rows in (MOST, MOST // 2, 16))
DRAFT, BESIDE, ALONE = RoundPlan(True), RoundPlan(True, True), RoundPlan(False)


@pytest.fixture
def repeating(pair: Pair) -> Pair:
    return copying(pair)


def decoder_of(
    pair: Pair, *plans: RoundPlan, drafts: bool = True, device: bool = True, context: int = CONTEXT
) -> Decoder:
    decoder = Decoder(pair.target, pair.drafter if drafts else None, context)
    if device:
        decoder.use_rounds(DeviceRounds(RoundLaunches(decoder, tiles=TILES, draft_tiles=DRAFT_TILES)))
    policy = Told(TABLE) if plans else Auto(TABLE)
    if isinstance(policy, Told):
        policy.plans = plans
    decoder.use_policy(policy)
    return decoder


def plain(pair: Pair, wanted: Any, context: int = CONTEXT) -> Answer:
    return run_turn(Decoder(pair.target, None, context), PROMPT, replace(wanted, speculation=False))


def test_what_is_refused_leaves_no_trace(repeating: Pair) -> None:
    """By host and device alike, where a wide round is sampled."""
    wanted, answers = replace(SAMPLED, seed=18, max_new_tokens=60), []
    for device in (True, False):
        decoder = decoder_of(repeating, WIDE, ALONE, ALONE, ALONE, device=device)
        answers.append(run_turn(decoder, PROMPT, wanted))
        assert_caches_equal_recomputation(decoder)
    assert_same_rounds(*answers)
    assert answers[0].ids == plain(repeating, wanted).ids
    assert max(len(done.emitted) for done in answers[0].rounds) > 48
    assert any(done.num_accepted < done.verify_width - 1 > 32 for done in answers[0].rounds)


def test_a_stop_token_ends_it_inside_a_wide_round(repeating: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = replace(SAMPLED, seed=0)
    set_stops(monkeypatch, repeating.target, 3)
    decoder = decoder_of(repeating, WIDE, drafts=False)
    answer, expected = run_turn(decoder, PROMPT, wanted), plain(repeating, wanted)
    assert (answer.ids, answer.finish) == (expected.ids, "stop")
    assert len(answer.rounds[-1].emitted) > 16
    assert_caches_equal_recomputation(decoder)


def test_wide_passes_are_timed_where_they_fit(repeating: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "CONTEXTS", (20,))
    monkeypatch.setattr(costs, "WIDTHS", (1, 16))
    monkeypatch.setattr(costs, "REPEATS", 1)
    decoder = decoder_of(repeating, drafts=False, context=80)
    table = costs.time_rounds(decoder, PROMPT)
    assert table is not None and len(table.costs[0].verify) == 32
    wanted = replace(AUTO, max_new_tokens=3)
    assert run_turn(decoder, PROMPT, wanted).ids == plain(repeating, wanted).ids


def test_a_pass_that_computes_otherwise_is_found_out(repeating: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    sum_in_order(monkeypatch)
    decoder = decoder_of(repeating, WIDE, drafts=False, context=40)
    launches = cast(DeviceRounds, decoder.rounds).launches
    assert wide_rows_depart(launches, PROMPT) is None
    merge = wide_pass.merge_assignments

    def wrong(assignment: WideAssignment) -> None:
        merge(assignment)
        assignment.together.weights.neg_()

    monkeypatch.setattr(wide_pass, "merge_assignments", wrong)
    assert wide_rows_depart(launches, PROMPT) == "a row has other bits in a pass of more than sixteen"
    launches.leave_wide_rounds_out()
    wanted = replace(AUTO, max_new_tokens=3)
    assert (
        run_turn(decoder, PROMPT[:30], wanted).ids
        == run_turn(Decoder(repeating.target, None, 40), PROMPT[:30], wanted).ids
    )
