"""How long compiling takes of all that a pair launches, as at a first start but by itself: ``python -m
measure.gpu.compile_time``. No GPU is used; compare two states in turns."""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
from time import monotonic

import torch

from engine.decoding.decoder import Decoder
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.toolchain.card import HOPPER
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.kinds import MAKERS
from engine.lab.bench.shapes import SHAPES, read_shape
from engine.loading.choose_rounds import derived_tiles
from engine.loading.precompiler import _rehearse_prompt
from engine.models.attention_backends import TRITON
from engine.models.packed import shape_of

CONTEXT, CHUNK = 32768, 4096


def launch_all(shape: str, weights: str) -> None:
    """Launches, on tensors without memory, what answers of a pair of this shape do."""
    config = read_shape(shape)
    target = shape_of(config.target, torch.bfloat16, weights)  # type: ignore[arg-type]
    target.attention_backend = TRITON.name
    target.prepare()
    drafter = None
    if config.drafter is not None:
        with torch.device("meta"):
            drafter = config.drafter.build().to(torch.bfloat16)
        drafter.attention_backend = TRITON.name
        drafter.prepare()
    decoder = Decoder(target, drafter, CONTEXT)
    copy = Int8Weight.allocate(target.config.vocab_size, target.config.hidden_size, device=torch.device("meta"))
    RoundLaunches(decoder, copy, *derived_tiles(decoder, True)).rehearse()
    _rehearse_prompt(decoder, CHUNK)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="26B-A4B")
    parser.add_argument("--weights", nargs="+", choices=list(MAKERS), default=["int4"])
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()

    from engine.kernels.toolchain import compile_ahead as ahead  # needs Triton, which not every machine has

    ahead.get_ready()
    ahead.compile_for(HOPPER)
    for weights in options.weights:
        noted = ahead.noted_launches(lambda weights=weights: launch_all(options.shape, weights))  # type: ignore[misc]
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TRITON_CACHE_DIR"] = folder
            before, started = resource.getrusage(resource.RUSAGE_CHILDREN), monotonic()
            ahead.compile_all(noted, options.processes)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        took = monotonic() - started
        print(f"{options.shape} {weights}: {len(noted)} pieces, {took:.1f} s, {seconds:.0f} of a processor", flush=True)


if __name__ == "__main__":
    main()
