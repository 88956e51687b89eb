"""``python -m tests.proofs.kernels.offline_ahead`` compiles a few launches ahead, for Hopper, into an empty cache
of Triton's.

Then it launches the same as a program would, up to the launch itself, and prints (JSON) how many kernels were found in
the cache, how many were not, how many files the launches added to it, and which kernel fails when one is launched all
the same. Needs no GPU; a library named ``libcuda.so.1`` must be found, and may be empty.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import torch
from triton import knobs
from triton.backends.nvidia.driver import CudaLauncher
from triton.runtime.jit import JITFunction

from engine.kernels.decode.products.dense import project
from engine.kernels.decode.products.head import HeadOutput, head_rows
from engine.kernels.decode.tiling.tiles import Tiles
from engine.kernels.toolchain.card import HOPPER
from engine.kernels.toolchain.compile_ahead import compile_all, compile_for, compile_one, noted_launches
from engine.kernels.toolchain.jit import MAX_ROWS, KernelFailure
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.plain import PlainWeight

META = torch.device("meta")


def launch_some() -> None:
    """Two widths of one machine code, another alignment, a constant that is a float, an argument that is missing."""
    x = torch.empty(MAX_ROWS, 256, dtype=torch.bfloat16, device=META)
    weight = torch.empty(512, 256, dtype=torch.bfloat16, device=META)
    out = torch.empty(MAX_ROWS, 512, dtype=torch.bfloat16, device=META)
    tiles = Tiles(columns=32, depth=64)
    unaligned = PlainWeight(weight.flatten()[1 : 1 + 256 * 256].view(256, 256))
    project(x, PlainWeight(weight), out, tiles)
    project(x, PlainWeight(weight), out, tiles, max_rows=1)
    project(x, unaligned, out[:, :256].contiguous(), tiles)
    for copy in (PlainWeight(weight), Int8Weight.allocate(512, 256, device=META)):
        head_rows(x, copy, 30.0, HeadOutput.allocate(512, tiles, META), tiles)


def main() -> None:
    compile_for(HOPPER)
    noted = noted_launches(launch_some)
    compile_all(noted, processes=2)
    compile_one(noted[0])  # and forgets it
    again = len(noted_launches(launch_some))
    found: Counter[bool] = Counter()
    knobs.compilation.listener = lambda *, cache_hit, **_others: found.update([cache_hit])
    folder = Path(os.environ["TRITON_CACHE_DIR"])
    before = {path for path in folder.rglob("*") if path.is_file()}
    run = JITFunction.run

    def compiled_only(self: JITFunction, *args: object, grid: object, warmup: bool, **kwargs: object) -> None:
        kernel = run(self, *args, grid=grid, warmup=True, **kwargs)
        CudaLauncher(kernel.src, kernel.metadata)

    JITFunction.run = compiled_only
    launch_some()
    added = {path for path in folder.rglob("*") if path.is_file()} - before
    JITFunction.run = run
    failed = ""
    try:
        launch_some()  # where there is no GPU
    except KernelFailure as failure:
        failed = failure.kernel
    counts = {"noted": len(noted), "again": again, "found": found[True], "missed": found[False], "added": len(added)}
    print(json.dumps({**counts, "failed": failed}))


if __name__ == "__main__":
    main()
