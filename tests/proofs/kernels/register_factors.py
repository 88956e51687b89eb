"""Factors of products that lie in registers, in Hopper's machine code: whether something is written into such registers
while tensor cores may have yet to read them. Nothing in the hardware prevents that."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import triton

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
LABEL = re.compile(r"^(\.L_x_\d+):")
OPERATION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([^;]*);")
JUMP = re.compile(r"^BRA\S* `\((\.L_x_\d+)\)")
PRODUCT = re.compile(r"^HGMMA\S* R\d+, (?:R(\d+), )?.*gdesc")
WAIT = re.compile(r"^WARPGROUP\.DEPBAR\S* gsb0, 0x([0-9a-f]+)")
WRITTEN = re.compile(r"^([A-Z0-9_.]+) R(\d+),")
NO_RESULT = ("ST", "RED", "BAR", "LDGSTS")
OF_A_FACTOR = 4
"""Registers of a thread: 16 columns of 64 rows in 16 bits, by 128 threads."""


def overwritten(cubin: bytes) -> list[str]:
    """Operations in loops that write into a factor's registers before its product is waited for."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        said = subprocess.run([TOOLS / "nvdisasm", "-c", file.name], capture_output=True, text=True, check=True)
    return [operation for body in _loops(said.stdout) for operation in _too_early(body)]


def _loops(text: str) -> Iterator[list[str]]:
    """Of innermost loops, whose products follow each other."""
    begun: dict[str, int] = {}
    operations: list[str] = []
    for line in text.splitlines():
        if label := LABEL.match(line):
            begun[label[1]] = len(operations)
        elif found := OPERATION.match(line):
            operations.append(found[1].strip())
            jump = JUMP.match(operations[-1])
            if jump and jump[1] in begun and any(PRODUCT.match(each) for each in operations[begun[jump[1]] :]):
                yield operations[begun[jump[1]] :]


def _too_early(body: list[str]) -> Iterator[str]:
    """Twice around: what is left running at the end runs on at the beginning."""
    running: list[set[int]] = []
    for operation in [*body, *body]:
        if product := PRODUCT.match(operation):
            first = int(product[1] or 0)
            running.append(set(range(first, first + OF_A_FACTOR)) if product[1] else set())
        elif wait := WAIT.match(operation):
            left = int(wait[1], 16)
            running = running[len(running) - left :] if left else []
        elif (written := WRITTEN.match(operation)) and not written[1].startswith(NO_RESULT):
            first, width = int(written[2]), _width(written[1])
            if any(factor & set(range(first, first + width)) for factor in running):
                yield operation


def _width(name: str) -> int:
    """How many registers an operation writes."""
    if ".128" in name or (name.startswith("LDSM") and name.endswith(".4")):
        return 4
    return 2 if ".64" in name or "WIDE" in name or name.endswith(".2") else 1
