"""``python -m tests.proofs.kernels.offline_changes``: compiles for Hopper a product of each kind whose PTX is changed,
and says whether the changes found what they look for."""

from __future__ import annotations

import re

import torch

from engine.kernels.decode.products.dense import project
from engine.kernels.decode.tiling.tiles import Tiles
from engine.kernels.prefill.products import product
from engine.kernels.toolchain.card import HOPPER
from engine.kernels.weights.int4 import Int4Weight
from engine.kernels.weights.plain import PlainWeight
from tests.proofs.kernels.offline import compile_launch, record

META = torch.device("meta")
COPY, LOOP_ENDS = r"cp\.async\.cg", r"(wgmma\.wait_group\.sync\.aligned 0;\s+)?@!?%p\d+ bra\s+(\$\w+);"


def floats(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.bfloat16, device=META)


def main() -> None:
    with record(HOPPER) as launches:
        tiles = Tiles(columns=32, depth=128, copied=4)
        project(floats(16, 1024), PlainWeight(floats(1024, 1024)), floats(16, 1024), tiles, max_rows=1)
        product(floats(2048, 1024), Int4Weight.of(floats(1024, 1024)))
    copied, unpacked = (compile_launch(launch).ptx for launch in launches[:2])
    before, waits, _ = copied.partition("griddepcontrol.wait; // behind copies")
    print(f"copies before the wait: {len(re.findall(COPY, before)) if waits else 0}")
    ends = [each for each in re.finditer(LOOP_ENDS, unpacked) if f"{each[2]}:" in unpacked[: each.start()]]
    bodies = [unpacked[unpacked.index(f"{each[2]}:") : each.start()] for each in ends]
    loops = [end for end, body in zip(ends, bodies, strict=True) if "wgmma.mma_async" in body]
    print(f"loops: {len(loops)}, finished: {sum(each[1] is not None for each in loops)}")


if __name__ == "__main__":
    main()
