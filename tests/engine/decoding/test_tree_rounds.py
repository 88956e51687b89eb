"""Rounds whose drafts are trees, on the device, in Triton's interpreter: the same text, caches and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest
import torch
from torch import Tensor

from engine.commands import GenerationSettings
from engine.decoding.decoder import Decoder, Round
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.host_rounds import HostRounds
from engine.decoding.round_launches import RoundLaunches
from engine.events import DraftToken, EmittedToken, Step, TreeToken, accepted_in
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kv_cache.cache import Cache
from engine.models.dflash.modules import DFlashDrafter
from engine.models.gemma4.modules import Gemma4
from engine.speculation.auto import Auto
from engine.speculation.choice import LookupOutcome
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.live_costs import LiveCosts
from engine.speculation.trees import CHOICES, Chances, Node
from tests.engine.checkpoints import VOCAB_SIZE
from tests.engine.decoding.test_device_rounds import (
    CONTEXT,
    DENSE,
    DRAFT_TILES,
    PROMPT,
    TILES,
    Pair,
    assert_same_rounds,
    by_host,
    pair,
    spoken,
)
from tests.engine.small_decoders import (
    ScriptedDrafter,
    assert_caches_equal_recomputation,
    run_turn,
    set_stops,
    settings,
)

__all__ = ["pair"]

pytestmark = [pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)"), DENSE]

FLAT = CostTable((0,), (RoundCosts(4.0, tuple(20.0 + 0.02 * row for row in range(16))),))
"""Of a dense target: sixteen rows cost hardly more than one."""
GIVEN = (0.5, 0.25, 0.125, 0.0625)
"""What the drafter gives its choices: products of them are the same in fp32 and in double."""

RIGHT = (0, 1, 0, 2, None)
"""Which choice is right, by position, over and over again."""


class Steady(Auto):
    """Learns nothing, so that what it chose can be asked again."""

    def observe(
        self,
        chances: Chances,
        tree: Sequence[Node],
        path: Sequence[int],
        context: int,
        judged: LookupOutcome | None = None,
    ) -> None:
        pass


def choices_at(text: Sequence[int], position: int) -> list[int]:
    """What is drafted there: choices that hold what ``text`` says as ``RIGHT`` tells."""
    right = text[position] if position < len(text) else 0
    tokens = [(right + 1 + other) % VOCAB_SIZE for other in range(CHOICES)]
    choice = RIGHT[position % len(RIGHT)]
    if choice is not None:
        tokens[choice] = right
    return tokens


def with_trees(pair: Pair, text: Sequence[int], policy: Auto | None = None) -> Decoder:
    """On the device."""
    decoder = Decoder(pair.target, pair.drafter, CONTEXT)
    launches = RoundLaunches(decoder, tiles=TILES, draft_tiles=DRAFT_TILES)
    decoder.use_rounds(DeviceRounds(launches))
    decoder.use_policy(Steady(FLAT) if policy is None else policy)
    rows, state, tree = launches.drafter, launches.state, launches.tree
    assert rows is not None and tree is not None
    choices = tree.choices

    def draft(count: int) -> None:
        for place in range(15):
            choices.tokens[place] = torch.tensor(choices_at(text, int(state.cursor) + 1 + place))
            choices.probabilities[place] = torch.tensor(GIVEN)
        rows.out.token[:15] = choices.tokens[:15, 0]
        rows.out.probability[:15] = choices.probabilities[:15, 0]

    rows.draft = draft  # type: ignore[method-assign]
    return decoder


class ChoosingDrafter(ScriptedDrafter):
    """What ``with_trees`` drafts, for the host."""

    def probabilities(self, target: Gemma4, anchor: int, block_size: int, cache: Cache) -> Tensor:
        self._real.draft(target, anchor, block_size, cache)
        given = torch.zeros(block_size - 1, VOCAB_SIZE)
        for place in range(block_size - 1):
            given[place, self.proposal(cache.length + 1 + place, anchor, CHOICES)] = torch.tensor(GIVEN)
        return given


def trees_by_host(pair: Pair, text: Sequence[int], policy: Auto | None = None) -> Decoder:
    drafter = ChoosingDrafter(pair.drafter, lambda position, *_: choices_at(text, position))
    decoder = Decoder(pair.target, cast(DFlashDrafter, drafter), CONTEXT)
    decoder.use_rounds(HostRounds(CHOICES))
    decoder.use_policy(Steady(FLAT) if policy is None else policy)
    return decoder


def step_of(done: Round) -> Step:
    """What a round says, as an event."""
    draft = tuple(DraftToken(token, "", 0.5) for token in done.draft_ids)
    emitted = tuple(
        EmittedToken(token, "", verdict) for token, verdict in zip(done.emitted, done.verdicts, strict=True)
    )
    tree = tuple(TreeToken(each.parent, each.depth, each.choice, each.id, "", each.probability) for each in done.tree)
    width, context = done.verify_width, done.context_length
    return Step(1, 1, 0.0, draft, done.num_accepted, emitted, width, 0.0, 0.0, 0.0, context, 16, 0.0, None, tree)


SAMPLING = pytest.mark.parametrize(
    "values", [{}, {"temperature": 0.8, "seed": 3, "top_k": 60, "top_p": 0.9}], ids=["greedy", "sampled"]
)


@SAMPLING
@pytest.mark.parametrize("spread", [0.02, 0.5], ids=["whole", "chosen"])
def test_the_host_defines_what_the_device_does(spread: float, values: dict[str, float], pair: Pair) -> None:
    """The same trees, the same paths through them, the same words about both, and caches alike."""
    wanted = settings(max_new_tokens=9, block_size="auto", **values)
    text = spoken(pair, wanted)
    table = CostTable((0,), (RoundCosts(4.0, tuple(20.0 + spread * row for row in range(16))),))
    device, host = (make(pair, text, Steady(table)) for make in (with_trees, trees_by_host))
    ours, theirs = run_turn(device, PROMPT, wanted), run_turn(host, PROMPT, wanted)
    assert_same_rounds(ours, theirs)
    assert theirs.ids == text[len(PROMPT) :]
    for done, expected in zip(ours.rounds, theirs.rounds, strict=True):
        assert done.tree == expected.tree
        assert (done.choice is None) == (expected.choice is None)
        if done.choice is not None and expected.choice is not None:
            assert done.choice[:4] == pytest.approx(expected.choice[:4], abs=1e-5)
    assert any(done.tree and done.num_accepted > 1 for done in theirs.rounds)
    for decoder in (device, host):
        assert_caches_equal_recomputation(decoder)


@SAMPLING
def test_trees_change_no_text_and_leave_what_a_chain_would(values: dict[str, float], pair: Pair) -> None:
    wanted = settings(max_new_tokens=8, block_size=16, **values)
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


def test_a_round_tells_of_the_tree_that_the_policy_wants(pair: Pair) -> None:
    wanted = settings(max_new_tokens=7)
    text = spoken(pair, wanted)
    answer = run_turn(with_trees(pair, text), PROMPT, replace(wanted, block_size="auto"))
    position = len(PROMPT) + 1
    for done in answer.rounds[1:]:
        drafted = len(done.draft_ids)
        tree, choice = Steady(FLAT).choose([GIVEN] * drafted, position, drafted + 1)
        assert done.verify_width == len(tree) + 1
        assert bool(done.tree) == any(node.choice for node in tree)
        for each, node in zip(done.tree, tree, strict=bool(done.tree)):
            assert (each.parent, each.depth, each.choice) == (node.parent, node.depth, node.choice)
            assert each.probability == GIVEN[node.choice]
        assert done.choice is not None and done.choice.chance == pytest.approx(choice.chance, abs=1e-6)
        assert done.choice.cost_ms == pytest.approx(choice.cost_ms, abs=1e-4)
        assert len(done.target_probabilities) == min(done.num_accepted + 1, drafted)
        expected = text[position : position + len(done.emitted)]
        assert list(done.emitted) == expected
        position += len(done.emitted)
        if not done.tree:
            continue
        path = accepted_in(step_of(done))
        assert [done.tree[row - 1].id for row in path] == expected[: done.num_accepted]
        last = path[-1] if path else 0
        refused = any(each.parent == last for each in done.tree)
        assert done.verdicts[-1] == ("corrected" if refused else "bonus") or done.finish == "length"


def test_an_answer_that_checks_costs_says_the_same(pair: Pair) -> None:
    """It begins with a whole draft, verified as a chain, and a round without one."""
    wanted = settings(max_new_tokens=9, block_size="auto")
    text = spoken(pair, wanted)
    device = with_trees(pair, text, Auto(FLAT, live=LiveCosts()))
    first, second = (run_turn(device, PROMPT, wanted) for _ in range(2))
    assert first.ids == second.ids == text[len(PROMPT) :]
    assert all(done.tree for done in first.rounds[1:3]) and not any(done.tree for done in second.rounds[1:3])
    assert [done.verify_width > 1 for done in second.rounds[1:3]] == [True, False]
    assert_caches_equal_recomputation(device)


def test_a_stop_token_ends_the_answer_inside_a_tree(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = settings(max_new_tokens=20)
    text = spoken(pair, wanted)
    stop = text[len(PROMPT) + 4]
    set_stops(monkeypatch, pair.target, 1, stop)
    device = with_trees(pair, text)
    answer = run_turn(device, PROMPT, replace(wanted, block_size="auto"))
    assert answer.finish == "stop" and answer.ids == text[len(PROMPT) : text.index(stop, len(PROMPT)) + 1]
    assert_caches_equal_recomputation(device)


@pytest.mark.parametrize(("count", "max_context"), [(2, CONTEXT), (40, 34)])
def test_limits_are_exact(count: int, max_context: int, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.engine.decoding.test_tree_rounds.CONTEXT", max_context)
    text = spoken(pair, settings(max_new_tokens=12))
    answer = run_turn(with_trees(pair, text), PROMPT, GenerationSettings(max_new_tokens=count))
    assert len(answer.ids) == min(count, max_context - len(PROMPT))
    assert answer.ids == text[len(PROMPT) :][: len(answer.ids)]
    assert answer.finish == ("length" if count < 40 else "context")


def test_the_real_drafter_drafts_trees(pair: Pair) -> None:
    """With random weights hardly anything is accepted; its first choices are the chain's."""
    wanted = settings(max_new_tokens=3, block_size=3)
    chain = run_turn(by_host(pair), PROMPT, wanted)
    decoder = Decoder(pair.target, pair.drafter, CONTEXT)
    decoder.use_rounds(DeviceRounds(RoundLaunches(decoder, tiles=TILES, draft_tiles=DRAFT_TILES)))
    decoder.use_policy(Steady(FLAT))
    trees = run_turn(decoder, PROMPT, replace(wanted, block_size="auto"))
    assert trees.ids == chain.ids
    first, same = chain.rounds[1], trees.rounds[1]
    assert same.draft_ids[: len(first.draft_ids)] == first.draft_ids[: len(same.draft_ids)]
    assert_caches_equal_recomputation(decoder)
