"""The verify width chosen every round: the text stays the same, the books are right, and it is not slower."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.commands import GenerationSettings, Message
from engine.decoding.decoder import Decoder
from engine.loading.checkpoint import load_drafter, load_target
from engine.measured.costs import time_rounds
from engine.speculation.auto import Auto
from engine.speculation.choice import Choice, LookupOutcome
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.lookup import LookedUpChain
from engine.speculation.policy import Policy
from engine.speculation.trees import ROWS, Chances, Node, chain
from engine.tokenizer import ChatTokenizer
from tests.engine.conftest import CPU, no_progress
from tests.engine.small_decoders import Answer, assert_caches_equal_recomputation, run_turn

PROMPT = "Write a quicksort in Python"
COSTLY = CostTable((0,), (RoundCosts(0.75, tuple(2.3 + 0.54 * row for row in range(16))),))


class Erratic(Policy):
    """Verifies another number of drafts every round, and now and then drafts nothing."""

    def __init__(self) -> None:
        self.rounds = 0
        self.told = 0

    def wants_draft(self, context: int) -> bool:
        return self.rounds % 5 != 3

    def choose(
        self, chances: Chances, context: int, rows: int = ROWS, looked: LookedUpChain | None = None
    ) -> tuple[list[Node], Choice]:
        tree = chain(self.rounds * 7 % (len(chances) + 1))
        return tree, Choice(len(tree))

    def observe(
        self,
        chances: Chances,
        tree: Sequence[Node],
        path: Sequence[int],
        context: int,
        outcome: LookupOutcome | None = None,
    ) -> None:
        assert len(path) <= len(tree) <= len(chances)
        self.rounds += 1
        self.told += len(path)


@pytest.fixture(scope="module")
def decoder(bundled_pair: Path) -> Decoder:
    target = load_target(bundled_pair / "target", CPU, no_progress)
    return Decoder(target, load_drafter(bundled_pair / "drafter", target, no_progress), 2048)


def ask(decoder: Decoder, bundled_pair: Path, **settings: object) -> Answer:
    ids = ChatTokenizer(bundled_pair / "target").prompt([Message("user", PROMPT)], thinking=False).ids
    decoder.clear()
    return run_turn(decoder, ids, GenerationSettings(max_new_tokens=96, **settings))  # type: ignore[arg-type]


def test_no_choice_changes_the_text(decoder: Decoder, bundled_pair: Path) -> None:
    sampling = {"temperature": 0.8, "seed": 4}
    plain = ask(decoder, bundled_pair, speculation=False, **sampling)
    for policy in (Auto(COSTLY), Erratic()):
        decoder.use_policy(policy)
        assert ask(decoder, bundled_pair, block_size="auto", **sampling).ids == plain.ids
        assert_caches_equal_recomputation(decoder)


def test_the_books_tell_verified_from_drafted(decoder: Decoder, bundled_pair: Path) -> None:
    policy = Erratic()
    decoder.use_policy(policy)
    rounds = ask(decoder, bundled_pair, block_size="auto").rounds[1:]
    drafted = [done for done in rounds if done.draft_ids]
    assert 0 < len(drafted) < len(rounds) == policy.rounds
    for done in drafted:
        assert 1 <= len(done.draft_ids) <= 15 and done.choice == Choice(done.verify_width - 1)
        assert len(done.target_probabilities) == min(done.num_accepted + 1, done.verify_width - 1)
        whole = "bonus" if done.verify_width > 1 else "plain"
        assert done.verdicts[-1] == ("corrected" if done.num_accepted < done.verify_width - 1 else whole)
    assert all(done.verdicts == ("plain",) for done in rounds if not done.draft_ids)
    assert policy.told == sum(done.num_accepted for done in drafted)


def test_whole_drafts_are_verified_where_nobody_chooses(decoder: Decoder, bundled_pair: Path) -> None:
    decoder.use_policy(None)
    rounds = ask(decoder, bundled_pair, block_size="auto").rounds[1:]
    assert all(done.verify_width == len(done.draft_ids) + 1 and done.choice is None for done in rounds)


def test_costs_are_timed_for_every_width_and_grow(decoder: Decoder) -> None:
    table = time_rounds(decoder, list(range(20, 40)))
    assert table is not None and table.contexts[0] == 128
    for costs in table.costs:
        assert len(costs.verify) in (16, 64) and costs.draft > 0 and costs.plain > 0 and costs.ingest > 0
        assert list(costs.verify) == sorted(costs.verify)
    assert decoder.cache.length == 0 and decoder.prefix.tokens == []


def test_a_target_alone_has_costs_of_its_passes(bundled_pair: Path) -> None:
    """What is looked up in the text is verified as well."""
    costs = time_rounds(Decoder(load_target(bundled_pair / "target", CPU, no_progress), None, 256), [5])
    assert costs is not None and costs.costs[0].draft == 0 < costs.costs[0].verify[0]
