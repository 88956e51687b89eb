"""What instructions of PTX compute, on a value for each thread: those that kernels of ours are compiled to.

Whatever else is said of an instruction, in its name, must be known here, lest something is left out unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[..., Array]

WARP = 32
KINDS: dict[str, np.dtype[Any]] = {
    f"{letter}{bits}": np.dtype(f"{code}{bits // 8}")
    for letter, code in (("b", "u"), ("u", "u"), ("s", "i"))
    for bits in (8, 16, 32, 64)
}
KINDS |= {name: np.dtype(code) for name, code in (("f16", "f2"), ("f32", "f4"), ("f64", "f8"), ("pred", "?"))}
KINDS |= {"bf16": KINDS["u16"], "bf16x2": KINDS["u32"]}
"""The types in an instruction's name. numpy has no bf16: its bits."""
UNSIGNED = {dtype.itemsize: dtype for name, dtype in KINDS.items() if name[0] == "u"}


def read_as(bits: Array, kind: str) -> Array:
    """A register's bits as a type; where the register is wider, its lower ones."""
    wanted = KINDS[kind]
    if bits.itemsize == wanted.itemsize:
        return bits.view(wanted)
    assert bits.itemsize > wanted.itemsize, f"{kind} is wider than a register of {bits.itemsize} bytes"
    return bits.astype(UNSIGNED[wanted.itemsize]).view(wanted)


def bits_of(values: Array) -> Array:
    """What a register holds for them. None is narrower than 16 bits, but for predicates."""
    if values.dtype == np.bool_:
        return values
    if values.itemsize == 1:
        values = values.astype(f"{values.dtype.kind}2")
    return values.view(UNSIGNED[values.itemsize])


def operation(opcode: str) -> tuple[Function, list[str]]:
    """A function of as many operands as types are named beside it."""
    parts = opcode.split(".")
    name, kinds = ".".join(part for part in parts if part not in KINDS), [part for part in parts if part in KINDS]
    kind = kinds[-1] if kinds else ""
    match name.split("."):
        case ["setp", compare, *how] if compare in COMPARISONS and len(how) <= 1 and "bf16" not in kind:
            found = partial(_compared, COMPARISONS[compare])
            return (partial(_combined, BOTH[how[0]], found), [kind, kind, "pred"]) if how else (found, [kind] * 2)
        case ["cvt"] | ["cvt", "rn"] if kinds[0] == "bf16x2":
            return _two_bf16, [kind, kind]
        case ["cvt"] | ["cvt", "rn"] if not (kind in FLOATS and kinds[0] not in FLOATS):
            return partial(_converted, kinds[0], kind), [kind]
        case ["fma", "rn"] if kind in ("f32", "bf16x2"):
            return (_fma if kind == "f32" else _fma_bf16x2), [kind] * 3
    if name not in FUNCTIONS or "bf16" in kind:
        raise NotImplementedError(f"{opcode} is not known here.")
    function, count = FUNCTIONS[name]
    return function, OTHERWISE[name](kind) if name in OTHERWISE else [kind] * count


def floats_of(bf16: Array) -> Array:
    """Of bits, fp32."""
    return (bf16.astype(np.uint32) << np.uint32(16)).view(np.float32)


def bf16_of(values: Array) -> Array:
    """Bits of what fp64 numbers are rounded to, once: half to even, below the normal numbers too."""
    exponents = np.maximum(np.frexp(values)[1], -125) - 8
    rounded = np.ldexp(np.rint(np.ldexp(values, -exponents)), exponents).astype(np.float32)
    bits: Array = rounded.view(np.uint32) >> np.uint32(16)
    return bits.astype(np.uint16)


