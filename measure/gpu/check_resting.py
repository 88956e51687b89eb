"""Rests on a GPU: ``python -m measure.gpu.check_resting``; needs no pytest. A few seconds, most of them compiling.

While the target writes alone the drafter is told of sixteen tokens at once. What it then drafts, and what its context
holds, must have the bits that it would have had told of each token; and no choice of a width may change a text.
``TRITON_INTERPRET=1`` and ``--device cpu --shape tiny --tokens 24 --prompts 1`` try the script out: NumPy's sums depend
on where a row stands, so bits may be others there, texts not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from engine.commands import AUTO, GenerationSettings
from engine.decoding import device_rounds as rounds_of_device
from engine.decoding.decoder import Decoder
from engine.decoding.rounds import Round
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.lab.bench.shapes import SHAPES, read_shape
from engine.lab.bench.weights import random_pair
from engine.measured.costs import time_rounds
from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable, RoundCosts
from measure.gpu.check_rounds import WAYS, answer, bundled_decoder, device_rounds, held_out_prompts, tokens_of
from measure.gpu.report import Report
from measure.quick import parse

COSTLY = CostTable((0,), (RoundCosts(2.0, tuple(2.0 + 0.8 * row for row in range(16))),))
"""Costs at which drafting is so dear that it often rests."""


@dataclass(slots=True)
class Seldom(Auto):
    """A policy that drafts in rounds which are further and further apart."""

    asked: int = 0

    def begin(self, drafts: bool = True) -> None:
        Auto.begin(self, drafts)
        self.asked = 0

    def wants_draft(self, context: int) -> bool:
        self.asked += 1
        return self.has_drafter and self.asked in (1, 2, 5, 20, 22, 39, 57, 90)


def told(
    decoder: Decoder, prompt: Sequence[int], settings: GenerationSettings, together: int
) -> tuple[list[Round], int, list[Tensor]]:
    """The rounds, how many tokens the drafter's context holds in the end, and copies of that context, if it takes in
    ``together`` tokens at once."""
    rounds_of_device.INGEST_BATCH = together
    decoder.use_policy(Seldom(COSTLY))
    made = answer(decoder, prompt, settings)
    rounds_of_device.INGEST_BATCH = MAX_ROWS
    decoder.use_policy(None)
    cache = decoder.draft_cache
    assert cache is not None
    return made, cache.length, [store.clone() for layer in cache.attention for store in (layer.k, layer.v)]


def check_bits(name: str, decoder: Decoder, prompt: Sequence[int], tokens: int, report: Report) -> None:
    settings = GenerationSettings(block_size=AUTO, max_new_tokens=tokens, draft_by="drafter")
    (ours, known, context), (theirs, known_too, expected) = (
        told(decoder, prompt, settings, together) for together in (MAX_ROWS, 1)
    )
    drafts = [(done.draft_ids, done.draft_probabilities, done.emitted) for done in ours]
    same = drafts == [(done.draft_ids, done.draft_probabilities, done.emitted) for done in theirs]
    count = sum(bool(done.draft_ids) for done in ours)
    report.line(f"{name}, {count} drafts after rests", "same bits" if same else "OTHER", same)
    rows = min(known, known_too)
    assert all(store.shape[1] >= max(known, known_too) for store in context), "a ring has come round"
    equal = all(torch.equal(a[:, :rows], b[:, :rows]) for a, b in zip(context, expected, strict=True))
    report.line(f"{name}, context of {rows} rows", "same bits" if equal else "OTHER", equal)


def check_text(decoder: Decoder, prompts: Sequence[list[int]], tokens: int, report: Report) -> None:
    """Compares texts with the width chosen at the costs timed here, and at costs that make drafting rest."""
    timed = time_rounds(decoder, list(range(20, 40)))
    assert timed is not None
    for name, table in (("timed", timed), ("costly", COSTLY)):
        for way in WAYS:
            decoder.use_policy(None)
            plains = [tokens_of(answer(decoder, prompt, way.settings(tokens, None))) for prompt in prompts]
            decoder.use_policy(Auto(table))
            made = [answer(decoder, prompt, way.settings(tokens, AUTO)) for prompt in prompts]
            same = sum(tokens_of(rounds) == plain for rounds, plain in zip(made, plains, strict=True))
            rests = sum(not done.draft_ids for rounds in made for done in rounds[1:])
            value = f"{same} of {len(prompts)} equal, {rests} rounds without a draft"
            report.line(f"bundled pair, auto at {name} costs, {way.name}", value, same == len(prompts))
    decoder.use_policy(None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", choices=(*SHAPES, "none"), default="26B-A4B")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=150)
    parser.add_argument("--prompts", type=int, default=6)
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parse(parser, "--device cpu --shape tiny --tokens 24 --prompts 1", kernels=True)
    report, device = Report(), torch.device(options.device)
    prompts = held_out_prompts(options.prompts)
    if options.shape != "none":
        target, drafter = random_pair(read_shape(options.shape, options.layers), device)
        decoder = Decoder(target, drafter, 1024)
        decoder.use_rounds(device_rounds(decoder))
        prompt = [token % target.config.vocab_size for token in prompts[0]]
        check_bits(f"{options.shape}, {options.layers} layers", decoder, prompt, options.tokens, report)
        del target, drafter, decoder
    decoder = bundled_decoder(device)
    decoder.use_rounds(device_rounds(decoder))
    check_bits("bundled pair", decoder, prompts[0], options.tokens, report)
    check_text(decoder, prompts, options.tokens, report)
    report.write(options.out)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
