"""Rounds of 32 and 64 rows, as a copy takes them, by the host and on a device in Triton's interpreter: the text is that
of plain decoding, wherever such a round ends."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from engine.commands import GenerationSettings
from engine.decoding import round_launches
from engine.decoding.cuda_graphs import Launch
from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.pass_check import wide_rows_depart
from engine.decoding.round_launches import RoundLaunches, RoundPiece, Verification
from engine.errors import DeviceFailure
from engine.kernels.decode.experts.wide_experts import WideAssignment
from engine.kernels.toolchain.jit import INTERPRETED
from engine.loading.choose_rounds import record_wide_rounds
from engine.measured import costs
from engine.models.gemma4 import wide_pass
from engine.speculation.choice import RoundPlan
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.trees import WIDE_ROWS
from support.ordered_sums import sum_in_order
from tests.engine.decoding.pairs import DRAFT_TILES, TILES, Pair, assert_same_rounds, copying, of, pair, told
from tests.engine.small_decoders import Answer, assert_caches_equal_recomputation, run_turn, set_stops, settings

__all__ = ["pair"]

pytestmark = of("experts")
on_device = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

MOST, CONTEXT = WIDE_ROWS[-1], 240
TABLE = CostTable((0,), (RoundCosts(0.3, tuple(2.0 + 0.02 * row for row in range(MOST)), 0.01, 0.02),))
PROMPT = (0, 1) * 20
AUTO = settings(block_size="auto", max_new_tokens=100)
SAMPLED = replace(AUTO, temperature=0.8)
WIDE, HALF = (RoundPlan(False, True, rows) for rows in (MOST, MOST // 2))
DRAFT, ALONE = RoundPlan(True), RoundPlan(False)


@pytest.fixture
def repeating(pair: Pair) -> Pair:
    return copying(pair)


def decoder_of(
    pair: Pair, *plans: RoundPlan, drafts: bool = False, device: bool = True, context: int = CONTEXT
) -> Decoder:
    decoder = Decoder(pair.target, pair.drafter if drafts else None, context)
    if device:
        decoder.use_rounds(DeviceRounds(RoundLaunches(decoder, tiles=TILES, draft_tiles=DRAFT_TILES)))
    decoder.use_policy(told(TABLE, *plans))
    return decoder


def plain(pair: Pair, wanted: GenerationSettings, context: int = CONTEXT) -> Answer:
    return run_turn(Decoder(pair.target, None, context), PROMPT, replace(wanted, speculation=False))


def _record_behind_a_trial(decoder: Decoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches what is recorded, as a GPU does once."""

    def captured(launch: Launch, *_: object, **__: object) -> Launch:
        launch()
        return launch

    with monkeypatch.context() as patch:
        patch.setattr(round_launches, "captured", captured)
        launches = cast(DeviceRounds, decoder.rounds).launches
        launches.prepare(wide=False)
        run_turn(decoder, PROMPT[:10], settings(block_size=8, max_new_tokens=12))
        decoder.clear()
        assert launches.state.pending.item() > 0
        assert list(record_wide_rounds(decoder)) == [None] * 8


