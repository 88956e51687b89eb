"""Instructions of PTX, carried out on the CPU: what a program of them does to its registers and to memory.

All threads of a program go through them in lockstep. So branches must be taken by all threads or by none; and lockstep
would hide where a barrier is missing, so shared memory looks at that in a way of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tests.proofs.kernels.ptx_operations import (
    KINDS,
    UNSIGNED,
    WARP,
    Array,
    Function,
    bits_of,
    multiply_matrices,
    operation,
    read_as,
)

FAR = 40
"""Arguments lie 2^40 bytes apart, so that nobody who leaves one gets into another."""
UNWRITTEN = 0xFF
"""What shared memory is full of when a program begins: of floats no number."""
SCOPE = re.compile(r"\s*([{}]|[$\w]+:)")
STATEMENT = re.compile(r"(?:@(!?)(%?\w+)\s+)?([\w.:]+)\s*(.*)", re.DOTALL)
OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^\s,]+")
ADDRESS = re.compile(r"\[\s*([%$\w]+)\s*(?:\+\s*(-?\d+))?\s*\]")
CONSTANT = re.compile(r"(-?)(?:0[xX]([0-9a-fA-F]+)|0[fF]([0-9a-fA-F]{8})|(\d+))U?")
SAYS_NOTHING = re.compile(r"griddepcontrol\.(wait|launch_dependents)|prefetch\.|fence\.|membar\.")
"""Of use where programs, kernels or caches do something at the same time."""
MULTIPLY = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
HINTS = {"ca", "cg", "cs", "nc", "relaxed", "acq_rel", "acquire", "release", "gpu"}
UPDATES: dict[str, Function] = {"add": np.add, "min": np.minimum, "max": np.maximum, "exch": lambda _, new: new}

Registers = dict[str, Array]
Read = Callable[[Registers], Array]


class Memory:
    """Arguments' bytes, by number: number n begins at address n << FAR."""

    def __init__(self, ranges: dict[int, tuple[str, Array]]):
        self.ranges = ranges

    def read(self, addresses: Array, width: int, threads: Array) -> Array:
        """uint8 [addresses, width]."""
        found = np.empty((len(addresses), width), np.uint8)
        for data, some, places in self._places(addresses, width):
            found[some] = data[places]
        return found

    def write(self, addresses: Array, values: Array, threads: Array) -> None:
        for data, some, places in self._places(addresses, values.shape[1]):
            data[places] = values[some]

    def _places(self, addresses: Array, width: int) -> Iterator[tuple[Array, Array, Array]]:
        """Bytes of an argument, which of the addresses are in it, and where [of those, width]."""
        numbers = addresses >> np.uint64(FAR)
        for number in set(numbers.tolist()):
            _, data = self.ranges.get(number, ("", np.empty(0, np.uint8)))
            some = numbers == number
            at = (addresses[some] - np.uint64(number << FAR)).astype(np.int64)
            wrong = (at + width > len(data)) | (at % width != 0)
            if wrong.any():
                raise AssertionError(self._whereabouts((number << FAR) + int(at[wrong][0]), width))
            yield data, some, at[:, None] + np.arange(width)

    def _whereabouts(self, address: int, width: int) -> str:
        """Signed: an offset of less than nothing is a very high address."""
        address -= 1 << 64 if address >> 63 else 0
        near = {}
        for number, (name, data) in self.ranges.items():
            before, behind = (number << FAR) - address, address + width - (number << FAR) - len(data)
            far = max(before, behind, 0)
            side = "before the start" if far == before else "past the end"
            near[far] = f"{far} bytes {side} of {name}" if far else f"unaligned in {name}"
        return f"{width} bytes reach {near[min(near)]}"


