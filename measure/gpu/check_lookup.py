"""``python -m measure.gpu.check_lookup``: compares drafts looked up in a text with their definition, and times them.

Texts repeat themselves in every way, up to the longest context; then it prints microseconds in a graph, with the text
in the cache and after something else has filled it, as in a round."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from engine.decoding.text_index import TextIndex
from engine.events import Match
from engine.kernels.round.lookup import LookupText, choose_chain, look_up
from engine.kernels.round.state import LOOKED_UP, MATCH_DISTANCE, MATCH_LENGTH, RoundState
from engine.kernels.round.verify_width import choice_numbers
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.measured.timing import time_launches
from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.lookup import LookedUpChain, continuation
from measure.gpu.report import Report
from measure.quick import parse

LENGTHS = (700, 2048, 32_768, 131_072, 262_144)
BOUNDS = {32_768: 30.0, 131_072: 60.0}
"""By context, the most microseconds that finding and choosing may take."""
COSTS = CostTable((0,), (RoundCosts(0.55, tuple(2.5 + 0.25 * row for row in range(16))),))
STOPS = (106, 1)
FLUSHED_BYTES = 2**28


def words(rng: random.Random, count: int) -> list[int]:
    """Random token ids that occur roughly as often as the words of a language."""
    return [min(int(rng.paretovariate(0.6)), 262_143) for _ in range(count)]


TEXTS: dict[str, Callable[[random.Random, int], list[int]]] = {
    "words": words,
    "a copy": lambda rng, count: (words(rng, count // 2) * 2)[: count - rng.randint(1, count // 3)],
    "one token": lambda rng, count: [7] * count,
    "two in turn": lambda rng, count: [5, 6] * (count // 2),
    "two by chance": lambda rng, count: [rng.randint(5, 6) for _ in range(count)],
    "a line again and again": lambda rng, count: (words(rng, 33) * count)[:count],
}


class LookupChecks:
    def __init__(self, device: torch.device, report: Report):
        self.device, self.report = device, report
        self.policy = Auto(COSTS)
        self.policy.begin(drafts=False)
        self.numbers = choice_numbers(self.policy.numbers(0)).to(device)
        self.ids = torch.zeros(MAX_ROWS + 1, dtype=torch.int64, device=device)
        self.probability = torch.zeros(MAX_ROWS, device=device)

    def posed(self, text: Sequence[int]) -> tuple[RoundState, LookupText]:
        state, held = RoundState.allocate(self.device), LookupText.allocate(max(LENGTHS), self.device)
        held.ids.random_(0, 9)
        held.ids[: len(text)] = torch.tensor(text, dtype=torch.int32)
        state.cursor.fill_(len(text) - 1)
        state.stops[: len(STOPS)] = torch.tensor(STOPS, dtype=torch.int32)
        return state, held

    def round(self, state: RoundState, held: LookupText) -> None:
        look_up(state, held)
        choose_chain(state, self.numbers, self.ids, held, self.probability, drafted=False)

    def found(self, name: str, length: int) -> None:
        wrong, matched, many = 0, 0, 8 if length > 10_000 else 30
        for seed in range(many):
            text = TEXTS[name](random.Random(seed), length)
            state, held = self.posed(text)
            state.width.fill_(MAX_ROWS)
            self.round(state, held)
            record = state.record.tolist()
            found = Match(record[MATCH_LENGTH], record[MATCH_DISTANCE]) if record[MATCH_LENGTH] else None
            wanted = TextIndex(text).find()
            guess = [] if wanted is None else continuation(text, wanted.distance, MAX_ROWS - 1, STOPS)
            looked = None if wanted is None else LookedUpChain(wanted.length, len(guess))
            width = 1 if looked is None else len(self.policy.choose((), 0, MAX_ROWS, looked)[0]) + 1
            same = self.ids[1 : record[LOOKED_UP] + 1].tolist() == guess and int(state.width) == width
            wrong += not (found == wanted and same)
            matched += wanted is not None
        self.report.line(f"{name}, {length}", f"{many} texts, {matched} with a match, {wrong} wrong", not wrong)

    def timed(self, name: str, length: int) -> None:
        state, held = self.posed(TEXTS[name](random.Random(0), length))
        state.width.fill_(MAX_ROWS)
        other = torch.zeros(FLUSHED_BYTES if self.device.type == "cuda" else 1, dtype=torch.uint8, device=self.device)

        def after_others() -> None:
            other.fill_(1)
            self.round(state, held)

        alone = time_launches([lambda: self.round(state, held)], self.device)
        search = time_launches([lambda: look_up(state, held)], self.device)
        cold = time_launches([after_others], self.device) - time_launches([lambda: other.fill_(1)], self.device)
        holds = self.device.type != "cuda" or max(alone, cold) <= BOUNDS.get(length, float("inf"))
        said = f"{alone:.2f}, of these the search {search:.2f}; {cold:.2f} with cold caches"
        self.report.line(f"{name}, {length}, us", said, holds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parse(parser, "--device cpu --lengths 100", kernels=True)
    report = Report()
    torch.manual_seed(0)
    checks = LookupChecks(torch.device(options.device), report)
    for name in TEXTS:
        for length in options.lengths:
            checks.found(name, length)
    for name in TEXTS:
        for length in options.lengths:
            checks.timed(name, length)
    report.write(options.out)
    return 0 if report.ok else 1


if __name__ == "__main__":
    with torch.inference_mode():
        sys.exit(main())
