"""Rounds that verify trees, on a GPU, at a dense target's real shape: ``python -m measure.gpu.check_trees``.

With fewer layers and random weights: answers with trees must be the plain ones token for token, with choices that are
right at most positions, each time at another place among them; and so with trees that share a looked up chain, which is
right where they are not. Where the drafter scores a token by the one before it (a published DFlash 2, or ``--drafter``,
which makes another kind of the shape's), choices are right behind the right token alone. On a CPU the plain ones are
the host's, which defines rounds.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import torch

from engine.commands import AUTO
from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.host_rounds import HostRounds
from engine.decoding.round_launches import RoundLaunches
from engine.decoding.rounds import Round
from engine.kernels.round.choices import CANDIDATES
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.kernels.weights.int8 import Int8Weight
from engine.lab.bench.shapes import SHAPES, TINY, read_shape
from engine.lab.bench.weights import random_pair
from engine.models.dflash.config import DFlashConfig, MarkovConfig, SecondConfig
from engine.models.dflash.dspine import DSpineConfig
from engine.speculation.auto import Auto
from engine.speculation.choice import RoundPlan
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.trees import CHOICES, LOOKED_UP, Node
from measure.gpu.check_rounds import WAYS, answer, device_rounds, tokens_of
from measure.gpu.report import Report
from measure.quick import parse

FLAT = CostTable((0,), (RoundCosts(1.0, tuple(16.0 + 0.1 * row for row in range(MAX_ROWS))),))
GIVEN = (0.4, 0.2, 0.12, 0.08)
"""The chances of the choices at a position, which are right at four of five positions."""
MARGIN = 64
MISCOPIED = 13
"""The distance, in tokens, between wrong tokens in what is looked up."""


class OracleTrees(RoundLaunches):
    """Makes the drafter's choices hold what follows in a given text at four of five positions; the drafter runs all the
    same. The text that is searched begins with the answer, so most of it is found there."""

    def __init__(self, decoder: Decoder, text: Sequence[int], answer: Sequence[int]):
        super().__init__(decoder, Int8Weight.of(decoder.target.head))
        device, vocab = decoder.device, decoder.target.config.vocab_size
        padded = torch.tensor([*text, *[0] * MARGIN], device=device)
        position = torch.arange(len(padded), device=device)
        choice = torch.arange(CHOICES, device=device)
        others = (padded[:, None] + 1 + choice) % vocab
        place = (position * 7 % (CHOICES + 1))[:, None]
        self._tokens = torch.where(choice == place, padded[:, None], others)
        # Sixteen candidates, the same four first, at each position turned further: these four stand behind the right
        # token, and behind every other the last four, which are wrong.
        candidate, turn = torch.arange(CANDIDATES, device=device), position * 5 % CANDIDATES
        further = (padded[:, None] + 20 + candidate[: CANDIDATES - CHOICES]) % vocab
        wide, back = torch.cat((self._tokens, further), 1), (candidate - turn[:, None]) % CANDIDATES
        self._candidates = wide.gather(1, back)
        right = (turn + (place[:, 0] < CHOICES) * place[:, 0]) % CANDIDATES
        packed = [((turn[:, None] + first + choice) % CANDIDATES << 4 * choice).sum(1) for first in (0, 12)]
        is_right = candidate == right.roll(1)[:, None]
        self._order = torch.where(is_right, packed[0][:, None], packed[1][:, None]).int()
        self._first_order = packed[0].int()
        self._ahead = torch.arange(1, MAX_ROWS + 1, device=device)
        self._given = torch.tensor(GIVEN, device=device)
        wrong = torch.arange(len(answer), device=device) % MISCOPIED == 0
        self._copy = torch.tensor(answer, dtype=torch.int32, device=device) + wrong

    def draft(self, count: int, tree: bool = False) -> None:
        super().draft(count, tree)
        assert self.tree is not None
        places = (self.state.cursor.long() + self._ahead).clamp(max=len(self._tokens) - 1)
        choices = self.tree.choices
        choices.probabilities.copy_(self._given.expand_as(choices.probabilities))
        if choices.order is None:
            choices.tokens.copy_(self._tokens[places])
        else:
            choices.tokens.copy_(self._candidates[places])
            choices.order.copy_(self._order[places])
            choices.order[:1].copy_(self._first_order[places[:1], None].expand(1, CANDIDATES))
        self.text.ids[: len(self._copy)].copy_(self._copy)


class Steady(Auto):
    """A policy that always verifies the whole tree of the drafter's choices: it learns nothing, and looks nothing
    up."""

    def plan(self, context: int, length: int) -> RoundPlan:
        return RoundPlan(True)

    def observe(self, *_: object) -> None:
        pass


class Sharing(Steady):
    """A policy like ``Steady`` that also looks drafts up."""

    def plan(self, context: int, length: int) -> RoundPlan:
        return RoundPlan(True, True)


def check_answers(decoder: Decoder, kind: str, length: int, tokens: int, ways: int, report: Report) -> None:
    rng = random.Random(length)
    prompt = [rng.randrange(decoder.target.config.vocab_size) for _ in range(length)]
    for way in WAYS[:ways]:
        decoder.use_rounds(device_rounds(decoder) if decoder.device.type == "cuda" else HostRounds())
        decoder.use_policy(None)
        plain = tokens_of(answer(decoder, prompt, way.settings(tokens, None)))
        again = tokens_of(answer(decoder, prompt, way.settings(tokens, 16)))
        decoder.use_rounds(DeviceRounds(OracleTrees(decoder, [*prompt, *plain], plain[: length - 1])))
        for name, policy in (("trees", Steady(FLAT)), ("shared with lookup", Sharing(FLAT))):
            decoder.use_policy(policy)
            rounds = answer(decoder, prompt, replace(way.settings(tokens, 16), block_size=AUTO))
            ids, accepted = tokens_of(rounds), sum(done.num_accepted for done in rounds)
            part = next((i for i, (a, b) in enumerate(zip(plain, ids, strict=False)) if a != b), len(ids))
            kept = [each for done in rounds for each in _kept(done) if each.choice]
            found = sum(each.choice == LOOKED_UP for each in kept)
            value = f"{len(ids)} tokens in {len(rounds) - 1} rounds, {accepted} accepted"
            value += f", {len(kept) - found} of them further choices, {found} looked up"
            shares, same = isinstance(policy, Sharing), ids == plain == again
            # In the copy of a shorter prompt too little is left where the drafter is wrong.
            as_asked = bool(kept) and (bool(found) == shares or (shares and length < tokens))
            said = f"PART AT TOKEN {part}" if not same else "equal" if as_asked else "equal, BUT NOT BY SUCH TREES"
            report.line(f"{kind}, {length} ahead, {way.name}, {name}", f"{value}, {said}", same and as_asked)


def _kept(done: Round) -> list[Node]:
    """The nodes of a tree that were accepted."""
    row, kept = 0, []
    placed = [(node.parent, token) for node, token in zip(done.tree, done.tree_ids, strict=True)]
    for token in done.emitted[: done.num_accepted] if done.tree else ():
        row = 1 + placed.index((row, token))
        kept.append(done.tree[row - 1])
    return kept


KINDS = ("own", "dflash2", "dspark", "dspine")
"""What ``--drafter`` makes of the shape's drafter, beside leaving it as it is."""


