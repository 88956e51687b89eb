"""How long the loops of a kernel wait for themselves, read off its machine code. Since Volta each operation says after
how many cycles the next one of its warp may follow (Jia et al. 2018, "Dissecting the NVIDIA Volta GPU Architecture via
Microbenchmarking": four of an operation's 128 bits, from the 106th on). Memory, barriers and other warps come on
top."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from tests.proofs.kernels.register_factors import TOOLS

OPERATION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+([^;]+);\s+/\* 0x[0-9a-f]{16} \*/\n\s+/\* 0x([0-9a-f]{16}) \*/")
"""With its address; the second half of its bits stands in a line of its own."""
JUMP = re.compile(r"\bBRA 0x([0-9a-f]+)")
FIRST_BIT = 105 - 64


@dataclass(frozen=True)
class Loop:
    operations: int
    cycles: int

    def __str__(self) -> str:
        return f"{self.operations}: {self.cycles}"


def loops(cubin: bytes) -> list[Loop]:
    """The innermost ones that multiply matrices."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        said = subprocess.run([TOOLS / "cuobjdump", "-sass", file.name], capture_output=True, text=True, check=True)
    return list(_loops([(int(at, 16), what, int(bits, 16)) for at, what, bits in OPERATION.findall(said.stdout)]))


def _loops(operations: list[tuple[int, str, int]]) -> Iterator[Loop]:
    ends = {at: int(jump[1], 16) for at, what, _ in operations if (jump := JUMP.search(what))}
    backward = {at: first for at, first in ends.items() if first < at}
    for last, first in backward.items():
        inside = [(what, bits) for at, what, bits in operations if first <= at <= last]
        innermost = not any(first <= other < last for other in backward)
        if innermost and any("MMA" in what for what, _ in inside):
            yield Loop(len(inside), sum(bits >> FIRST_BIT & 15 for _, bits in inside))
