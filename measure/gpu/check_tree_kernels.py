"""``python -m measure.gpu.check_tree_kernels``: compares the small kernels of a round with a tree with their
definitions.

And times each, in a graph of many. ``TRITON_INTERPRET=1`` and ``--shape tiny --device cpu`` try the script out."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from engine.kernels.decode.head import HeadOutput, pick_rows
from engine.kernels.decode.tiles import DRAFT_TILES
from engine.kernels.round.accept import AcceptedPath, DraftTree, accept_tree
from engine.kernels.round.choices import Choices, pick_choices, reference_choices
from engine.kernels.round.grow import grow_tree
from engine.kernels.round.lookup import LookupText, look_up
from engine.kernels.round.move_accepted import RowStores, move_accepted, reference_move
from engine.kernels.round.sample import SampledRows, SampleScratch, SamplingSettings, sample_rows
from engine.kernels.round.state import TREE_RECORD_SIZE, RoundState
from engine.kernels.round.verify_width import choice_numbers
from engine.kv_cache.cache import Cache
from engine.lab.bench.shapes import SHAPES, Shape, read_shape
from engine.loading.checkpoint import compute_dtype
from engine.measured.timing import time_launches
from engine.sampling.sampling import sample
from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.lookup import LookedUpChain
from engine.speculation.trees import LOOKED_UP, path_to
from measure.gpu.report import Report
from measure.quick import parse
from tests.kernels.drawn_trees import drawn_chances, drawn_tree, moved, posed
from tests.kernels.tree_rounds import Grown, Pass

TILES = DRAFT_TILES.head
CURSOR = 3000
"""A cursor at which rings have begun anew."""
COSTS = CostTable((0,), (RoundCosts(2.0, tuple(16.0 + row / 8 for row in range(16))),))


class TreeChecks:
    """Checks one shape on one device; ``count`` trees of each kind."""

    def __init__(self, shape: Shape, device: torch.device, report: Report, count: int):
        self.shape, self.device, self.report, self.count = shape, device, report, count

    def head(self) -> HeadOutput:
        """A head's output as ``head_rows`` leaves it, of logits in coarse steps, many of which are equal."""
        out = HeadOutput.allocate(self.shape.target.vocab_size, TILES, self.device)
        assert out.logits is not None
        out.logits.normal_().mul_(16).round_().div_(4)
        tiles = out.logits.view(16, -1, TILES.columns)
        best = tiles.max(dim=-1)
        out.tile_best.copy_(best.values)
        out.tile_token.copy_((tiles == best.values[..., None]).int().argmax(dim=-1))
        out.tile_token.add_(torch.arange(tiles.shape[1], dtype=torch.int32, device=self.device) * TILES.columns)
        out.tile_mass.copy_((tiles - best.values[..., None]).exp().sum(dim=-1))
        return out

    def choices(self) -> None:
        out, choices = self.head(), Choices.allocate(self.device)
        assert out.logits is not None
        pick_rows(out)
        alone = moved(out, self.device)
        pick_choices(out, choices, TILES)
        tokens, probabilities = reference_choices(out.logits)
        same = torch.equal(choices.tokens, tokens)
        near = torch.allclose(choices.probabilities, probabilities, rtol=1e-4)
        pairs = zip((out.token, out.probability, out.peak), (alone.token, alone.probability, alone.peak), strict=True)
        picked = all(torch.equal(one, other) for one, other in pairs)
        self.report.line("choices", f"tokens {same}, probabilities {near}, the first as picked {picked}", same and near)
        self.report.line("choices, first", "same bits" if picked else "OTHER BITS", picked)
        self.time("pick", lambda: pick_rows(out))
        self.time("choices", lambda: pick_choices(out, choices, TILES))

    def tree(self) -> DraftTree:
        return DraftTree.allocate(Choices.allocate(self.device))

    def grown(self) -> None:
        rows = 0
        for seed in range(self.count):
            rng, policy = random.Random(seed), Auto(COSTS)
            for _ in range(seed):
                policy.worth.first.observe(rng.random(), rng.random() < 0.5)
                policy.worth.others.observe(rng.random(), rng.random() < 0.3)
            chances = drawn_chances(rng, rng.choice([1, 7, 15, 15]))
            tree, choice = policy.choose(chances, 0, len(chances) + 1)
            result = Grown.of(policy, chances, device=self.device)
            result.check(tree, chances)
            result.check_choice(choice)
            rows += len(tree)
            choices = tuple(rng.choice([rng.randint(0, LOOKED_UP), LOOKED_UP]) for _ in chances)
            looked = LookedUpChain(rng.choice([3, 6, 12, 32]), len(choices), 0, choices)
            tree, choice = policy.choose(chances, 0, len(chances) + 1, looked)
            result = Grown.of(policy, chances, device=self.device, looked=looked)
            result.check(tree, chances)
            result.check_choice(choice)
            result.check_beside(looked, choice)
        said = f"{self.count} of {rows / self.count:.1f} drafts, as the policy has them, as many with a looked up chain"
        self.report.line("trees grown", said)
        state, placed = RoundState.allocate(self.device, TREE_RECORD_SIZE), self.tree()
        placed.choices.probabilities.copy_(torch.tensor([0.4, 0.3, 0.2, 0.1]))
        numbers = choice_numbers(Auto(COSTS).numbers(0)).to(self.device)
        ids = torch.zeros(17, dtype=torch.int64, device=self.device)

        def grow() -> None:
            state.draft_width.fill_(16)
            grow_tree(state, numbers, ids, placed)

        text = LookupText.allocate(4096, self.device)
        state.cursor.fill_(3000)

        def grow_with_lookup() -> None:
            state.draft_width.fill_(16)
            look_up(state, text)
            grow_tree(state, numbers, ids, placed, text)

        self.time("grow, and a fill", grow)
        self.time("look up and grow, and a fill", grow_with_lookup)
        self.time("a fill", lambda: state.draft_width.fill_(16))

    def accepted(self) -> None:
        walked = 0
        for seed in range(self.count):
            rng = random.Random(seed)
            done = Pass.drawn(rng, drawn_tree(rng, rng.choice([1, 7, 16, 16])), greedy=seed % 2 == 0)
            if seed % 3 == 0:
                done.state.stops[0] = rng.choice(done.said)
            walked += done.check(done.accept(self.device))[0]
        self.report.line("trees accepted", f"{self.count}, on average {walked / self.count:.1f} drafts of each")
        state = moved(done.state, self.device)
        tree = DraftTree.allocate(moved(done.choices, self.device))
        tree.pose(done.tree)
        ids, head = done.ids.to(self.device), moved(done.head, self.device)
        self.time("accept", lambda: accept_tree(state, ids, tree, head, None))

    def sampled(self) -> None:
        out, rng = self.head(), random.Random(0)
        assert out.logits is not None
        out.peak.copy_(out.logits.amax(dim=-1))
        tree = drawn_tree(rng, 16)
        placed, _ = posed(tree)
        rows, vocab = moved(placed, self.device), self.shape.target.vocab_size
        settings, sampled = SamplingSettings.allocate(self.device), SampledRows.allocate(self.device)
        settings.temperature.fill_(0.8)
        settings.top_k.fill_(64)
        settings.top_p.fill_(0.95)
        settings.seed.fill_(7)
        drafts, scratch = torch.randint(vocab, (16, 4), device=self.device), SampleScratch(vocab, self.device)
        cursor, width = (torch.tensor([number], dtype=torch.int32).to(self.device) for number in (CURSOR, 16))
        sample_rows(out, settings, cursor, width, drafts[:, 0], sampled, scratch, rows)
        right = 0
        for row, depth in enumerate([0, *(node.depth for node in tree)]):
            place, draft = CURSOR + 1 + depth, [int(drafts[depth, 0])]
            said = sample(out.logits[row : row + 1], place, draft, temperature=0.8, top_k=64, top_p=0.95, seed=7)
            near = abs(said.draft_probabilities[0] - sampled.draft_probability[row].item()) < 1e-6
            right += said.ids == [int(sampled.token[row])] and near
        self.report.line("rows sampled at their depths", f"{right} of 16", right == 16)

    def moved_rows(self) -> None:
        target, drafter = self.shape.target, self.shape.drafter
        assert drafter is not None
        dtype = compute_dtype(self.device)
        cache = Cache(target.layers, CURSOR + 100, 256, dtype, self.device)
        columns = len(drafter.target_layer_ids) * target.hidden_size
        features = torch.randn(17, columns, device=self.device, dtype=dtype)
        stores = RowStores(cache.attention, features)
        for store in stores.stores:
            store.normal_()
        same, rng = True, random.Random(0)
        for _ in range(max(self.count // 8, 1)):
            path, rows = self._path(path_to(drawn_tree(rng, 16), rng.randint(1, 15)))
            before = [store.clone() for store in (*stores.stores, features[None])]
            for store in before[:-1]:
                reference_move(store, rows, CURSOR)
            reference_move(before[-1], rows, 0)
            move_accepted(stores, path)
            same = same and all(map(torch.equal, before, (*stores.stores, features[None])))
        self.report.line("accepted rows moved", "as defined" if same else "OTHERWISE", same)
        for name, rows in (("along the trunk", [0, 1, 2, 3]), ("1 row", [0, 2]), ("7 rows", [0, *range(2, 9)])):
            path, _ = self._path(rows)
            self.time(f"move, {name}", lambda path=path: move_accepted(stores, path))  # type: ignore[misc]

    def _path(self, rows: Sequence[int]) -> tuple[AcceptedPath, list[int]]:
        path = AcceptedPath.allocate(self.device)
        path.rows[: len(rows)] = torch.tensor(rows, dtype=torch.int32)
        path.count.fill_(len(rows))
        path.before.fill_(CURSOR)
        return path, list(rows)

    def time(self, name: str, launch: Callable[[], object]) -> None:
        def call() -> None:
            launch()

        self.report.line(f"{name}, us", f"{time_launches([call], self.device):.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", choices=SHAPES, default="31B")
    parser.add_argument("--count", type=int, default=400, help="trees of each kind")
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parse(parser, "--device cpu --shape tiny --count 4", kernels=True)
    report = Report()
    torch.manual_seed(0)
    checks = TreeChecks(read_shape(options.shape), torch.device(options.device), report, options.count)
    for part in (checks.choices, checks.grown, checks.accepted, checks.sampled, checks.moved_rows):
        try:
            part()
        except Exception as error:
            report.line(part.__name__, f"{type(error).__name__}: {str(error)[:300]}", False)
    report.write(options.out)
    return 0 if report.ok else 1


if __name__ == "__main__":
    with torch.inference_mode():
        sys.exit(main())
