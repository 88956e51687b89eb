"""Acceptance of a tree is a walk from the anchor; of a chain it is what acceptance of a chain is."""

from __future__ import annotations

import random

import pytest
import torch

from engine.kernels.round.accept import accept_rows
from engine.kernels.round.state import ACCEPTED, AT_RECORD, RECORD_SIZE, TARGET_PROBABILITIES
from engine.kernels.toolchain.jit import INTERPRETED
from engine.speculation.trees import Node
from tests.kernels.drawn_trees import copied, drawn_tree
from tests.kernels.tree_rounds import Pass

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

SEEDS = range(12)


@pytest.mark.parametrize("greedy", [True, False], ids=["greedy", "sampled"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_path_that_the_target_says_is_accepted(seed: int, greedy: bool) -> None:
    rng = random.Random(seed)
    done = Pass.drawn(rng, drawn_tree(rng, rng.choice([1, 2, 7, 16, 16, 16])), greedy)
    done.check(done.accept())


@pytest.mark.parametrize("greedy", [True, False], ids=["greedy", "sampled"])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_stop_token_on_the_path_ends_the_answer(place: int, greedy: bool) -> None:
    """Also where it was drafted. Stop tokens in rows off the path, or behind its end, mean nothing."""
    rng = random.Random(20 + place)
    while True:
        done = Pass.drawn(rng, drawn_tree(rng, 16), greedy)
        walked = done.walked
        tokens = [done.said[row] for row in (0, *walked)]
        off = [token for token in done.ids[1:16].tolist() if token not in tokens]
        if len(walked) == 3 and len(set(tokens)) == 4 and off:
            break
    done.state.stops[:2] = torch.tensor([off[0], tokens[place]])
    accepted, emitted = done.check(done.accept())
    assert (accepted, emitted, int(done.state.done)) == (3, place + 1, 1)


@pytest.mark.parametrize(("left", "over"), [(1, False), (0, True)])
def test_the_answer_ends_with_its_room(left: int, over: bool) -> None:
    done = Pass.drawn(random.Random(3), drawn_tree(random.Random(3), 16), True)
    walked = done.walked
    done.state.end.fill_(1000 + len(walked) + 2 + left)
    done.check(done.accept())
    assert bool(done.state.done) == over


def test_a_round_after_the_end_changes_nothing() -> None:
    done = Pass.drawn(random.Random(0), drawn_tree(random.Random(0), 16), True)
    done.state.width.zero_()
    before = copied(done.state)
    path = done.accept()
    assert int(path.count) == 0
    assert torch.equal(done.state.numbers, before.numbers)


@pytest.mark.parametrize("greedy", [True, False], ids=["greedy", "sampled"])
@pytest.mark.parametrize("rows", [1, 2, 16])
def test_a_chain_is_accepted_as_a_chain(rows: int, greedy: bool) -> None:
    """The same state and the same record, as far as it has a meaning."""
    rng = random.Random(rows)
    done = Pass.drawn(rng, [Node(row, row + 1, 0, 0.5) for row in range(rows - 1)], greedy)
    done.ids[rows:] = done.choices.tokens[rows - 1 : 16, 0]
    other = copied(done.state)
    accept_rows(other, done.ids, done.head, done.sampled, done.choices.probabilities[:, 0].contiguous())
    path = done.accept()
    assert torch.equal(done.state.numbers[:AT_RECORD], other.numbers[:AT_RECORD])
    record, expected = done.state.record[:RECORD_SIZE], other.record[:RECORD_SIZE].clone()
    judged = TARGET_PROBABILITIES + min(int(other.record[int(ACCEPTED)]) + 1, rows - 1)
    assert torch.equal(record[:judged], expected[:judged])
    assert path.rows.tolist() == list(range(16))
