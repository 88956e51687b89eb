"""Rounds of 64 rows, as a copy takes them: the text is that of plain decoding, wherever such a round ends."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace

import pytest
import torch

from engine.commands import GenerationSettings
from engine.decoding.decoder import Decoder
from engine.measured import costs
from engine.speculation.auto import Auto
from engine.speculation.choice import Choice, RoundPlan
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.lookup import LookedUpChain
from engine.speculation.trees import WIDE_ROWS, Chances, Node, chain
from tests.engine.decoding.pairs import Pair, of, pair
from tests.engine.small_decoders import Answer, assert_caches_equal_recomputation, run_turn, set_stops, settings

__all__ = ["pair"]

pytestmark = of("dense")

MOST = WIDE_ROWS[-1]
CONTEXT = 400
TABLE = CostTable((0,), (RoundCosts(0.3, tuple(2.0 + 0.02 * row for row in range(MOST)), 0.01, 0.02),))
PROMPT = (*(0, 1, 2, 3, 1, 2, 0) * 5, 2, 2)
AUTO = settings(block_size="auto", max_new_tokens=150)


@dataclass(slots=True)
class Widest(Auto):
    """Verifies all that can be looked up, whatever came of it before."""

    def plan(self, context: int, length: int) -> RoundPlan:
        return RoundPlan(False, True, MOST)

    def choose(
        self, chances: Chances, context: int, rows: int = MOST, looked: LookedUpChain | None = None
    ) -> tuple[list[Node], Choice]:
        assert looked is not None
        tree = chain(looked.size)
        return tree, Choice(len(tree), looked_up=(0.5,) * len(tree))


@pytest.fixture
def repeating(pair: Pair) -> Pair:
    """It knows four tokens, so that its texts soon repeat themselves."""
    target = deepcopy(pair.target)
    with torch.no_grad():
        target.embed_tokens.weight[4:] = 0
    target.prepare()
    return Pair(target, pair.drafter)


def plain(pair: Pair, wanted: GenerationSettings, context: int = CONTEXT) -> Answer:
    return run_turn(Decoder(pair.target, None, context), PROMPT, replace(wanted, speculation=False))


def by(pair: Pair, policy: Auto, drafts: bool = False, context: int = CONTEXT) -> Decoder:
    decoder = Decoder(pair.target, pair.drafter if drafts else None, context)
    decoder.use_policy(policy)
    return decoder


def widest(answer: Answer) -> int:
    return max(done.verify_width for done in answer.rounds)


def test_what_repeats_itself_is_written_in_wide_rounds(repeating: Pair) -> None:
    decoder = by(repeating, Auto(TABLE), drafts=True)
    answer = run_turn(decoder, PROMPT, AUTO)
    assert answer.ids == plain(repeating, AUTO).ids
    assert max(len(done.emitted) for done in answer.rounds) > 16
    assert_caches_equal_recomputation(decoder)


@pytest.mark.parametrize("drafts", [False, True], ids=["without a drafter", "with one"])
def test_what_wide_rounds_refuse_leaves_no_trace(drafts: bool, repeating: Pair) -> None:
    wanted = replace(AUTO, temperature=0.8, top_k=2, seed=5, max_new_tokens=60)
    decoder = by(repeating, Widest(TABLE), drafts)
    answer = run_turn(decoder, PROMPT, wanted)
    assert answer.ids == plain(repeating, wanted).ids
    assert widest(answer) > 32 and any(done.num_accepted < done.verify_width - 1 for done in answer.rounds)
    assert_caches_equal_recomputation(decoder)


def test_a_stop_token_ends_it_inside_a_wide_round(repeating: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = replace(AUTO, temperature=0.8, top_k=2, seed=6)
    free = plain(repeating, wanted).ids
    stop = max(set(free), key=free.index)
    set_stops(monkeypatch, repeating.target, stop)
    decoder = by(repeating, Widest(TABLE))
    answer = run_turn(decoder, PROMPT, wanted)
    assert (answer.ids, answer.finish) == (free[: free.index(stop) + 1], "stop")
    assert widest(answer) > 16
    assert_caches_equal_recomputation(decoder)


@pytest.mark.parametrize(("most", "context", "finish"), [(150, len(PROMPT) + 50, "context"), (45, CONTEXT, "length")])
def test_it_ends_with_the_context_and_with_the_budget(most: int, context: int, finish: str, repeating: Pair) -> None:
    wanted = replace(AUTO, max_new_tokens=most)
    decoder = by(repeating, Widest(TABLE), context=context)
    answer, expected = run_turn(decoder, PROMPT, wanted), plain(repeating, wanted, context)
    assert (answer.ids, answer.finish) == (expected.ids, expected.finish) == (expected.ids, finish)


def test_the_host_times_passes_of_all_rows_that_fit(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "CONTEXTS", (20,))
    monkeypatch.setattr(costs, "REPEATS", 1)
    monkeypatch.setattr(costs, "CHEAP", 100.0)
    for context, rows in ((CONTEXT, MOST), (100, 32), (50, 16)):
        table = costs.time_rounds(Decoder(pair.target, pair.drafter, context), PROMPT)
        assert table is not None and len(table.costs[0].verify) == rows
    monkeypatch.setattr(costs, "CONTEXTS", (20, 40))
    table = costs.time_rounds(Decoder(pair.target, pair.drafter, CONTEXT), PROMPT)
    assert table is not None
    first, then = (each.verify for each in table.costs)
    assert then[MOST - 1] == pytest.approx(first[MOST - 1] + max(then[15] - first[15], 0) * MOST / 16)
    monkeypatch.setattr(costs, "CHEAP", 0.0)
    table = costs.time_rounds(Decoder(pair.target, pair.drafter, CONTEXT), PROMPT)
    assert table is not None and len(table.costs[0].verify) == 16
