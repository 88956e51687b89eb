"""What trees of drafts become on a device, beside what they should."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import exp, isclose

import torch
from torch import Tensor

from engine.kernels.decode.products.head import HeadOutput
from engine.kernels.decode.tiling.tiles import Tiles
from engine.kernels.round.accept import AcceptedPath, DraftTree, accept_tree, reference_path
from engine.kernels.round.choices import DraftChoices
from engine.kernels.round.grow import grow_tree
from engine.kernels.round.lookup import LookupText, look_up
from engine.kernels.round.sample import SampledRows
from engine.kernels.round.state import (
    ACCEPTED,
    BESIDE_CHANCES,
    BESIDE_CHOICES,
    CHANCE,
    CHOICE_PROBABILITIES,
    COST_MS,
    CURSOR,
    DRAFT_PROBABILITIES,
    DRAFTS,
    EMITTED,
    MATCH_LENGTH,
    NUMBERS,
    PARENTS,
    PATH,
    PROBABILITIES,
    ROWS,
    TARGET_PROBABILITIES,
    TOKENS,
    TREE_RECORD_SIZE,
    WIDTH,
    RoundState,
)
from engine.kernels.round.tree_rows import TreeRows
from engine.kernels.round.verify_width import choice_numbers
from engine.speculation.auto import Auto
from engine.speculation.choice import Chosen
from engine.speculation.lookup import LookedUpChain
from engine.speculation.trees import CHOICES, LOOKED_UP, Chances, Lattice, Node, behind, chain
from tests.kernels.drawn_trees import Held, posed
from tests.kernels.tensors import CPU

VOCAB = 200


@dataclass
class Grown:
    """What the choice of a tree reads and fills."""

    state: RoundState
    choices: DraftChoices
    ids: Tensor
    parents: Tensor
    rows: TreeRows

    @classmethod
    def of(
        cls,
        policy: Auto | None,
        chances: Chances,
        width: int | None = None,
        looked: LookedUpChain | None = None,
        state: RoundState | None = None,
        rows: int = 0,
        guess: Sequence[int] = (),
    ) -> Grown:
        """Of the chances of a block's positions; ``token_at`` says which tokens stand there. ``looked``: the chain
        ``guess``, which stands behind a match. ``state``: of a round before. ``rows``: of the pass, which may hold more
        than a draft."""
        conditioned = isinstance(chances, Lattice)
        state = state or RoundState.allocate(CPU, TREE_RECORD_SIZE)
        choices = DraftChoices.allocate(CPU, conditioned)
        width = len(chances) + 1 if width is None else width
        state.width.fill_(max(width, rows))
        state.draft_width.fill_(width if width > 1 else 0)
        choices.probabilities.fill_(float("nan"))
        count = len(chances)
        if isinstance(chances, Lattice):
            assert choices.order is not None
            choices.probabilities[:count] = torch.tensor(chances.behind)
            choices.order[:count] = (torch.tensor(chances.order) << torch.arange(0, 16, 4)).sum(-1)
        else:
            choices.probabilities[:count] = torch.tensor(chances).reshape(-1, CHOICES)
        choices.tokens[:] = token_at(torch.arange(16)[:, None], torch.arange(choices.tokens.shape[1]))
        rows, parents = posed([Node(0, 1, 0, 1.0), Node(0, 1, 1, 1.0), Node(2, 2, 0, 1.0)])  # of the round before
        ids, numbers = torch.full((17,), 7), choice_numbers(None if policy is None else policy.numbers(0))
        text = None if looked is None else _holding(guess, looked, state)
        grow_tree(state, numbers, ids, DraftTree(rows, parents, choices, AcceptedPath.allocate(CPU)), text)
        return cls(state, choices, ids, parents, rows)

    def check(self, tree: list[Node], chances: Chances, guess: Sequence[int] = ()) -> None:
        """That the device holds this tree, and the record all that the host needs to rebuild it."""
        count, record = len(tree), self.state.record
        rows, parents = posed(tree)
        assert int(self.state.width) == count + 1
        assert self.parents.tolist() == parents.tolist()
        for field in fields(TreeRows):
            assert torch.equal(getattr(self.rows, field.name), getattr(rows, field.name)), field.name
        places = [node.candidate if isinstance(chances, Lattice) else node.choice for node in tree]
        tokens = [
            guess[node.depth - 1] if node.choice == LOOKED_UP else token_at(node.depth - 1, place)
            for node, place in zip(tree, places, strict=True)
        ]
        assert self.ids.tolist() == [7, *tokens, *[7] * (16 - count)]
        assert record[PARENTS:][:16].tolist() == parents.tolist()
        assert record[NUMBERS:][1 : count + 1].tolist() == [node.choice for node in tree]
        firsts = [token_at(node.depth - 1, node.candidate) for node in chain(len(chances), chances)]
        assert record[DRAFTS:][: len(chances)].tolist() == self.choices.first_tokens[: len(chances)].tolist() == firsts
        assert self.choices.first_probabilities[: len(chances)].tolist() == [given[0] for given in chances]
        kept = record.view(torch.float32)[CHOICE_PROBABILITIES:][: 16 * CHOICES].view(16, CHOICES).tolist()
        told = behind(chances, tree) if isinstance(chances, Lattice) else chances
        assert kept == [list(given) or [0.0] * CHOICES for given in (*told, *[[]] * (16 - len(told)))]

    def check_beside(self, looked: LookedUpChain, chosen: Chosen) -> None:
        """That the record says what was looked up."""
        record, size = self.state.record, looked.size
        assert record[MATCH_LENGTH:][:3].tolist() == [looked.length, looked.length + size, size]
        assert record[BESIDE_CHOICES:][:size].tolist() == list(looked.choices)
        chances = record.view(torch.float32)[BESIDE_CHANCES:][:size].tolist()
        assert all(isclose(ours, theirs, abs_tol=1e-5) for ours, theirs in zip(chances, chosen.beside, strict=True))

    def check_choice(self, chosen: Chosen) -> None:
        """That the record says what decided it."""
        chance, cost_ms = self.state.record.view(torch.float32)[CHANCE:][: COST_MS - CHANCE + 1].tolist()
        why = chosen.why
        assert why is not None
        assert isclose(chance, why.chance, abs_tol=1e-5) and isclose(cost_ms, why.cost_ms, abs_tol=1e-5)


def token_at(position: Held, place: Held) -> Held:
    """The token in a place of a position, counted from 0; behind the last place one that is no candidate."""
    return 20 * position + place + 20  # type: ignore[operator,return-value]


def _holding(guess: Sequence[int], looked: LookedUpChain, state: RoundState) -> LookupText:
    """A text whose newest tokens stood before, with this chain behind them, looked up."""
    newest = list(range(500, 500 + looked.length))
    told = torch.tensor([*newest, *guess, *newest], dtype=torch.int32)
    state.cursor.fill_(len(told) - 1)
    state.stops[0] = guess[-1]
    text = LookupText.allocate(len(told), state.numbers.device)
    text.ids[: len(told)] = told
    look_up(state, text)
    return text


@dataclass
class Pass:
    """What stands on the device once the target has seen a tree."""

    tree: list[Node]
    state: RoundState
    ids: Tensor
    choices: DraftChoices
    head: HeadOutput
    sampled: SampledRows | None

    @classmethod
    def drawn(cls, rng: random.Random, tree: list[Node], greedy: bool) -> Pass:
        """A target that says what stands in the tree more often than not, at cursor 1000, with room for more."""
        noise = torch.Generator().manual_seed(rng.randrange(2**31))
        choices, head = DraftChoices.allocate(CPU), HeadOutput.allocate(VOCAB, Tiles(64, 64), CPU)
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
        """By the target, behind each row."""
        said: list[int] = (self.head if self.sampled is None else self.sampled).token.tolist()
        return said

    @property
    def walked(self) -> list[int]:
        """Rows of the drafts that it says."""
        return reference_path(self.tree, self.ids.tolist(), self.said)

    def accept(self) -> AcceptedPath:
        (rows, parents), path = posed(self.tree), AcceptedPath.allocate(CPU)
        accept_tree(self.state, self.ids, DraftTree(rows, parents, self.choices, path), self.head, self.sampled)
        return path

    def check(self, path: AcceptedPath) -> tuple[int, int]:
        """That state, record and path tell of the walk; how much was accepted, and emitted of that and one more."""
        walked, state = self.walked, self.state
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
        assert record[PATH:][:16] == path.rows.tolist() == on_path + list(range(len(on_path), 16))
        assert (int(path.count), int(path.before)) == (emitted, 1000)
        given = (self.head if self.sampled is None else self.sampled).probability
        assert reals[PROBABILITIES:][:emitted].tolist() == given[on_path][:emitted].tolist()
        assert reals[DRAFT_PROBABILITIES:][:16].tolist() == self.choices.probabilities[:, 0].tolist()
        for depth, row in enumerate(on_path):
            asked = self._given(row, int(self.choices.tokens[depth, 0]))
            assert isclose(reals[TARGET_PROBABILITIES:][depth].item(), asked, rel_tol=1e-5)
        return len(walked), emitted

    def _given(self, row: int, token: int) -> float:
        """What the target gave the first choice behind a row."""
        if self.sampled is not None:
            return self.sampled.draft_probability[row].item()
        assert self.head.logits is not None
        return exp(self.head.logits[row, token] - self.head.peak[row]) * self.head.probability[row].item()