def multiply_matrices(rows: list[Array], columns: list[Array], sums: list[Array]) -> list[Array]:
    """mma.m16n8k16 of bf16, by the PTX ISA's table of who has what: registers of a [16, 16], b [16, 8] and c [16, 8] of
    each warp. Products are exact, and a sum of 16 and c is rounded once: a GPU drops a few bits more."""
    a = _halves(np.stack(rows)).reshape(2, 2, -1, 8, 4, 2).transpose(2, 1, 3, 0, 4, 5).reshape(-1, 16, 16)
    b = _halves(np.stack(columns)).reshape(2, -1, 8, 4, 2).transpose(1, 0, 3, 4, 2).reshape(-1, 16, 8)
    c = np.stack(sums).view(np.float32).reshape(2, 2, -1, 8, 4).transpose(2, 0, 3, 4, 1).reshape(-1, 16, 8)
    total = (a @ b + c).astype(np.float32).reshape(-1, 2, 8, 4, 2).transpose(1, 4, 0, 2, 3)
    return list(np.ascontiguousarray(total).view(np.uint32).reshape(4, -1))


def _compared(compare: Function, a: Array, b: Array) -> Array:
    """Nothing is in any relation to what is no number."""
    found = compare(a, b)
    return found & ~np.isnan(a) & ~np.isnan(b) if a.dtype.kind == "f" else found


def _combined(combine: Function, compared: Function, a: Array, b: Array, other: Array) -> Array:
    return combine(compared(a, b), other)


def _converted(to: str, kind: str, a: Array) -> Array:
    a = floats_of(a) if kind == "bf16" else a
    return bf16_of(a.astype(np.float64)) if to == "bf16" else a.astype(KINDS[to])


def _two_bf16(high: Array, low: Array) -> Array:
    upper, lower = (bf16_of(part.astype(np.float64)).astype(np.uint32) for part in (high, low))
    return upper << np.uint32(16) | lower


def _fma(a: Array, b: Array, c: Array) -> Array:
    """Of fp32, rounded twice where fp64 doesn't hold the sum."""
    return (a.astype(np.float64) * b + c).astype(a.dtype)


def _fma_bf16x2(a: Array, b: Array, c: Array) -> Array:
    """Exact as far as fp64 is."""
    x, y, z = map(_halves, (a, b, c))
    return bf16_of(x * y + z).view(np.uint32)


def _halves(words: Array) -> Array:
    """The two bf16 in each of them, fp64."""
    return floats_of(np.ascontiguousarray(words).view(np.uint16)).astype(np.float64)


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")


def _wide_product(a: Array, b: Array) -> Array:
    wide = _wide(a.dtype)
    found: Array = a.astype(wide) * b.astype(wide)
    return found


def _high_product(a: Array, b: Array) -> Array:
    high: Array = _wide_product(a, b) >> 8 * a.itemsize
    return high.astype(a.dtype)


def _quotient(a: Array, b: Array) -> Array:
    """Towards zero."""
    size: Array = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -size, size).astype(a.dtype)


def _bit_field(a: Array, start: Array, length: Array) -> Array:
    start, length = start.astype(np.int64) & 255, length.astype(np.int64) & 255
    field = a.astype(np.int64) >> start & (1 << length) - 1
    if a.dtype.kind == "i":
        field -= (field >> np.maximum(length - 1, 0) & 1) << length
    return field.astype(a.dtype)


def _turned(low: Array, high: Array, by: Array, right: bool) -> Array:
    by = by.astype(np.uint64) % np.uint64(32)
    both = high.astype(np.uint64) << np.uint64(32) | low
    return (both >> by if right else both << by >> np.uint64(32)).astype(np.uint32)


def _by_table(a: Array, b: Array, c: Array, table: Array) -> Array:
    """Each bit is that of the table in the row that three bits are the number of."""
    found = np.zeros_like(a)
    for row in range(8):
        if int(table[0]) >> row & 1:
            found |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return found


def _permuted(a: Array, b: Array, selectors: Array) -> Array:
    """Bytes of both, or of their signs alone."""
    both = np.stack([a, b], axis=-1).view(np.uint8)
    chosen = np.stack([selectors >> np.uint32(shift) for shift in (0, 4, 8, 12)], axis=-1)
    found = np.take_along_axis(both, (chosen & 7).astype(np.intp), axis=-1)
    found = np.where(chosen & 8, np.where(found >> 7, 255, 0), found)
    return found.astype(np.uint8).view(np.uint32).reshape(-1)


