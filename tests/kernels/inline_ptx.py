"""The machine's instructions that kernels hold as text, carried out here: the interpreter has other code in their
place, so without a GPU nothing else says whether they compute what is meant."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

Words = np.ndarray[Any, np.dtype[np.uint32]]
COMMENTLESS = re.compile(r'"""\{(.*?)\}"""', re.DOTALL)


def instructions_of(kernel: Any) -> str:
    """The one text of instructions in a function that kernels call."""
    (text,) = COMMENTLESS.findall(inspect.getsource(kernel.fn))
    return str(text)


def carried_out(text: str, inputs: Sequence[Words], outputs: int) -> list[Words]:
    """What instructions on registers of 32 bits leave in their outputs $0, $1 ..., of 32 or, where they are halves, of
    16 bits; inputs follow them. Knows what unpacking of weights needs."""
    registers = {f"${outputs + number}": words for number, words in enumerate(inputs)}

    def value(operand: str) -> Words:
        return registers[operand] if operand in registers else np.uint32(int(operand, 0))  # type: ignore[return-value]

    for line in filter(None, map(str.strip, text.split(";"))):
        name, _, rest = line.partition(" ")
        if name == ".reg":
            continue
        if halves := re.fullmatch(r"\{(\S+), (\S+)\}, (\S+)", rest):
            registers[halves[1]], registers[halves[2]] = value(halves[3]) & np.uint32(0xFFFF), value(halves[3]) >> 16
            continue
        if whole := re.fullmatch(r"(\S+), \{(\S+), (\S+)\}", rest):
            registers[whole[1]] = value(whole[2]) & np.uint32(0xFFFF) | value(whole[3]) << 16
            continue
        target, *operands = rest.split(", ")
        registers[target] = _result(name, [value(operand) for operand in operands])
    return [registers[f"${number}"] for number in range(outputs)]


def _result(name: str, given: list[Words]) -> Words:
    match name:
        case "mov.b32":
            return given[0]
        case "and.b32":
            return given[0] & given[1]
        case "shl.b32":
            return given[0] << given[1]
        case "shr.u32":
            return given[0] >> given[1]
        case "shf.r.wrap.b32":
            low, high, by = (word.astype(np.uint64) for word in given)
            return ((high << np.uint64(32) | low) >> by % np.uint64(32)).astype(np.uint32)
        case "lop3.b32":
            return _by_table(given[:3], int(given[3]))
        case "fma.rn.bf16x2":
            low, high = (_fma([word >> shift << 16 for word in given]) for shift in (0, 16))
            return low | high << 16
    raise ValueError(f"{name} is not known here.")


def _by_table(bits: list[Words], table: int) -> Words:
    found = np.zeros_like(bits[0])
    for row in range(8):
        if table >> row & 1:
            a, b, c = (word if row >> place & 1 else ~word for word, place in zip(bits, (2, 1, 0), strict=True))
            found |= a & b & c
    return found


def _fma(bits: list[Words]) -> Words:
    """Of bf16 in the upper halves, exact as far as fp64 is; in the lower half."""
    a, b, c = (np.broadcast_to(word, bits[0].shape).astype(np.uint32).view(np.float32).astype(float) for word in bits)
    rounded = torch.from_numpy(a * b + c).to(torch.bfloat16).view(torch.int16).numpy()
    return rounded.view(np.uint16).astype(np.uint32)
