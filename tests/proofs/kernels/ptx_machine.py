"""Carries out the PTX that Triton compiles a kernel to, on the CPU: so a test sees without a GPU that compiled code
computes what its definition says, and reads and writes nothing but its arguments. Triton's interpreter knows no
layouts, no shared memory, and no inline instructions. Not seen here is what ptxas makes of it.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import torch

from engine.kernels.toolchain.card import HOPPER
from tests.proofs.kernels.offline import Launch, build, signature_of
from tests.proofs.kernels.ptx_code import FAR, Code, Memory, Program, SharedMemory
from tests.proofs.kernels.ptx_operations import KINDS, WARP, Array, bits_of


def run(launch: Launch) -> None:
    """Carries out a launch that ``offline.record`` noted, of tensors on the CPU, as compiled for Hopper."""
    built = build(launch, HOPPER.capability)
    threads = WARP * built.metadata.num_warps
    signature, _, _ = signature_of(launch)
    values: list[Array] = []
    ranges: dict[int, tuple[str, Array]] = {}
    for name, kind in signature.items():
        value = launch.arguments[name]
        if isinstance(value, torch.Tensor):
            assert value.is_contiguous() and value.data_ptr() % 16 == 0
            number = len(values) + 1
            ranges[number] = (name, value.detach().reshape(-1).view(torch.uint8).numpy())
            values.append(np.full(threads, number << FAR, np.uint64))
        elif kind != "constexpr":
            values.append(bits_of(np.full(threads, value, KINDS[kind.replace("fp", "f").replace("i", "s")])))
    values += [np.zeros(threads, np.uint64)] * 2  # memory of Triton's own, which no kernel asks for
    given = {f"{launch.name}_param_{number}": value for number, value in enumerate(values)}
    code = code_of(built.asm["ptx"], threads)
    sizes = [*launch.grid, 1, 1][:3]
    lanes = np.arange(threads, dtype=np.uint32)
    given |= {"global_smem": 0 * lanes, "%tid.x": lanes, "%laneid": lanes % WARP, "%warpid": lanes // WARP}
    given |= {f"%nctaid.{axis}": lanes * 0 + np.uint32(size) for axis, size in zip("xyz", sizes, strict=True)}
    for z, y, x in product(*map(range, reversed(sizes))):
        place = {f"%ctaid.{axis}": lanes * 0 + np.uint32(at) for axis, at in zip("xyz", (x, y, z), strict=True)}
        code.carry_out(Program(given | place, Memory(ranges), SharedMemory(built.metadata.shared)))


@cache
def code_of(ptx: str, threads: int) -> Code:
    """The instructions of the one kernel."""
    text = ptx[ptx.index(".entry") :].partition("-- End function")[0]
    return Code(text[text.index("\n{") + 2 :], threads)