@on_device
def test_what_is_refused_leaves_no_trace(repeating: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """By host and device alike, where wide rounds are sampled; the drafter goes on behind one. Nor does recording wide
    rounds behind the answer with which rounds are tried out."""
    wanted, answers = replace(SAMPLED, seed=18, max_new_tokens=60), []
    for device in (True, False):
        decoder = decoder_of(repeating, WIDE, DRAFT, HALF, ALONE, drafts=True, device=device)
        if device:
            _record_behind_a_trial(decoder, monkeypatch)
        answers.append(run_turn(decoder, PROMPT, wanted))
        assert_caches_equal_recomputation(decoder)
    assert_same_rounds(*answers)
    rounds = answers[0].rounds
    assert answers[0].ids == plain(repeating, wanted).ids
    assert max(len(done.emitted) for done in rounds) > 48
    assert any(done.num_accepted < done.verify_width - 1 > 32 for done in rounds)
    assert any(done.draft_ids and done.match is None for done in rounds)


@on_device
def test_a_stop_token_ends_it_inside_a_wide_round(repeating: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = replace(SAMPLED, seed=0)
    set_stops(monkeypatch, repeating.target, 3)
    decoder = decoder_of(repeating, HALF)
    answer, expected = run_turn(decoder, PROMPT, wanted), plain(repeating, wanted)
    assert (answer.ids, answer.finish) == (expected.ids, "stop")
    assert len(answer.rounds[-1].emitted) > 16
    assert_caches_equal_recomputation(decoder)


def test_a_copy_comes_to_wide_rounds_by_itself(repeating: Pair) -> None:
    decoder = decoder_of(repeating, drafts=True, device=False)
    answer = run_turn(decoder, PROMPT, AUTO)
    assert answer.ids == plain(repeating, AUTO).ids
    assert max(len(done.emitted) for done in answer.rounds) > 16
    assert_caches_equal_recomputation(decoder)


@pytest.mark.parametrize(("most", "context", "finish"), [(150, len(PROMPT) + 50, "context"), (45, CONTEXT, "length")])
def test_it_ends_with_the_context_and_with_the_budget(most: int, context: int, finish: str, repeating: Pair) -> None:
    wanted = replace(AUTO, max_new_tokens=most)
    decoder = decoder_of(repeating, WIDE, device=False, context=context)
    answer, expected = run_turn(decoder, PROMPT, wanted), plain(repeating, wanted, context)
    assert (answer.ids, answer.finish) == (expected.ids, expected.finish) == (expected.ids, finish)
    assert max(done.verify_width for done in answer.rounds) > 16


# --- timing, and being found out


@pytest.fixture
def timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "CONTEXTS", (20,))
    monkeypatch.setattr(costs, "REPEATS", 1)
    monkeypatch.setattr(costs, "SECONDS", 60.0)


@on_device
def test_wide_passes_are_timed_where_they_fit(
    repeating: Pair, timed_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "WIDTHS", (1, 16))
    decoder = decoder_of(repeating, context=80)
    table = costs.time_rounds(decoder, PROMPT)
    assert table is not None and len(table.costs[0].verify) == 32


def test_wide_rounds_can_be_recorded_last(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Piece by piece; one that fails costs the wide rounds alone."""
    capture = RoundLaunches.of
    for failing, widest in ((None, MOST), (Verification(MOST), 16)):
        decoder = decoder_of(pair, drafts=True, context=80)
        launches = cast(DeviceRounds, decoder.rounds).launches

        def of(self: RoundLaunches, piece: RoundPiece, failing: RoundPiece | None = failing) -> Launch:
            if piece == failing:
                raise DeviceFailure("It failed.")
            return capture(self, piece)

        monkeypatch.setattr(RoundLaunches, "of", of)
        launches.prepare(wide=False)
        before, wide = set(launches._captured), set(launches.wide_pieces())
        assert len(wide) == 8 and not wide & before
        *_, said = list(record_wide_rounds(decoder))
        assert said == (
            failing and "Wide rounds can't be recorded: It failed. Copies are written in rounds of 16 rows."
        )
        assert launches.widest == widest and set(launches._captured) == before | (set() if failing else wide)


@on_device
def test_a_pass_that_computes_otherwise_is_found_out(repeating: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    sum_in_order(monkeypatch)
    decoder = decoder_of(repeating, WIDE, context=40)
    launches = cast(DeviceRounds, decoder.rounds).launches
    assert wide_rows_depart(launches, PROMPT) is None
    merge = wide_pass.merge_assignments

    def wrong(assignment: WideAssignment) -> None:
        merge(assignment)
        assignment.together.weights.neg_()

    monkeypatch.setattr(wide_pass, "merge_assignments", wrong)
    assert wide_rows_depart(launches, PROMPT) == "a row has other bits in a pass of more than sixteen"
    launches.leave_wide_rounds_out()
    wanted, prompt = replace(AUTO, max_new_tokens=3), PROMPT[:30]
    assert run_turn(decoder, prompt, wanted).ids == run_turn(Decoder(repeating.target, None, 40), prompt, wanted).ids
