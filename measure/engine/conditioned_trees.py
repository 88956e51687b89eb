"""``python -m measure.engine.conditioned_trees``: what trees are worth whose tokens are scored by the one before them.

On generated chances: each position has sixteen candidates, whose odds are their own and those of the pair with the
token before, and the text follows these odds. Prints accepted drafts a round of chains and trees that know the pairs,
and of those that know only each position's own chances."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import product

import torch

from engine.kernels.round.choices import CANDIDATES
from engine.kernels.round.lattice import Edges
from engine.speculation.trees import CHOICES, Chances, Lattice, best_first, chain
from measure.quick import parse

DEPTHS, ROWS = (7, 15), (8, 16)
SHAPES = ((2.0, 1.0, 0.04), (2.0, 2.0, 0.04), (1.5, 1.5, 0.08))
"""The spread of a candidate's own logit, that of a pair's, and how often the text takes no candidate."""


def accepted(chances: Chances, ids: Sequence[Sequence[int]], text: Sequence[int], rows: int, trees: bool) -> int:
    """How many tokens of a text a tree, or a chain, of so many rows holds. ``ids``: each position's candidates."""
    tree = best_first(chances, rows) if trees else chain(min(rows - 1, len(chances)), chances)
    nodes = {(node.parent, ids[node.depth - 1][node.candidate]): row for row, node in enumerate(tree, 1)}
    row: int | None = 0
    for depth, token in enumerate(text):
        row = nodes.get((row or 0, token))
        if row is None:
            return depth
    return len(text)


def drawn(
    own: float, pair: float, lost: float, depth: int
) -> tuple[Lattice, list[list[float]], list[list[int]], list[int]]:
    """A draft: its chances by pairs, each position's own and the candidates that these are of, and a text."""
    scores = own * torch.randn(depth, 1, CANDIDATES) + pair * torch.randn(depth, CANDIDATES, CANDIDATES)
    scores[0] = scores[0, 0]
    chances, reached = scores.softmax(-1) * (1 - lost), torch.ones(CANDIDATES) / CANDIDATES
    marginals, firsts, text = [], [], list[int]()
    for given in chances:
        reached = reached / reached.sum() @ given
        likeliest = reached.topk(CHOICES)
        marginals.append(likeliest.values.tolist())
        firsts.append(likeliest.indices.tolist())
        if -1 not in text:
            row = given[text[-1] if text else 0]
            text.append(-1 if float(torch.rand(1)) < lost else int(torch.multinomial(row, 1)))
    tokens = torch.arange(CANDIDATES).expand(depth, -1)
    rest = scores.logsumexp(-1).mean() + torch.tensor(lost / (1 - lost)).log()
    return Edges(tokens, scores, rest.expand(depth)).lattice(), marginals, firsts, text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1500)
    wanted = parse(parser, "--rounds 10")
    torch.manual_seed(3)
    torch.set_num_threads(1)
    names = ("own", 5), ("pair", 6), ("lost", 6), ("depth", 7), ("rows", 6), ("chain", 8), ("by pairs", 10), ("tree", 8)
    print("".join(name.rjust(width) for name, width in (*names, ("by pairs", 10))))
    for shape, depth in product(SHAPES, DEPTHS):
        kept: Counter[tuple[int, bool, bool]] = Counter()
        for _ in range(wanted.rounds):
            lattice, marginals, firsts, text = drawn(*shape, depth)
            every = [list(range(CANDIDATES))] * depth
            for rows, trees in product(ROWS, (False, True)):
                kept[rows, trees, False] += accepted(marginals, firsts, text, rows, trees)
                kept[rows, trees, True] += accepted(lattice, every, text, rows, trees)
        for rows in ROWS:
            chains, grown = (
                [kept[rows, tree, pairs] / wanted.rounds for pairs in (False, True)] for tree in (False, True)
            )
            figures = f"{chains[0]:8.2f}{chains[1]:10.2f}{grown[0]:8.2f}{grown[1]:10.2f}"
            gain = grown[1] / max(grown[0], 1e-9) - 1
            print(f"{shape[0]:5}{shape[1]:6}{shape[2]:6}{depth:7}{rows:6}{figures}{gain:+8.1%}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