def _chosen(a: Array, b: Array, first: Array) -> Array:
    return np.where(first, a, b)


def _shuffled(how: str, a: Array, b: Array, clamp: Array, members: Array) -> Array:
    """What other threads of a warp have."""
    assert (members == 0xFFFFFFFF).all(), "the whole warp takes part"
    lane, by, segment = np.arange(len(a)) % WARP, b.astype(np.int64) & 31, clamp.astype(np.int64) >> 8 & 31
    least = lane & segment
    most = least | clamp.astype(np.int64) & 31 & ~segment
    match how:
        case "up":
            source, there = lane - by, lane - by >= most
        case "down":
            source, there = lane + by, lane + by <= most
        case "bfly":
            source, there = lane ^ by, lane ^ by <= most
        case _:
            source, there = least | by & ~segment, least | by & ~segment <= most
    return np.take(a, np.arange(len(a)) - lane + np.where(there, source, lane))


COMPARISONS: dict[str, Function] = {
    **{"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal},
    **{"gt": np.greater, "ge": np.greater_equal},
}
BOTH: dict[str, Function] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
FLOATS = ("f16", "f32", "f64", "bf16")
FUNCTIONS: dict[str, tuple[Function, int]] = {
    **dict.fromkeys(("add", "add.rn"), (np.add, 2)),
    **dict.fromkeys(("sub", "sub.rn"), (np.subtract, 2)),
    **dict.fromkeys(("mul", "mul.rn", "mul.lo"), (np.multiply, 2)),
    **dict.fromkeys(("div.full", "div.rn", "div.approx"), (np.divide, 2)),
    **{"mul.hi": (_high_product, 2), "mul.wide": (_wide_product, 2)},
    **{"mad.lo": (lambda a, b, c: a * b + c, 3), "mad.wide": (lambda a, b, c: _wide_product(a, b) + c, 3)},
    **{"div": (_quotient, 2), "rem": (lambda a, b: a - b * _quotient(a, b), 2)},
    **{"and": (np.bitwise_and, 2), "or": (np.bitwise_or, 2), "xor": (np.bitwise_xor, 2), "not": (np.invert, 1)},
    **{"neg": (np.negative, 1), "abs": (np.abs, 1), "min": (np.fmin, 2), "max": (np.fmax, 2)},
    "shl": (lambda a, by: np.left_shift(a, by.astype(a.dtype)), 2),
    "shr": (lambda a, by: np.right_shift(a, by.astype(a.dtype)), 2),
    **{"shf.r.wrap": (partial(_turned, right=True), 3), "shf.l.wrap": (partial(_turned, right=False), 3)},
    **{"bfe": (_bit_field, 3), "lop3": (_by_table, 4), "prmt": (_permuted, 3)},
    "selp": (_chosen, 3),
    **{"ex2.approx": (np.exp2, 1), "lg2.approx": (np.log2, 1), "tanh.approx": (np.tanh, 1)},
    **{"sqrt.approx": (np.sqrt, 1), "rcp.approx": (np.reciprocal, 1)},
    **{f"shfl.sync.{how}": (partial(_shuffled, how), 4) for how in ("up", "down", "bfly", "idx")},
}
"""By name, without types: a function, and of how many operands. Approximations are better here than a GPU's."""
OTHERWISE: dict[str, Callable[[str], list[str]]] = {
    "mad.wide": lambda kind: [kind, kind, f"{kind[0]}{2 * int(kind[1:])}"],
    **{name: lambda kind: [kind, "u32"] for name in ("shl", "shr")},
    "bfe": lambda kind: [kind, "u32", "u32"],
    "selp": lambda kind: [kind, kind, "pred"],
}
"""Operands that aren't all of the instruction's type."""
