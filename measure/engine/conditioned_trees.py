"""``python -m measure.engine.conditioned_trees``: what trees are worth whose tokens are scored by the one before them.

On generated chances, since no published head is at hand: each position has sixteen candidates, whose odds are their own
and those of the pair with the token before, and the text follows these odds. Prints accepted drafts a round of chains
and trees that know the pairs, and of those that know only each position's own chances, as today's do."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import product

import torch

from engine.speculation.trees import CHOICES, Chances, Lattice, best_first, chain, place_of
from measure.quick import parse

CANDIDATES, DEPTH, ROWS = 16, 15, (8, 16)
SHAPES = ((2.0, 1.0, 0.04), (2.0, 2.0, 0.04), (1.5, 1.5, 0.08))
"""The spread of a candidate's own logit, that of a pair's, and how often the text takes no candidate."""


def accepted(chances: Chances, ids: Sequence[Sequence[int]], text: Sequence[int], rows: int, trees: bool) -> int:
    """How many tokens of a text a tree, or a chain, of so many rows holds. ``ids``: each position's candidates."""
    tree = best_first(chances, rows) if trees else chain(min(rows - 1, len(chances)))
    nodes = {(node.parent, node.choice): row for row, node in enumerate(tree, 1)}
    row = place = 0
    for depth, token in enumerate(text):
        held = [choice for choice in range(CHOICES) if (row, choice) in nodes]
        right = [choice for choice in held if ids[depth][place_of(chances, depth, place, choice)] == token]
        if not right:
            return depth
        row, place = nodes[row, right[0]], place_of(chances, depth, place, right[0])
    return len(text)


def drawn(own: float, pair: float, lost: float) -> tuple[Lattice, list[list[float]], list[list[int]], list[int]]:
    """A draft: its chances by pairs, each position's own and the candidates that these are of, and a text."""
    chances, places, marginals, firsts, text = [], [], [], [], list[int]()
    before, reached = 0, torch.ones(1)
    for _ in range(DEPTH):
        scores = own * torch.randn(CANDIDATES) + pair * torch.randn(len(reached), CANDIDATES)
        given = scores.softmax(-1) * (1 - lost)
        reached = reached / reached.sum() @ given
        best, likeliest = given.topk(CHOICES), reached.topk(CHOICES)
        chances.append(best.values.tolist())
        places.append(best.indices.tolist())
        marginals.append(likeliest.values.tolist())
        firsts.append(likeliest.indices.tolist())
        if -1 not in text:
            text.append(-1 if float(torch.rand(1)) < lost else int(torch.multinomial(given[before], 1)))
            before = text[-1]
    return Lattice(chances, places), marginals, firsts, text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1500)
    wanted = parse(parser, "--rounds 10")
    torch.manual_seed(3)
    torch.set_num_threads(1)
    print(f"{'own':>5}{'pair':>6}{'lost':>6}{'rows':>6}{'chain':>8}{'by pairs':>10}{'tree':>8}{'by pairs':>10}")
    everything = [list(range(CANDIDATES))] * DEPTH
    for shape in SHAPES:
        kept: Counter[tuple[int, bool, bool]] = Counter()
        for _ in range(wanted.rounds):
            lattice, marginals, firsts, text = drawn(*shape)
            for rows, trees in product(ROWS, (False, True)):
                kept[rows, trees, False] += accepted(marginals[: rows - 1], firsts, text, rows, trees)
                kept[rows, trees, True] += accepted(lattice[: rows - 1], everything, text, rows, trees)
        for rows in ROWS:
            chains, grown = (
                [kept[rows, tree, pairs] / wanted.rounds for pairs in (False, True)] for tree in (False, True)
            )
            figures = f"{chains[0]:8.2f}{chains[1]:10.2f}{grown[0]:8.2f}{grown[1]:10.2f}"
            print(f"{shape[0]:5}{shape[1]:6}{shape[2]:6}{rows:6}{figures}{grown[1] / max(grown[0], 1e-9) - 1:+8.1%}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
