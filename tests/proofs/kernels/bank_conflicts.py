"""How threads use shared memory, in Triton's own words for a compiled kernel. A warp reads 128 bytes of it at once,
unless some lie in the same of 32 banks: then it takes turns. What is copied there comes from memory by 32 bytes, once
if both halves go to one place. Neither registers nor instructions show it."""

from __future__ import annotations

import re
from ast import literal_eval
from collections import defaultdict
from itertools import compress

BANKS, BANK_BYTES, LANES = 32, 4, 32
BYTES = {"i8": 1, "i16": 2, "i32": 4, "bf16": 2, "f16": 2, "f32": 4}
LOAD = re.compile(
    r"local_load .*memdesc<([\dx]+)x(\w+), #(\w+), #smem.*-> tensor<[\dx]+x\w+, (#[^:]*?)>(?: loc.*)?$", re.M
)
SWIZZLED = re.compile(r"vec = (\d+), perPhase = (\d+), maxPhase = (\d+), order = (\[.*?\])")
LINEAR = re.compile(r"#ttg\.linear<\{register = (\[.*?\]), lane = (\[.*?\]), warp")
COPY = re.compile(
    r"async_copy_global_to_local .*\{contiguity = (\d+) .*"
    r"tensor<([\dx]+)x!tt\.ptr<(\w+)>, #(\w+)> -> <.*, #(\w+), #smem"
)
ORDER = re.compile(r"order = \[([\d, ]*)\]")
SLICE = re.compile(r"#ttg\.slice<\{dim = (\d+), parent = (.*)\}>$")

Steps = list[list[int]]
"""By how much in each dimension the place moves where a bit is set."""


def turns(ttgir: str) -> int:
    """The most turns in which a warp reads 128 bytes, of reads from swizzled tiles into registers that no product
    laid out: those it did, Triton arranges by itself."""
    named = dict(re.findall(r"^#(\w+) = (#ttg\..*)$", ttgir, re.M))
    found = [1]
    for sizes, kind, shared, layout in LOAD.findall(ttgir):
        swizzle, steps = SWIZZLED.search(named[shared]), _steps(layout, named)
        if swizzle and steps:
            shape = [int(size) for size in sizes.split("x")]
            vec, per_phase, phases = (int(number) for number in swizzle.groups()[:3])
            order = literal_eval(swizzle[4])
            wide = _neighbours(steps[0], order[0])
            places = [_address(at, shape, order, vec, per_phase, phases) * BYTES[kind] for at in _of_lanes(steps[1])]
            found.append(_turns_of(places, wide * BYTES[kind]))
    return max(found)


def torn(ttgir: str) -> bool:
    """Whether threads that copy 16 bytes each, beside each other in memory, put them into different parts of a swizzled
    tile: memory's 32 bytes are then read for each of them."""
    named = dict(re.findall(r"^#(\w+) = (#ttg\..*)$", ttgir, re.M))
    for wide, sizes, kind, source, shared in COPY.findall(ttgir):
        orders = [
            [int(dim) for dim in found[1].split(",")]
            for found in map(ORDER.search, (named[source], named[shared]))
            if found
        ]
        if int(wide) * BYTES[kind] == 16 and SWIZZLED.search(named[shared]):
            shape = [int(size) for size in sizes.split("x")]
            from_memory, beside = ([dim for dim in order if shape[dim] > 1][:2] for order in orders)
            if from_memory != beside:
                return True
    return False


def _steps(layout: str, named: dict[str, str]) -> tuple[Steps, Steps] | None:
    """Of registers and lanes; None for layouts of products."""
    layout = named.get(layout.removeprefix("#"), layout)
    if linear := LINEAR.match(layout):
        return literal_eval(linear[1]), literal_eval(linear[2])
    if (part := SLICE.match(layout)) and (whole := _steps(part[2], named)):
        kept = [dim != int(part[1]) for dim in range(len(whole[1][0]))]
        registers, lanes = ([list(compress(step, kept)) for step in steps] for steps in whole)
        return registers, lanes
    return None


def _neighbours(registers: Steps, dim: int) -> int:
    """How many a thread reads side by side."""
    wide = 1
    for step in registers:
        wide *= 2 if step[dim] == wide and sum(step) == wide else 1
    return wide


def _of_lanes(steps: Steps) -> list[list[int]]:
    chosen = [[step for bit, step in enumerate(steps) if lane >> bit & 1] for lane in range(LANES)]
    return [[sum(sizes) for sizes in zip(*each, strict=True)] or [0] * len(steps[0]) for each in chosen]


def _address(at: list[int], shape: list[int], order: list[int], vec: int, per_phase: int, phases: int) -> int:
    near = at[order[0]]
    address, size = near, shape[order[0]]
    if phases > 1:
        address = ((near // vec) ^ (at[order[1]] // per_phase % phases)) * vec + near % vec
    for dim in order[1:]:
        address, size = address + at[dim] * size, size * shape[dim]
    return address


def _turns_of(places: list[int], wide: int) -> int:
    at_once = LANES * BANK_BYTES // max(BANK_BYTES, wide)
    most = 1
    for start in range(0, LANES, at_once):
        words = defaultdict(set)
        for place in places[start : start + at_once]:
            for word in range(place // BANK_BYTES, (place + wide - 1) // BANK_BYTES + 1):
                words[word % BANKS].add(word)
        most = max(most, *(len(each) for each in words.values()))
    return most
