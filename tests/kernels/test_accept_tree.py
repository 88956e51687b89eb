"""Acceptance of a tree is a walk from the anchor; of a chain it is what acceptance of a chain is."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields

import pytest
import torch
from torch import Tensor

from engine.kernels.accept import (
    ACCEPTED,
    CURSOR,
    DRAFT_PROBABILITIES,
    EMITTED,
    PROBABILITIES,
    RECORD_SIZE,
    ROWS,
    TARGET_PROBABILITIES,
    TOKENS,
    WIDTH,
    RoundState,
    accept_rows,
)
from engine.kernels.accept_tree import PATH, TREE_RECORD_SIZE, AcceptedPath, accept_tree, reference_path
from engine.kernels.choices import Choices
from engine.kernels.head import HeadOutput
from engine.kernels.jit import INTERPRETED
from engine.kernels.sample import SampledRows
from engine.kernels.tiles import Tiles
from engine.trees import CHOICES, Node
from tests.kernels.drawn_trees import drawn_tree, posed

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

CPU = torch.device("cpu")
VOCAB = 200
SEEDS = range(12)


@dataclass
class Pass:
    """What stands on the device once the target has seen a tree."""

    tree: list[Node]
    state: RoundState
    ids: Tensor
    choices: Choices
    head: HeadOutput
    sampled: SampledRows | None

    @classmethod
    def drawn(cls, rng: random.Random, tree: list[Node], greedy: bool) -> Pass:
        """A target that says what stands in the tree more often than not, at cursor 1000, with room for more."""
        noise = torch.Generator().manual_seed(rng.randrange(2**31))
        choices, head = Choices.allocate(CPU), HeadOutput.allocate(VOCAB, Tiles(64, 64), CPU)
        for position in range(16):
            choices.tokens[position] = torch.tensor(rng.sample(range(VOCAB), CHOICES))
        choices.probabilities.uniform_(generator=noise)
        assert head.logits is not None
        head.logits.normal_(generator=noise)
        ids = torch.randint(VOCAB, (17,), generator=noise)
        for row, node in enumerate(tree, 1):
            ids[row] = choices.tokens[node.depth - 1, node.choice]
        said = [rng.randrange(VOCAB) for _ in range(16)]
        for row in range(16):
            children = [child for child, node in enumerate(tree, 1) if node.parent == row]
            if children and rng.random() < 0.8:
                said[row] = int(ids[rng.choice(children)])
        sampled = None if greedy else SampledRows.allocate(CPU)
        (head if sampled is None else sampled).token.copy_(torch.tensor(said))
        for numbers in (head.peak, head.probability, *([] if sampled is None else [sampled.probability])):
            numbers.uniform_(generator=noise)
        if sampled is not None:
            sampled.draft_probability.uniform_(generator=noise)
        state = RoundState.allocate(CPU, TREE_RECORD_SIZE)
        for number, value in [(state.cursor, 1000), (state.end, 2000), (state.anchor, 5), (state.done, 0)]:
            number.fill_(value)
        state.width.fill_(len(tree) + 1)
        return cls(tree, state, ids, choices, head, sampled)

    @property
    def said(self) -> list[int]:
        said: list[int] = (self.head if self.sampled is None else self.sampled).token.tolist()
        return said

    def accept(self) -> AcceptedPath:
        path = AcceptedPath.allocate(CPU)
        rows, parents = posed(self.tree)
        accept_tree(self.state, self.ids, rows, parents, self.choices, self.head, self.sampled, path)
        return path

    def check(self, path: AcceptedPath) -> tuple[int, int]:
        """That state, record and path tell of the walk; how much was accepted, and emitted of that and one more."""
        walked, state = reference_path(self.tree, self.ids.tolist(), self.said), self.state
        on_path = [0, *walked]
        tokens = [self.said[row] for row in on_path]
        stops = [place for place, token in enumerate(tokens) if token in state.stops.tolist()]
        emitted = stops[0] + 1 if stops else len(tokens)
        record, reals = state.record.tolist(), state.record.view(torch.float32)
        assert (record[WIDTH], record[EMITTED]) == (len(self.tree) + 1, emitted)
        assert record[ACCEPTED] == min(len(walked), emitted)
        assert int(state.cursor) == record[CURSOR] == 1000 + emitted
        assert (int(state.anchor), int(state.pending)) == (tokens[emitted - 1], emitted)
        assert int(state.done) == (bool(stops) or 1000 + emitted + 1 >= int(state.end))
        assert record[ROWS:][:16] == self.ids[:16].tolist()
        assert record[TOKENS:][:emitted] == tokens[:emitted]
        expected_path = on_path + list(range(len(on_path), 16))
        assert record[PATH:][:16] == path.rows.tolist() == expected_path
        assert (int(path.count), int(path.before)) == (emitted, 1000)
        given = (self.head if self.sampled is None else self.sampled).probability
        assert reals[PROBABILITIES:][:emitted].tolist() == given[on_path][:emitted].tolist()
        assert reals[DRAFT_PROBABILITIES:][:16].tolist() == self.choices.probabilities[:, 0].tolist()
        for depth, row in enumerate(on_path):
            asked = reals[TARGET_PROBABILITIES + depth].item()
            assert asked == pytest.approx(self._given(row, int(self.choices.tokens[depth, 0])), rel=1e-6)
        return len(walked), emitted

    def _given(self, row: int, token: int) -> float:
        """What the target gave the first choice behind a row."""
        if self.sampled is not None:
            return self.sampled.draft_probability[row].item()
        assert self.head.logits is not None
        return float(torch.exp(self.head.logits[row, token] - self.head.peak[row]) * self.head.probability[row])


@pytest.mark.parametrize("greedy", [True, False], ids=["greedy", "sampled"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_path_that_the_target_says_is_accepted(seed: int, greedy: bool) -> None:
    rng = random.Random(seed)
    done = Pass.drawn(rng, drawn_tree(rng, rng.choice([1, 2, 7, 16, 16, 16])), greedy)
    done.check(done.accept())


def test_paths_leave_the_trunk() -> None:
    """What the test above compares would be of little worth if they did not."""
    left = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        done = Pass.drawn(rng, drawn_tree(rng, rng.choice([1, 2, 7, 16, 16, 16])), True)
        walked = reference_path(done.tree, done.ids.tolist(), done.said)
        left += walked != list(range(1, len(walked) + 1))
    assert left >= 4


@pytest.mark.parametrize("greedy", [True, False], ids=["greedy", "sampled"])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_stop_token_on_the_path_ends_the_answer(place: int, greedy: bool) -> None:
    """Also where it was drafted. Stop tokens in rows off the path, or behind its end, mean nothing."""
    rng = random.Random(20 + place)
    while True:
        done = Pass.drawn(rng, drawn_tree(rng, 16), greedy)
        walked = reference_path(done.tree, done.ids.tolist(), done.said)
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
    walked = reference_path(done.tree, done.ids.tolist(), done.said)
    done.state.end.fill_(1000 + len(walked) + 2 + left)
    done.check(done.accept())
    assert bool(done.state.done) == over


def test_a_round_after_the_end_changes_nothing() -> None:
    done = Pass.drawn(random.Random(0), drawn_tree(random.Random(0), 16), True)
    done.state.width.zero_()
    before = {field.name: getattr(done.state, field.name).clone() for field in fields(RoundState)}
    path = done.accept()
    assert int(path.count) == 0
    for name, value in before.items():
        assert torch.equal(getattr(done.state, name), value), name


@pytest.mark.parametrize("greedy", [True, False], ids=["greedy", "sampled"])
@pytest.mark.parametrize("script", [None, 0, 2, 15])
@pytest.mark.parametrize("rows", [1, 2, 16])
def test_a_chain_is_accepted_as_a_chain(rows: int, script: int | None, greedy: bool) -> None:
    """Also by a script: the same state and the same record, as far as it has a meaning."""
    rng = random.Random(rows)
    done = Pass.drawn(rng, [Node(row, row + 1, 0, 0.5) for row in range(rows - 1)], greedy)
    done.ids[rows:] = done.choices.tokens[rows - 1 : 16, 0]
    done.state.script_length.fill_(0 if script is None else 3)
    done.state.script_place.fill_(4)
    done.state.script[1] = script or 0
    other = RoundState(*(getattr(done.state, field.name).clone() for field in fields(RoundState)))
    accept_rows(other, done.ids, done.head, done.sampled, done.choices.probabilities[:, 0].contiguous())
    path = done.accept()
    for field in fields(RoundState):
        if field.name != "record":
            assert torch.equal(getattr(done.state, field.name), getattr(other, field.name)), field.name
    record, expected = done.state.record[:RECORD_SIZE], other.record[:RECORD_SIZE].clone()
    judged = TARGET_PROBABILITIES + min(int(other.record[ACCEPTED]) + 1, rows - 1)
    assert torch.equal(record[:judged], expected[:judged])
    assert path.rows.tolist() == list(range(16))
