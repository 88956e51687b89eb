"""``python -m tests.proofs.engine.loading.compiled_beside FOLDER``: what a program finds compiled by the
process beside it, and what is left to its launches once it has prepared what the mark says.

The folder holds a target's config. Prints (JSON) how many kernels the program finds in Triton's cache before its
launches and in them, and which it has to compile itself. Needs no GPU, but a library named ``libcuda.so.1``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from triton import knobs
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from engine.kernels.toolchain.card import HOPPER
from engine.kernels.toolchain.compile_ahead import compile_for
from engine.kernels.toolchain.disk_cache import prepared
from engine.loading import precompile as ahead
from engine.loading.precompile import Compiling, Order
from engine.loading.precompiler import launch_all


def main() -> None:
    ahead.PATIENCE = 850.0  # other tests may keep the cores busy
    folder = Path(sys.argv[1])
    mark = folder / "mark"
    order = Order(str(folder), None, 4096, drafts_in_8_bits=False, attention="auto", card=HOPPER)
    with Compiling() as compiling:
        compiling.begin(order, mark)
        while not compiling.finished(1.0):
            pass
    found: list[str] = []
    missed: list[str] = []

    def note(*, src: ASTSource, cache_hit: bool, **_others: object) -> None:
        (found if cache_hit else missed).append(src.name)

    knobs.compilation.listener = note
    run = JITFunction.run

    def compiled_only(self: JITFunction, *args: object, grid: object, warmup: bool, **kwargs: object) -> None:
        run(self, *args, grid=grid, warmup=True, **kwargs)

    JITFunction.run = compiled_only
    compile_for(order.card)
    digest, *launches = mark.read_text().splitlines()
    assert digest == order.digest
    for launch in launches:
        prepared(launch)
    loaded = len(found)
    found.clear()
    launch_all(order)
    print(json.dumps({"loaded": loaded, "found": len(found), "missed": missed}))


if __name__ == "__main__":
    main()
