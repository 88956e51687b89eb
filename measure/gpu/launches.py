"""What it costs to need a result: ``python -m measure.gpu.launches``. Decides whether a layer's launches are worth one
kernel.

A chain of products' shadows: each step streams so many bytes of weights that nothing has read lately, and needs the
sum of the step before. Once as launches in a graph, with early launch as the engine's kernels have it; once as one
kernel whose programs are all resident and wait for each other by counters in L2. Both may read some of a step's weights
before they wait. Printed are microseconds of a step beside those that its bytes take without waiting for anything.

Sums are of whole numbers, so every program of every step must have exactly the sum that PyTorch has. A program that has
waited too long gives up, says so and goes on: nothing hangs. On a CPU, ``TRITON_INTERPRET=1 ... --device cpu`` runs it
small, one program at a time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from engine.kernels.toolchain.card import card_of
from engine.kernels.toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from engine.kernels.toolchain.jit import SIMULATED, jit, power_of_two, tl
from measure.gpu.report import Report

MEGABYTES = (2, 6, 12, 23)
"""Of a step: what FP8 and INT4 read for a launch of a plain layer of 26B-A4B."""
COLD = 256e6
"""Bytes of a chain, at least: several times L2."""
STEPS = 32
"""Of a chain, at least: what a replay takes beside its steps is then little of each."""
TILE = 2048
"""Words that a program asks for at a time, of 4 bytes."""
STAGES = 5
WARPS = 4
PROGRAMS_AND_AHEAD = ((1, 0), (2, 0), (4, 0), (1, 2048), (2, 2048), (4, 2048), (1, 8192), (2, 8192))
"""Programs of a multiprocessor, and words that each reads before it waits. With more, not all would be resident."""
CARRIED = tl.constexpr(4096) if tl else 4096
"""A step's sum goes into the next one's modulo this, so that none grows out of 32 bits."""
PATIENCE = tl.constexpr(20_000) if tl else 20_000
"""How often a program looks whether the others are done: about 10 ms."""
REPLAYS = 9


@jit
def _first_words(weights: tl.tensor, words: tl.tensor, AHEAD: tl.constexpr) -> tl.tensor:
    """int32 [AHEAD] of this program, of those that all read before they wait; [1], zero, if AHEAD is 0."""
    if AHEAD == 0:
        return tl.zeros([1], tl.int32)
    else:
        place = tl.program_id(0) * AHEAD + tl.arange(0, AHEAD)
        return tl.load(weights + place, mask=place < words, other=0)


@jit
def _sum_of_step(
    weights: tl.tensor,
    first: tl.tensor,
    before: tl.tensor,
    words: tl.tensor,
    last: tl.tensor,
    PROGRAMS: tl.constexpr,
    LANES: tl.constexpr,
    TILE: tl.constexpr,
    STAGES: tl.constexpr,
    AHEAD: tl.constexpr,
) -> tl.tensor:
    """This program's words of a step, and what the step before left, added up, int32. Lets the next kernel start, if
    ``last``, when it asks for its last words."""
    lane = tl.arange(0, LANES)
    left = tl.load(before + lane, mask=lane < PROGRAMS, other=0, cache_modifier=".cg")
    total = tl.zeros([TILE], tl.int32)
    begin = PROGRAMS * AHEAD + tl.program_id(0) * TILE
    stride: tl.constexpr = PROGRAMS * TILE
    for at in tl.range(begin, words, stride, num_stages=STAGES):
        if last & (at + STAGES * stride >= words):
            let_next_start()
        place = at + tl.arange(0, TILE)
        total += tl.load(weights + place, mask=place < words, other=0)
    return tl.sum(total, axis=0) + tl.sum(first, axis=0) + tl.sum(left, axis=0) % CARRIED


@early_kernel
def _step(
    weights: tl.tensor, before: tl.tensor, after: tl.tensor, words: tl.tensor, PROGRAMS: tl.constexpr,
    LANES: tl.constexpr, TILE: tl.constexpr, STAGES: tl.constexpr, AHEAD: tl.constexpr,
) -> None:  # fmt: skip
    first = _first_words(weights, words, AHEAD)
    wait_for_inputs()
    total = _sum_of_step(weights, first, before, words, True, PROGRAMS, LANES, TILE, STAGES, AHEAD)
    let_next_start()
    tl.store(after + tl.program_id(0), total)


@jit
def _arrived(counter: tl.tensor) -> tl.tensor:
    """How many programs have stored what others read behind this."""
    if SIMULATED:
        return tl.load(counter)
    else:
        return tl.inline_asm_elementwise(
            "ld.acquire.gpu.global.b32 $0, [$1];",
            "=r,l",
            [counter.to(tl.int64)],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )


@jit
def _chain(
    weights: tl.tensor, sums: tl.tensor, counters: tl.tensor, gave_up: tl.tensor, words: tl.tensor, steps: tl.tensor,
    PROGRAMS: tl.constexpr, LANES: tl.constexpr, TILE: tl.constexpr, STAGES: tl.constexpr, AHEAD: tl.constexpr,
) -> None:  # fmt: skip
    """All steps. Sums [steps + 1, PROGRAMS], counters [steps], zero."""
    first = _first_words(weights, words, AHEAD)
    for step in range(steps):
        total = _sum_of_step(weights, first, sums, words, False, PROGRAMS, LANES, TILE, STAGES, AHEAD)
        sums += PROGRAMS
        tl.store(sums + tl.program_id(0), total)
        tl.debug_barrier()  # the arrival of one thread speaks for the stores of all
        tl.atomic_add(counters + step, 1, sem="release")
        if step + 1 < steps:
            weights += words
            first = _first_words(weights, words, AHEAD)
            looks = 0
            while (_arrived(counters + step) < PROGRAMS) & (looks < PATIENCE):
                looks += 1
            if looks == PATIENCE:
                tl.store(gave_up, 1)


@dataclass(frozen=True, slots=True)
class Way:
    """How a chain runs."""

    one_kernel: bool
    programs: int
    ahead: int

    def __str__(self) -> str:
        kilobytes = self.ahead * 4 // 1024
        return f"{'one kernel' if self.one_kernel else 'launches'}, {self.programs} programs, {kilobytes} KB ahead"


class Chain:
    """Weights of a chain, int32 [steps, words], and what is left of running it."""

    def __init__(self, words: int, steps: int, device: torch.device):
        generator = torch.Generator(device).manual_seed(words)
        self.weights = torch.randint(8, (steps, words), generator=generator, dtype=torch.int32, device=device)
        self.gave_up = torch.zeros(1, dtype=torch.int32, device=device)
        self.steps, self.words = steps, words

    def runs(self, way: Way) -> tuple[Callable[[], None], Tensor]:
        """What runs all steps, and where their sums then are, int32 [steps + 1, programs]."""
        device = self.weights.device
        sums = torch.zeros(self.steps + 1, way.programs, dtype=torch.int32, device=device)
        counters = torch.zeros(self.steps, dtype=torch.int32, device=device)
        constants = {
            **{"PROGRAMS": way.programs, "LANES": power_of_two(way.programs), "AHEAD": way.ahead},
            **{"TILE": TILE, "STAGES": STAGES, "num_warps": WARPS},
        }

        def launches() -> None:
            for step in range(self.steps):
                _step[(way.programs,)](self.weights[step], sums[step], sums[step + 1], self.words, **constants)

        def one_kernel() -> None:
            counters.zero_()
            _chain[(way.programs,)](self.weights, sums, counters, self.gave_up, self.words, self.steps, **constants)

        return one_kernel if way.one_kernel else launches, sums

    def expected(self, programs: int) -> Tensor:
        """What all programs of each step have together, int64 [steps]."""
        carried, found = 0, []
        for words in self.weights.sum(dim=1).tolist():
            found.append(words + programs * carried)  # every program adds what the step before left
            carried = found[-1] % int(CARRIED)
        return torch.tensor(found)


def microseconds(run: Callable[[], None], device: torch.device) -> float:
    """Of one replay as a graph, the median of several."""
    if device.type != "cuda":
        run()
        return float("nan")
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    taken = []
    for _ in range(REPLAYS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        taken.append(1e3 * start.elapsed_time(end))
    return median(taken[1:])


def measure(chain: Chain, way: Way, report: Report) -> float:
    """Microseconds of a step; reports them, and whether all sums are right."""
    run, sums = chain.runs(way)
    chain.gave_up.zero_()
    taken = microseconds(run, chain.weights.device) / chain.steps
    found = sums[1:].sum(dim=1, dtype=torch.int64).cpu()
    right, waited = torch.equal(found, chain.expected(way.programs)), int(chain.gave_up) == 0
    why = "" if right and waited else "  SUMS ARE WRONG" if waited else "  GAVE UP: not all programs are resident"
    report.line(f"{chain.words * 4 / 1e6:4.0f} MB, {way}", f"{taken:7.2f} us{why}", right and waited)
    return taken


def measure_step(size: float, device: torch.device, report: Report) -> None:
    """All ways of a chain whose steps have so many bytes."""
    on_gpu = device.type == "cuda"
    words = int(size) // (4 * TILE) * TILE
    chain = Chain(words, max(STEPS, int(COLD / size)) if on_gpu else 3, device)
    multiprocessors = card_of(device).multiprocessors if on_gpu else 1
    choices = PROGRAMS_AND_AHEAD if on_gpu else PROGRAMS_AND_AHEAD[::3]
    whole = Chain(words * chain.steps, 1, device)  # as one step, which waits for nothing

    def best(chain: Chain, one_kernel: bool) -> float:
        ways = [Way(one_kernel, multiprocessors * programs, ahead) for programs, ahead in choices]
        return min(measure(chain, way, report) for way in ways)

    floor, launches, one_kernel = best(whole, False) / chain.steps, best(chain, False), best(chain, True)
    report.line(
        f"{size / 1e6:4.0f} MB a step", f"bytes {floor:.2f} us, launches {launches:.2f}, one kernel {one_kernel:.2f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m measure.gpu.launches")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--megabytes", type=float, nargs="+", default=MEGABYTES)
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parser.parse_args()
    device, report = torch.device(options.device), Report()
    if device.type == "cuda":
        print(torch.cuda.get_device_name(), flush=True)
    for megabytes in options.megabytes:
        measure_step(megabytes * 1e6, device, report)
    report.write(options.out)
    print("all sums are right" if report.ok else "NOT ALL HOLDS")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
