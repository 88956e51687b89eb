"""The machine's instructions that kernels hold as text, carried out here: the interpreter has other code in their
place, so without a GPU nothing else says whether they compute what is meant."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.proofs.kernels.ptx_code import Code, Memory, Program, SharedMemory

Words = np.ndarray[Any, np.dtype[np.uint32]]
COMMENTLESS = re.compile(r'"""\{(.*?)\}"""', re.DOTALL)


def instructions_of(kernel: Any) -> str:
    """The one text of instructions in a function that kernels call."""
    (text,) = COMMENTLESS.findall(inspect.getsource(kernel.fn))
    return str(text)


def carried_out(text: str, inputs: Sequence[Words], outputs: int) -> list[Words]:
    """What instructions on registers of 32 bits leave in their outputs $0, $1 ..., of 32 or, where they are halves, of
    16 bits; inputs follow them."""
    registers = {f"${outputs + number}": words for number, words in enumerate(inputs)}
    Code(text, len(inputs[0])).carry_out(Program(registers, Memory({}), SharedMemory(0)))
    return [registers[f"${number}"] for number in range(outputs)]
