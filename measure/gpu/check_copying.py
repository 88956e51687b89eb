"""``python -m measure.gpu.check_copying``: an answer that copies what stands in a long prompt, with and without lookup.

Random weights in a published shape, with forced routing; the target is made to say the text. What a drafter would make
of it is not known, so beside lookups it drafts in vain; a fixed block of 16 whose drafts all hold is the time of one
round. ``TRITON_INTERPRET=1`` and ``--shape tiny --context 100 --tokens 20 --device cpu --ways both`` try the script
out: one routing, at costs that nobody timed.
"""

from __future__ import annotations

import argparse
import random
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import torch

from engine.commands import GenerationSettings
from engine.decoding.decoder import Decoder, Prompt, Round
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.round.accept import DraftTree
from engine.kernels.round.sample import SampledRows
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.lab.bench.routing import ROUTINGS, force_routing, forced_scores
from engine.lab.bench.shapes import SHAPES, read_shape
from engine.lab.bench.weights import random_pair
from engine.measured.costs import time_rounds
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.trees import ROWS, WIDE_ROWS
from engine.speculation.verify_width import Auto
from measure.gpu.report import Report

UNTIMED = CostTable((0,), (RoundCosts(0.55, tuple(2.5 + 0.25 * row for row in range(WIDE_ROWS[-1])), 0.01, 0.02),))
"""About an H200's."""

NARROW = "both, 16 rows at most"
WAYS = {
    "plain": {"speculation": False},
    "drafter, auto": {"draft_by": "drafter"},
    "lookup alone": {"draft_by": "lookup"},
    NARROW: {"draft_by": "both"},
    "both": {"draft_by": "both"},
}
BETTER, WANTED_TOK_S = 1.6, 3000
"""In bf16: what wide rounds must gain on a fixed block of 16 whose drafts all hold; what an H200 should write in a
second."""


class TextLaunches(RoundLaunches):
    """The target says a given text."""

    def __init__(self, decoder: Decoder):
        super().__init__(decoder)
        self.spoken = torch.zeros(decoder.max_context + 2 * self.widest, dtype=torch.int64, device=decoder.device)
        """By position."""
        self._ahead = torch.arange(1, self.widest + 1, device=decoder.device)

    def say(self, tree: DraftTree | None, greedy: bool) -> SampledRows | None:
        sampled = super().say(tree, greedy)
        said = (self.target.out if sampled is None else sampled).token
        said.copy_(self.spoken[self.state.cursor + self._ahead[:MAX_ROWS]])
        return sampled

    def say_wide(self, rows: int, greedy: bool) -> SampledRows | None:
        sampled = super().say_wide(rows, greedy)
        assert self.wide is not None
        said = (self.wide.out if sampled is None else sampled).token
        said.copy_(self.spoken[self.state.cursor + self._ahead])
        return sampled


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", choices=SHAPES, default="26B-A4B")
    parser.add_argument("--weights", choices=("bf16", "fp8", "int4"), default="bf16")
    parser.add_argument("--context", type=int, default=25_000)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parser.parse_args()
    report, device = Report(), torch.device(options.device)
    shape = read_shape(options.shape)
    target, drafter = random_pair(shape, device, weights=options.weights)
    decoder = Decoder(target, drafter, options.context + options.tokens + 2 * WIDE_ROWS[-1])
    for cache in decoder.prefix.caches:
        for layer in cache.attention:
            layer.k.normal_(std=0.25)
            layer.v.normal_()
    moe = shape.target.moe
    for routing in ROUTINGS if moe is not None and device.type == "cuda" else ROUTINGS[:1]:
        if moe is not None:
            force_routing(target, forced_scores(routing, len(shape.target.layers), moe.num_experts, device))
        copied(decoder, routing, options, report)
    report.write(options.out)
    return 0 if report.ok else 1


def copied(decoder: Decoder, routing: str, options: argparse.Namespace, report: Report) -> None:
    """One routing, all ways."""
    launches = TextLaunches(decoder)
    on_gpu = decoder.device.type == "cuda"
    if on_gpu:
        launches.prepare()  # elsewhere nothing is captured, and each piece tried out takes seconds
    decoder.use_rounds(DeviceRounds(launches))
    rng, context = random.Random(0), options.context
    prompt = tuple(rng.randrange(decoder.target.config.vocab_size) for _ in range(context))
    answer = prompt[context // 5 : context // 5 + options.tokens]
    launches.spoken[context : context + len(answer)] = torch.tensor(answer)
    text = [rng.randrange(min(1000, decoder.target.config.vocab_size)) for _ in range(WIDE_ROWS[-1])]
    costs = time_rounds(decoder, text) if on_gpu else UNTIMED
    assert costs is not None
    here = costs.at(context)
    report.line(
        f"{routing}, a round of 16 with a draft, ms",
        f"{here.round(15):.3f} = {16e3 / here.round(15):.0f} tok/s at most",
    )
    for rows in (rows for rows in (ROWS, *WIDE_ROWS) if rows <= len(here.verify)):
        report.line(f"{routing}, {rows} rows looked up, ms", f"{here.lookup + here.verify[rows - 1]:.3f}")
    narrow = replace(costs, costs=tuple(replace(each, verify=each.verify[:ROWS]) for each in costs.costs))
    texts, speed = set(), 0.0
    for name in options.ways:
        values = WAYS[name]
        decoder.use_policy(Auto(narrow if name == NARROW else costs, fuses=decoder.rounds.fuses))
        decoder.prefix.pretend(prompt[:-1])
        settings = GenerationSettings(max_new_tokens=len(answer), **values)  # type: ignore[arg-type]
        done, marks = [], []
        for each in decoder.decode(Prompt(prompt, 0), lambda settings=settings: settings):  # type: ignore[misc]
            if isinstance(each, Round):
                done.append(each)
                marks.append(perf_counter())
        said = tuple(token for each in done[1:] for token in each.emitted)
        texts.add(said[: len(answer) - WIDE_ROWS[-1]])
        speed = len(said) / (marks[-1] - marks[0])
        looked = sum(each.match is not None for each in done)
        wide = sum(each.verify_width > ROWS for each in done)
        rate = f"{speed:.0f} tok/s, {len(said) / (len(done) - 1):.2f} tokens a round"
        report.line(f"{routing}, {name}", f"{rate}, {looked} of {len(done)} looked up, {wide} of them wide")
    if on_gpu and options.ways[-1] == "both":
        gain = speed * here.round(ROWS - 1) / (1e3 * ROWS)
        holds = gain >= BETTER or options.weights != "bf16"
        report.line(f"{routing}, both, of a fixed 16", f"{gain:.2f} times (aim {WANTED_TOK_S} tok/s)", holds)
    report.line(f"{routing}, texts", "the same" if len(texts) == 1 else "DIFFER", len(texts) == 1)


if __name__ == "__main__":
    with torch.inference_mode():
        sys.exit(main())
