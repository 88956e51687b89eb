"""How much of a multiprocessor's memory a round's kernels should share: ``python -m measure.gpu.memory_split --shape X
--weights W``. Whole passes as rounds capture them, with the tiles in use, by kilobytes that launches ask to share; the
rest is cache. Machine code and bits stay what they are. On a CPU, where nothing is split, ``TRITON_INTERPRET=1 ...
--device cpu --shape tiny`` tries the script out."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

import torch

from engine.decoding.decoder import Decoder
from engine.kernels.decode.tiles import draft_tiles, target_tiles
from engine.kernels.toolchain.card import card_of
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.kinds import MAKERS
from engine.lab.bench.ceiling import Ceiling
from engine.lab.bench.floor import floor_of
from engine.lab.bench.measure import Bench
from engine.lab.bench.pass_tiles import Kind, PassTiles
from engine.lab.bench.shapes import SHAPES, read_shape
from engine.lab.bench.weights import random_pair
from engine.lab.bench.whole_passes import WholePasses
from engine.loading.checkpoint import pick_device

KILOBYTES = (228, 196, 164, 132, 100, 64)
"""What a multiprocessor of Hopper can share, but for the smallest."""
CONTEXTS = (128, 2048)
SLACK = 1024
"""Positions behind the contexts."""
TURNS = 2
"""Of all choices, one after the other; the best time of each counts."""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m measure.gpu.memory_split", description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="26B-A4B")
    parser.add_argument("--weights", choices=list(MAKERS), default="bf16")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--shared", type=int, nargs="+", default=list(KILOBYTES), metavar="KB")
    parser.add_argument("--contexts", type=int, nargs="+", default=list(CONTEXTS), metavar="N")
    return parser


@torch.inference_mode()
def main() -> int:
    options = make_parser().parse_args()
    device, shape = pick_device(options.device), read_shape(options.shape)
    config, card = shape.target, card_of(device)
    target, drafter = random_pair(shape, device, weights=options.weights)
    decoder = Decoder(target, drafter, max(options.contexts) + SLACK)
    # Caches full of noise, and experts that are chosen at random.
    Bench(decoder, floor_of(shape, target, True), Ceiling(1.0, 1.0)).force("uniform", 16)
    copy = None if drafter is None else Int8Weight.of(target.head)
    passes = WholePasses(decoder, copy, options.contexts)
    chosen = target_tiles(config.moe, card, options.weights, config.sizes)
    now = PassTiles(chosen, None if shape.drafter is None else draft_tiles(True, card, shape.drafter.sizes))
    # A draft is captured behind the target's passes, whose split it has.
    kinds: tuple[Kind, ...] = ("one", "sixteen") if drafter is None else ("one", "sixteen", "draft")
    best: dict[int, list[float]] = {}
    for _ in range(TURNS):
        for kilobytes in options.shared:
            tiles = replace(now, target=replace(chosen, shared=kilobytes))
            times = passes.times(kinds, tiles, len(options.contexts))
            best[kilobytes] = [min(pair) for pair in zip(times, best.get(kilobytes, times), strict=True)]
    contexts = len(options.contexts)
    print(
        f"{shape.name} in {options.weights}, us of a pass behind {options.contexts} tokens; in use: {chosen.shared} KB"
    )
    for kilobytes, times in best.items():
        of_kinds = [times[start : start + contexts] for start in range(0, len(times), contexts)]
        told = (
            f"{kind} {' / '.join(f'{1e3 * ms:.0f}' for ms in of)}" for kind, of in zip(kinds, of_kinds, strict=True)
        )
        print(f"{kilobytes:4} KB  {', '.join(told)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