def of_kind(kind: str, drafter: DFlashConfig, vocabulary: int, small: bool) -> DFlashConfig:
    """A drafter of a kind that scores a token by the one before it, with the geometry of another."""
    drafter = replace(drafter, vocab_size=vocabulary)
    rank = 64 if small else 256
    if kind == "dflash2":
        return replace(drafter, second=SecondConfig(drafter.hidden_size // 16, rank), block_size=8)
    if kind == "dspark":
        return replace(drafter, markov=MarkovConfig(rank), block_size=8)
    layers = tuple(replace(each, kind="full_attention", window=None, causal=True) for each in drafter.layers)
    same = {each.name: getattr(drafter, each.name) for each in fields(DFlashConfig)}
    ranks = {"rank": 40, "message": 24} if small else {"rank": 1024, "message": 512}
    return DSpineConfig(**{**same, **ranks, "layers": layers, "logit_softcap": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", choices=SHAPES, default="31B")
    parser.add_argument("--drafter", choices=KINDS, nargs="+", default=["own"], help="kinds, of one geometry")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--lengths", type=int, nargs="+", default=[20, 120, 1020, 2040], help="of prompts")
    parser.add_argument("--tokens", type=int, default=120)
    parser.add_argument("--ways", type=int, default=len(WAYS), help="how many ways to ask")
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    small = "--device cpu --shape tiny --layers 6 --lengths 20 --tokens 16 --ways 1 --drafter dspine"
    options = parse(parser, small, kernels=True)
    report, device = Report(), torch.device(options.device)
    shape = read_shape(options.shape, options.layers)
    if options.shape == TINY:  # it has experts, where nothing verifies trees
        shape = replace(shape, target=replace(shape.target, moe=None))
    for kind in options.drafter:
        asked = shape
        if kind != "own" and isinstance(shape.drafter, DFlashConfig):
            drafting = of_kind(kind, shape.drafter, shape.target.vocab_size, options.shape == TINY)
            asked = replace(shape, drafter=drafting)
        decoder = Decoder(*random_pair(asked, device), max(options.lengths) + options.tokens + MARGIN)
        for length in options.lengths:
            check_answers(decoder, kind, length, options.tokens, options.ways, report)
    report.write(options.out)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
