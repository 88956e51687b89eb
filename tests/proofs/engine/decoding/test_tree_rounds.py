"""Rounds whose drafts are trees, on the device, in Triton's interpreter: the same text, caches and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from engine.decoding.cuda_graphs import Stopwatch
from engine.decoding.decoder import Decoder, Round
from engine.events import DraftToken, EmittedToken, Step, TreeToken, accepted_in
from engine.kernels.toolchain.jit import INTERPRETED
from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.live_costs import LiveCosts
from tests.engine.decoding.pairs import PROMPT, Drafts, Pair, of, on_device, pair, spoken
from tests.engine.small_decoders import (
    assert_caches_equal_recomputation,
    run_turn,
    settings,
)

__all__ = ["pair"]

pytestmark = [
    pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)"),
    of("dense"),
]

FLAT = CostTable((0,), (RoundCosts(4.0, tuple(20.0 + 0.02 * row for row in range(16))),))
"""Of a dense target: sixteen rows cost hardly more than one."""
RIGHT = (0, 1, 0, 2, None)
"""Which choice is right, by position, over and over again."""


def with_trees(pair: Pair, text: Sequence[int], policy: Auto) -> Decoder:
    """On the device."""
    decoder = on_device(pair, Drafts(text, RIGHT))
    decoder.use_policy(policy)
    return decoder


def step_of(done: Round) -> Step:
    """What a round says, as an event."""
    draft = tuple(DraftToken(token, "", 0.5) for token in done.draft_ids)
    emitted = tuple(
        EmittedToken(token, "", verdict) for token, verdict in zip(done.emitted, done.verdicts, strict=True)
    )
    told = zip(done.tree, done.tree_ids, done.tree_probabilities, strict=True)
    tree = tuple(TreeToken(*node[:3], token, "", probability) for node, token, probability in told)
    width, context = done.verify_width, done.context_length
    return Step(1, 1, 0.0, draft, done.num_accepted, emitted, width, 0.0, 0.0, 0.0, context, 16, 0.0, None, tree)


def test_paths_leave_the_trunk_and_the_policy_learns_of_them(pair: Pair) -> None:
    wanted = settings(max_new_tokens=8, block_size=16)
    text = spoken(pair, wanted)
    policy = Auto(FLAT)
    device = with_trees(pair, text, policy)
    answer = run_turn(device, PROMPT, replace(wanted, block_size="auto"))
    assert answer.ids == text[len(PROMPT) :]
    assert_caches_equal_recomputation(device)
    assert sum(policy.worth.first.confidence) > 0 and sum(policy.worth.others.accepted) > 0
    trees = [done for done in answer.rounds if done.tree]
    assert any(done.num_accepted and done.emitted[0] != done.draft_ids[0] for done in trees)
    assert max(done.num_accepted for done in trees) >= 2
    moved = [accepted_in(step_of(done)) for done in trees]
    assert any(path != tuple(range(1, len(path) + 1)) for path in moved)


def test_an_answer_that_checks_costs_says_the_same(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins with a whole draft, verified as a chain, and a round without one, where all takes longer than told."""
    monkeypatch.setattr(Stopwatch, "milliseconds", lambda *_: 100.0)
    wanted = settings(max_new_tokens=7, block_size="auto")
    text = spoken(pair, wanted)
    device = with_trees(pair, text, Auto(FLAT, live=LiveCosts()))
    first, second = (run_turn(device, PROMPT, wanted) for _ in range(2))
    assert first.ids == second.ids == text[len(PROMPT) :]
    assert all(done.tree for done in first.rounds[1:3]) and not any(done.tree for done in second.rounds[1:3])
    assert [done.verify_width > 1 for done in second.rounds[1:3]] == [True, False]
    assert_caches_equal_recomputation(device)
