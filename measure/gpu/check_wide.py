"""``python -m measure.gpu.check_wide``: passes of 32 and 64 rows against those of sixteen, and what they take.

Random weights in a published shape with experts. First the bits: logits, features, keys and values of every row, by the
model's own routing. Then milliseconds behind a long context with forced routing, beside how many experts each pass
reads, and the tokens a second of a copy whose every chain is kept. ``TRITON_INTERPRET=1``, ``--shape tiny --context 40
--device cpu --tiles 2 --rows 5 17`` try the script out.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from engine.commands import WeightFormat
from engine.decoding.decoder import PREFILL_CHUNK
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.kv_cache.cache import Cache
from engine.lab.bench.routing import ROUTINGS, distinct_experts, force_routing, forced_scores
from engine.lab.bench.shapes import SHAPES, read_shape
from engine.lab.bench.weights import random_pair
from engine.measured.timing import time_launches
from engine.models.gemma4.decode_pass import Gemma4DecodePass
from engine.models.gemma4.modules import Gemma4
from engine.models.gemma4.wide_pass import Gemma4WidePass
from measure.gpu.report import Report
from measure.quick import parse

LOOKUP_MS = 0.03
"""Milliseconds of looking a chain up."""
COUNTS = (1, 5, 16, 17, 32, 47, 64)
WANTED_TOK_S = 3000
"""Tokens per second that passes of 64 rows should write on an H200, in bf16. What whole rounds must gain is up to
``check_copying``."""


class Rows:
    """Passes of sixteen rows and wide ones over caches that hold the same."""

    def __init__(self, target: Gemma4, context: int, num_tiles: int):
        self.device, most = target.device, num_tiles * MAX_ROWS
        taps = (0, len(target.config.layers) - 1)
        caches = [
            Cache(target.config.layers, context + 2 * most, PREFILL_CHUNK, target.dtype, self.device) for _ in range(2)
        ]
        self.layers = list(zip(*(cache.attention for cache in caches), strict=True))
        for one, other in self.layers:
            other.k.copy_(one.k.normal_(std=0.25))
            other.v.copy_(one.v.normal_())
        self.context = context
        self.cursors, self.counts = ([self.number(value) for _ in range(2)] for value in (context, 0))
        self.narrow = Gemma4DecodePass(target, caches[0], self.cursors[0], self.counts[0], taps)
        self.wide, self.most = Gemma4WidePass(target, caches[1], self.cursors[1], self.counts[1], taps), most
        self.ids = torch.randint(target.config.vocab_size, (most,), device=self.device)
        self.wide.ids[:most] = self.ids
        self.narrow.ids.copy_(self.ids[:MAX_ROWS])

    def number(self, value: int) -> Tensor:
        return torch.full((1,), value, dtype=torch.int32, device=self.device)

    def same_bits(self, count: int) -> bool:
        """Whether wide passes of ``count`` rows give the bits of passes of sixteen."""
        self.counts[1].fill_(count)
        self.wide.forward(self.most)
        wide, out, same = self.wide, self.narrow.out, True
        assert wide.out.logits is not None and out.logits is not None
        for first in range(0, count, MAX_ROWS):
            rows = min(count - first, MAX_ROWS)
            self.narrow.ids[:rows] = self.ids[first : first + rows]
            self.cursors[0].fill_(self.context + first)
            self.counts[0].fill_(rows)
            self.narrow.forward()
            pairs = [(wide.out.logits, out.logits), (wide.out.token, out.token), (wide.features, self.narrow.features)]
            same = same and all(torch.equal(a[first : first + rows], b[:rows]) for a, b in pairs)
        stores = [(one.k, other.k) for one, other in self.layers] + [(one.v, other.v) for one, other in self.layers]
        return same and all(torch.equal(a, b) for a, b in stores)

    def milliseconds(self) -> tuple[float, float]:
        """Milliseconds of a full pass of sixteen rows, and of a full wide one."""
        self.cursors[0].fill_(self.context)
        self.counts[0].fill_(MAX_ROWS)
        self.counts[1].fill_(len(self.ids))
        passes = self.narrow.forward, partial(self.wide.forward, self.most)
        narrow, wide = (time_launches([each], self.device) / 1e3 for each in passes)
        return narrow, wide


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", choices=SHAPES, default="26B-A4B")
    parser.add_argument("--weights", choices=("bf16", "fp8", "int4"), default="bf16")
    parser.add_argument("--context", type=int, default=25_000)
    parser.add_argument("--layers", type=int, help="of the target; default: all")
    parser.add_argument("--tiles", type=int, nargs="+", default=[2, 4], help="of 16 rows")
    parser.add_argument("--rows", type=int, nargs="+", default=COUNTS, help="whose bits are compared")
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parse(parser, "--device cpu --shape tiny --layers 6 --context 40 --tiles 2 --rows 17", kernels=True)
    report, device = Report(), torch.device(options.device)
    weights: WeightFormat = options.weights
    shape = read_shape(options.shape, options.layers)
    target, moe = random_pair(shape, device, weights=weights)[0], shape.target.moe
    assert isinstance(target, Gemma4) and moe is not None, "a shape with experts"
    for num_tiles in options.tiles:
        rows = Rows(target, options.context, num_tiles)
        force_routing(target, None)
        for count in (count for count in options.rows if count <= num_tiles * MAX_ROWS):
            report.line(f"{num_tiles} tiles, {count} rows", "the bits of passes of 16", rows.same_bits(count))
        for routing in ROUTINGS if device.type == "cuda" else ():
            scores = forced_scores(routing, len(shape.target.layers), moe.num_experts, device)
            force_routing(target, scores)
            narrow, wide = rows.milliseconds()
            read = [distinct_experts(scores, moe.top_k, count) for count in (MAX_ROWS, len(rows.ids))]
            said = f"{wide:.3f} ({read[1]:.1f} experts a layer), of 16 {narrow:.3f} ({read[0]:.1f})"
            report.line(f"{num_tiles} tiles, {routing}, ms", said)
            speeds = [1e3 * count / (took + LOOKUP_MS) for count, took in ((MAX_ROWS, narrow), (len(rows.ids), wide))]
            said = f"{speeds[1]:.0f} tok/s, in rounds of 16 {speeds[0]:.0f}, {speeds[1] / speeds[0]:.2f} times"
            report.line(f"{num_tiles} tiles, {routing}, a copy", f"{said} (aim {WANTED_TOK_S} in bf16)")
        del rows
    report.write(options.out)
    return 0 if report.ok else 1


if __name__ == "__main__":
    with torch.inference_mode():
        sys.exit(main())
