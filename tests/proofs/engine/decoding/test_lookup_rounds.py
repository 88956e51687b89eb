"""Drafts that are looked up in the text: by host and device alike, whoever else drafts, and never another text."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from engine.commands import DraftBy, GenerationSettings
from engine.decoding.decoder import Decoder
from engine.speculation.choice import RoundPlan
from engine.speculation.costs import CostTable, RoundCosts
from tests.engine.decoding import pairs
from tests.engine.decoding.pairs import CONTEXT, Pair, assert_matches_are_those_of_the_text, by_host, of, pair, told
from tests.engine.small_decoders import assert_caches_equal_recomputation, run_turn, settings

__all__ = ["pair"]

pytestmark = of("dense")

TABLE = CostTable((0,), (RoundCosts(0.3, tuple(2.0 + 0.02 * row for row in range(16)), 0.01, 0.02),))
AUTO = settings(block_size="auto", max_new_tokens=24)
PROMPT = (*(0, 1, 2, 3, 1, 2, 0) * 5, 2, 2)
LONG_CONTEXT = 2048
ALONE, BESIDE, NEITHER = RoundPlan(False, True), RoundPlan(True, True), RoundPlan(False)


@pytest.fixture
def repeating(pair: Pair) -> Pair:
    return pairs.repeating(pair)


def with_policy(decoder: Decoder, *plans: RoundPlan) -> Decoder:
    decoder.use_policy(told(TABLE, *plans))
    return decoder


def plain(pair: Pair, wanted: GenerationSettings) -> list[int]:
    return run_turn(Decoder(pair.target, None, CONTEXT), PROMPT, replace(wanted, speculation=False)).ids


@pytest.mark.parametrize("by", get_args(DraftBy))
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_no_text_depends_on_who_drafts(by: DraftBy, temperature: float, repeating: Pair) -> None:
    wanted = replace(AUTO, draft_by=by, temperature=temperature, seed=5)
    decoder = with_policy(by_host(repeating))
    answer = run_turn(decoder, PROMPT, wanted)
    assert answer.ids == plain(repeating, wanted)
    assert_matches_are_those_of_the_text(PROMPT, answer)
    assert temperature or any(done.match for done in answer.rounds) == (by != "drafter")
    assert_caches_equal_recomputation(decoder)


@pytest.mark.parametrize("prompt", [(1,), (1, 2), (3, 1, 0, 2)], ids=["one token", "in turns", "a pattern"])
def test_no_text_depends_on_what_stands_hundreds_of_times(prompt: tuple[int, ...], repeating: Pair) -> None:
    """Not even where it is looked up in every round, whatever came of it."""
    text, wanted = prompt * 300, replace(AUTO, max_new_tokens=48)
    alone = run_turn(Decoder(repeating.target, None, LONG_CONTEXT), text, replace(wanted, speculation=False))
    answer = run_turn(with_policy(by_host(repeating, max_context=LONG_CONTEXT), ALONE, BESIDE), text, wanted)
    assert answer.ids == alone.ids and any(done.match for done in answer.rounds)
