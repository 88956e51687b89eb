"""``python -m measure.gpu.check_copying``: an answer that copies what stands in a long prompt, with and without lookup.

Random weights in a published shape, with forced routing; the target is made to say the text. What a drafter would make
of it is not known, so beside lookups it drafts in vain; a fixed block of 16 whose drafts all hold is the time of one
round. ``TRITON_INTERPRET=1``, ``--shape tiny --context 200 --tokens 40 --device cpu`` try the script out.
"""

from __future__ import annotations

import argparse
import random
import sys
from time import perf_counter

import torch

from engine.bench.routing import ROUTINGS, force_routing, forced_scores
from engine.bench.shapes import SHAPES, read_shape
from engine.bench.weights import random_pair
from engine.commands import GenerationSettings
from engine.decoding.decoder import Decoder, Prompt, Round
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.round.accept import DraftTree
from engine.kernels.round.sample import SampledRows
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.speculation.verify_width import Auto
from engine.tuning.costs import time_rounds
from measure.gpu.report import Report

WAYS = {
    "plain": {"speculation": False},
    "drafter, auto": {"draft_by": "drafter"},
    "lookup alone": {"draft_by": "lookup"},
    "both": {"draft_by": "both"},
}


class TextLaunches(RoundLaunches):
    """The target says a given text."""

    def __init__(self, decoder: Decoder):
        super().__init__(decoder)
        self.spoken = torch.zeros(decoder.max_context + 2 * MAX_ROWS, dtype=torch.int64, device=decoder.device)
        """By position."""
        self._ahead = torch.arange(1, MAX_ROWS + 1, device=decoder.device)

    def say(self, tree: DraftTree | None, greedy: bool) -> SampledRows | None:
        sampled = super().say(tree, greedy)
        said = (self.target.out if sampled is None else sampled).token
        said.copy_(self.spoken[self.state.cursor + self._ahead])
        return sampled


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", choices=SHAPES, default="26B-A4B")
    parser.add_argument("--context", type=int, default=25_000)
    parser.add_argument("--tokens", type=int, default=2000)
    options = parser.parse_args()
    report, device = Report(), torch.device(options.device)
    shape = read_shape(options.shape)
    target, drafter = random_pair(shape, device, weights="bf16")
    decoder = Decoder(target, drafter, options.context + options.tokens + 4 * MAX_ROWS)
    for cache in decoder.prefix.caches:
        for layer in cache.attention:
            layer.k.normal_(std=0.25)
            layer.v.normal_()
    moe = shape.target.moe
    for routing in ROUTINGS if moe is not None else ROUTINGS[:1]:
        if moe is not None:
            force_routing(target, forced_scores(routing, len(shape.target.layers), moe.num_experts, device))
        copied(decoder, routing, options, report)
    return 0 if report.ok else 1


def copied(decoder: Decoder, routing: str, options: argparse.Namespace, report: Report) -> None:
    """One routing, all ways."""
    launches = TextLaunches(decoder)
    launches.prepare()
    decoder.use_rounds(DeviceRounds(launches))
    rng, context = random.Random(0), options.context
    prompt = tuple(rng.randrange(decoder.target.config.vocab_size) for _ in range(context))
    answer = prompt[context // 5 : context // 5 + options.tokens]
    launches.spoken[context : context + len(answer)] = torch.tensor(answer)
    costs = time_rounds(decoder, [rng.randrange(1000) for _ in range(MAX_ROWS)])
    assert costs is not None
    here = costs.at(context)
    report.line(
        f"{routing}, a round of 16 with a draft, ms",
        f"{here.round(15):.3f} = {16e3 / here.round(15):.0f} tok/s at most",
    )
    report.line(f"{routing}, the same looked up, ms", f"{here.lookup + here.verify[15]:.3f}")
    texts = set()
    for name, values in WAYS.items():
        decoder.use_policy(Auto(costs, fuses=decoder.rounds.fuses))
        decoder.prefix.pretend(prompt[:-1])
        settings = GenerationSettings(max_new_tokens=len(answer), **values)  # type: ignore[arg-type]
        done, marks = [], []
        for each in decoder.decode(Prompt(prompt, 0), lambda settings=settings: settings):  # type: ignore[misc]
            if isinstance(each, Round):
                done.append(each)
                marks.append(perf_counter())
        text = tuple(token for each in done[1:] for token in each.emitted)
        texts.add(text[: len(answer) - MAX_ROWS])
        speed = len(text) / (marks[-1] - marks[0])
        looked = sum(each.match is not None for each in done)
        said = f"{speed:.0f} tok/s, {len(text) / (len(done) - 1):.2f} tokens a round, {looked} of {len(done)} looked up"
        report.line(f"{routing}, {name}", said)
    report.line(f"{routing}, texts", "the same" if len(texts) == 1 else "DIFFER", len(texts) == 1)


if __name__ == "__main__":
    with torch.inference_mode():
        sys.exit(main())