class SharedMemory(Memory):
    """Lockstep hides where a barrier is missing: what one warp writes another may read, and the other way around, only
    behind the next one. (That several write the same is common.)"""

    def __init__(self, size: int):
        super().__init__({0: ("shared memory", np.full(size, UNWRITTEN, np.uint8))})
        self.wrote, self.have_read = (np.zeros(size, np.uint32) for _ in range(2))
        """By byte a bit for each warp that did since the last barrier."""

    def read(self, addresses: Array, width: int, threads: Array) -> Array:
        found = super().read(addresses, width, threads)
        self._meet(self.wrote, self.have_read, addresses, width, threads)
        return found

    def write(self, addresses: Array, values: Array, threads: Array) -> None:
        super().write(addresses, values, threads)
        self._meet(self.have_read, self.wrote, addresses, values.shape[1], threads)

    def barrier(self) -> None:
        self.wrote.fill(0)
        self.have_read.fill(0)

    def _meet(self, others: Array, mine: Array, addresses: Array, width: int, threads: Array) -> None:
        places = addresses.astype(np.int64)[:, None] + np.arange(width)
        warps = np.broadcast_to(np.uint32(1) << (threads // WARP).astype(np.uint32)[:, None], places.shape)
        assert not (others[places] & ~warps).any(), "another warp reads or wrote this, and no barrier is between"
        np.bitwise_or.at(mine, places, warps)


@dataclass
class Program:
    """One program as it runs."""

    registers: Registers
    memory: Memory
    shared: SharedMemory


Step = Callable[[Program], int | None]
"""Carries out an instruction, and says where to go on if that isn't the next one."""


class Code:
    """Instructions, each made a function once."""

    def __init__(self, text: str, threads: int):
        self._threads = threads
        self._labels: dict[str, int] = {}
        self._statements: list[str] = []
        for statement in re.sub(r"//.*|^\s*\.loc\b.*", "", text, flags=re.MULTILINE).split(";"):
            while scope := SCOPE.match(statement):
                self._labels[scope[1].rstrip(":")] = len(self._statements)
                statement = statement[scope.end() :]
            if statement := " ".join(statement.split()):
                self._statements.append(statement)
        self._steps = [self._step(statement) for statement in self._statements]

    def carry_out(self, program: Program) -> None:
        at = 0
        with np.errstate(all="ignore"):
            while at < len(self._steps):
                try:
                    onwards = self._steps[at](program)
                except (AssertionError, KeyError) as error:  # a register that nothing was written to has no key
                    raise AssertionError(f"{self._statements[at]}: {error}") from error
                at = at + 1 if onwards is None else onwards

    def _step(self, statement: str) -> Step:
        if statement.startswith(".pragma"):
            return lambda program: None
        if statement.startswith(".reg"):
            return self._declare(OPERAND.findall(statement)[2:])
        found = STATEMENT.fullmatch(statement)
        assert found is not None, f"{statement}: no instruction"
        negated, guard, opcode, rest = found.groups()
        mask = self._mask(guard, bool(negated))
        operands = OPERAND.findall(rest)
        match opcode.split("."):
            case ["bra", *_]:
                return self._jump(self._labels[operands[0]], mask)
            case ["ret"]:
                return self._jump(len(self._statements), mask)
            case ["bar", "sync"]:
                assert guard is None and operands == ["0"]
                return lambda program: program.shared.barrier()
            case ["mov", kind]:
                return self._move(kind, operands, mask)
            case ["ld", "param", kind]:
                return self._compute(lambda value: value, [kind], [operands[0], operands[1].strip("[] ")], mask)
            case ["ld" | "st" as what, "global" | "shared" as where, *details, kind]:
                assert {hint for hint in details if hint not in ("v2", "v4")} <= HINTS, statement
                return (self._load if what == "ld" else self._store)(where, kind, operands, mask)
            case ["atom", "global", *details, what, kind] if what in UPDATES and set(details) <= HINTS:
                return self._update(UPDATES[what], kind, operands, mask)
            case ["ldmatrix", "sync", "aligned", "m8n8", "x1" | "x2" | "x4", "shared", "b16"] if guard is None:
                return self._load_matrices(operands)
            case ["stmatrix", "sync", "aligned", "m8n8", "x1" | "x2" | "x4", "shared", "b16"] if guard is None:
                return self._store_matrices(operands)
            case ["mma", *_] if opcode == MULTIPLY and guard is None:
                return self._multiply(operands)
        if SAYS_NOTHING.match(opcode):
            return lambda program: None
        function, kinds = operation(opcode)
        return self._compute(function, kinds, operands, mask)

    def _value(self, operand: str, kind: str) -> Read:
        if constant := CONSTANT.fullmatch(operand):
            sign, hexadecimal, single, decimal = constant.groups()
            number = int(hexadecimal or single or decimal, 10 if decimal else 16)
            if kind == "pred":
                flags = np.full(self._threads, number != 0)
                return lambda registers: flags
            dtype = KINDS[kind]
            assert dtype.kind != "f" or (single and not sign), f"{operand} is no float"
            bits = (-number if sign else number) % (1 << 8 * dtype.itemsize)
            values = np.full(self._threads, bits, UNSIGNED[dtype.itemsize]).view(dtype)
            return lambda registers: values
        return lambda registers: read_as(registers[operand], kind)

    def _mask(self, guard: str | None, negated: bool) -> Read | None:
        """Which threads an instruction is for; None: all."""
        if guard is None:
            return None
        return lambda registers: ~registers[guard] if negated else registers[guard]

    def _declare(self, names: list[str]) -> Step:
        """Of a block's own registers, which other blocks have, too."""

        def step(program: Program) -> None:
            for name in names:
                program.registers.pop(name, None)

        return step

    def _jump(self, place: int, mask: Read | None) -> Step:
        def step(program: Program) -> int | None:
            if mask is None or (going := mask(program.registers)).all():
                return place
            assert not going.any(), "threads part ways"
            return None

        return step

    def _compute(self, function: Function, kinds: list[str], operands: list[str], mask: Read | None) -> Step:
        target, *sources = operands
        values = [self._value(source, kind) for source, kind in zip(sources, kinds, strict=True)]

        def step(program: Program) -> None:
            registers = program.registers
            _write(registers, target, bits_of(function(*[value(registers) for value in values])), mask)

        return step

    def _move(self, kind: str, operands: list[str], mask: Read | None) -> Step:
        """Parts in braces make up a whole, the lowest first, or are made of one."""
        target, source = operands
        if "{" not in target + source:
            return self._compute(lambda value: value, [kind], [target, source], mask)
        targets, sources = _names(target), _names(source)
        whole = KINDS[kind]
        bits = 8 * whole.itemsize // max(len(targets), len(sources))
        values = [self._value(part, f"b{bits}" if len(sources) > 1 else kind) for part in sources]

        def step(program: Program) -> None:
            registers = program.registers
            total = np.zeros(self._threads, whole)
            for number, value in enumerate(values):
                total |= value(registers).astype(whole) << whole.type(bits * number)
            for number, name in enumerate(targets):
                part = (total >> whole.type(bits * number)).astype(UNSIGNED[bits // 8]) if len(targets) > 1 else total
                if name != "_":
                    _write(registers, name, part, mask)

        return step

    def _address(self, operand: str) -> Read:
        found = ADDRESS.fullmatch(operand)
        assert found is not None, f"{operand} is no address"
        name, offset = found[1], np.uint64(int(found[2] or 0) % (1 << 64))
        return lambda registers: registers[name].astype(np.uint64) + offset

    def _there(self, mask: Read | None, registers: Registers) -> Array:
        """Threads that an instruction is for."""
        return np.arange(self._threads) if mask is None else np.flatnonzero(mask(registers))

    def _load(self, where: str, kind: str, operands: list[str], mask: Read | None) -> Step:
        targets, address, dtype = _names(operands[0]), self._address(operands[1]), KINDS[kind]

        def step(program: Program) -> None:
            registers, memory = program.registers, program.memory if where == "global" else program.shared
            there, width = self._there(mask, registers), dtype.itemsize * len(targets)
            found = np.zeros((self._threads, width), np.uint8)
            found[there] = memory.read(address(registers)[there], width, there)
            for name, column in zip(targets, found.view(dtype).T, strict=True):
                _write(registers, name, bits_of(column), mask)

        return step

    def _store(self, where: str, kind: str, operands: list[str], mask: Read | None) -> Step:
        address, values = self._address(operands[0]), [self._value(name, kind) for name in _names(operands[1])]

        def step(program: Program) -> None:
            registers, memory = program.registers, program.memory if where == "global" else program.shared
            there = self._there(mask, registers)
            given = np.stack([value(registers)[there] for value in values], axis=-1).view(np.uint8)
            memory.write(address(registers)[there], given, there)

        return step

    def _update(self, update: Function, kind: str, operands: list[str], mask: Read | None) -> Step:
        """Threads do so one after the other."""
        target, address, value = operands[0], self._address(operands[1]), self._value(operands[2], kind)

        def step(program: Program) -> None:
            registers = program.registers
            addresses, values, before = address(registers), value(registers), np.zeros(self._threads, KINDS[kind])
            for thread in self._there(mask, registers)[:, None]:
                before[thread] = program.memory.read(addresses[thread], before.itemsize, thread).view(before.dtype)[0]
                after = update(before[thread], values[thread])
                program.memory.write(addresses[thread], after[:, None].view(np.uint8), thread)
            _write(registers, target, bits_of(before), mask)

        return step

    def _load_matrices(self, operands: list[str]) -> Step:
        """Eight threads of a warp say where the rows of each matrix are, and every thread gets a word of each."""
        targets, address = _names(operands[0]), self._address(operands[1])
        there = self._speakers(len(targets))

        def step(program: Program) -> None:
            rows = program.shared.read(address(program.registers)[there], 16, there).view(np.uint32)
            words = rows.reshape(-1, len(targets), WARP).transpose(1, 0, 2)
            for name, word in zip(targets, words, strict=True):
                program.registers[name] = np.ascontiguousarray(word).reshape(-1)

        return step

    def _store_matrices(self, operands: list[str]) -> Step:
        """The other way around."""
        address, sources = self._address(operands[0]), _names(operands[1])
        there = self._speakers(len(sources))

        def step(program: Program) -> None:
            words = np.stack([program.registers[name] for name in sources]).reshape(len(sources), -1, WARP)
            rows = np.ascontiguousarray(words.transpose(1, 0, 2)).reshape(len(there), -1).view(np.uint8)
            program.shared.write(address(program.registers)[there], rows, there)

        return step

    def _speakers(self, matrices: int) -> Array:
        """The threads whose addresses count."""
        return np.arange(self._threads).reshape(-1, WARP)[:, : 8 * matrices].reshape(-1)

    def _multiply(self, operands: list[str]) -> Step:
        targets, *factors = map(_names, operands)

        def step(program: Program) -> None:
            a, b, c = ([program.registers[name] for name in names] for names in factors)
            program.registers.update(zip(targets, multiply_matrices(a, b, c), strict=True))

        return step


def _names(operand: str) -> list[str]:
    """Of a vector, or of what isn't one."""
    return OPERAND.findall(operand.strip("{}"))


def _write(registers: Registers, name: str, bits: Array, mask: Read | None) -> None:
    """Threads that it isn't for keep what they had. If that was nothing, all bits are set: of a float no number."""
    if mask is not None:
        before = registers[name] if name in registers else ~np.zeros_like(bits)
        bits = np.where(mask(registers), bits, before)
    registers[name] = bits
