"""What programmatic dependent launch costs and gains in a captured line: ``python -m measure.gpu.time_early_launch``.

The line alternates as a decoding pass does: a row kernel (adds splits, norms) and a product of few rows with 24 MB of
weight, or two products in a row; weights change, so all come from memory. Needs nvcc and Hopper; takes under a minute.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import triton
import triton.language as tl
from torch import Tensor

K, N, SPLITS, PAIRS, WEIGHTS = 2816, 4224, 4, 96, 16
FLOOR = N * K * 2 / 4.27e6
"""Microseconds that reading the weight of one product takes."""
WAIT, WAIT_LATE, TRIGGER, TRIGGER_LATE = 1, 2, 4, 8
"""Flags of a kernel: "late" is behind the first loads that depend on nothing, or behind the last load of all."""
VARIANTS: dict[str, tuple[bool, int, int]] = {  # early launch allowed, flags of row kernels, flags of products
    "0": (False, 0, 0),
    "1": (True, 0, 0),
    "2": (True, WAIT, WAIT),
    "3": (True, WAIT | TRIGGER, WAIT),
    "4": (True, WAIT | TRIGGER, WAIT | TRIGGER),
    "5": (True, WAIT | TRIGGER_LATE, WAIT | TRIGGER_LATE),
    "6/2": (True, WAIT_LATE, WAIT_LATE),
    "6/3": (True, WAIT_LATE | TRIGGER, WAIT_LATE),
    "6/4": (True, WAIT_LATE | TRIGGER, WAIT_LATE | TRIGGER),
    "6/5": (True, WAIT_LATE | TRIGGER_LATE, WAIT_LATE | TRIGGER_LATE),
    "6/35": (True, WAIT_LATE | TRIGGER, WAIT_LATE | TRIGGER_LATE),
}
LEGEND = """Microseconds per pair of kernels, the best of three. ~: as 0 but for the order of sums. *: WRONG results.
0 plain  1 the attribute alone  2 all wait at the top  3 = 2, row kernels trigger at the top  4 = 2, all trigger there
5 = 2, all trigger behind their last load: once it is asked for (CUDA), once it is there (Triton)
6/n = n, first weights asked for before the wait  6/35 = rows as in 6/3, products as in 6/5"""
Step = Callable[[], object]
Launches = tuple[Callable[[int, int, bool], object], Callable[[int, bool, int, int, bool], object]]
"""Launches of a row kernel (rows, flags, early) and of a product (which one, next to a product, rows, flags, early)."""


@triton.jit
def _row(sums, scales, x, N: tl.constexpr, K: tl.constexpr, SPLITS: tl.constexpr, FLAGS: tl.constexpr):
    if FLAGS & 4:
        tl.extra.cuda.gdc_launch_dependents()
    if FLAGS & 1:
        tl.extra.cuda.gdc_wait()
    row, lane = tl.program_id(0), tl.arange(0, 4096)
    scale = tl.load(scales + lane, mask=lane < K, other=0.0)
    if FLAGS & 2:
        tl.extra.cuda.gdc_wait()
    v = tl.zeros([4096], tl.float32)
    for split in tl.static_range(SPLITS):
        v += tl.load(sums + (split * 16 + row) * N + lane, mask=lane < K, other=0.0)
    if FLAGS & 8:
        tl.extra.cuda.gdc_launch_dependents()
    v = v * tl.rsqrt(tl.sum(v * v, axis=0) / K + 1e-6) * scale.to(tl.float32)
    tl.store(x + row * K + lane, v.to(x.dtype.element_ty), mask=lane < K)


@triton.jit(do_not_specialize=["rows", "pair"])
def _product(x, w, out, following, pair, rows, N, K: tl.constexpr, SPLITS: tl.constexpr, FLAGS: tl.constexpr):
    if FLAGS & 4:
        tl.extra.cuda.gdc_launch_dependents()
    if FLAGS & 1:
        tl.extra.cuda.gdc_wait()
    depth: tl.constexpr = K // SPLITS
    split, columns, row = tl.program_id(1), tl.program_id(0) * 32 + tl.arange(0, 32), tl.arange(0, 16)[:, None]
    at, first = split * depth + tl.arange(0, 64), columns[:, None] * K
    total = tl.zeros([16, 32], tl.float32)
    live = row < rows
    start: tl.constexpr = 256 if FLAGS & 2 else 0
    if FLAGS & 2:  # 16 KB of every program's 45 in registers, four programs or more on a multiprocessor
        w0, w1 = tl.load(w + first + at[None, :]), tl.load(w + first + at[None, :] + 64)
        w2, w3 = tl.load(w + first + at[None, :] + 128), tl.load(w + first + at[None, :] + 192)
        tl.extra.cuda.gdc_wait()
        x0, x1 = tl.load(x + row * K + at, mask=live, other=0.0), tl.load(x + row * K + at + 64, mask=live, other=0.0)
        x2 = tl.load(x + row * K + at + 128, mask=live, other=0.0)
        x3 = tl.load(x + row * K + at + 192, mask=live, other=0.0)
    for step in tl.range(start, depth, 64):
        rows_of_x = tl.load(x + row * K + step + at, mask=live, other=0.0)
        total = tl.dot(rows_of_x, tl.load(w + first + step + at[None, :]).T, total)
    if FLAGS & 2:  # last, so that the loop's loads are on their way first
        total = tl.dot(x3, w3.T, tl.dot(x2, w2.T, tl.dot(x1, w1.T, tl.dot(x0, w0.T, total))))
    if FLAGS & 8:
        tl.extra.cuda.gdc_launch_dependents()
    tl.store(out + (split * 16 + row) * N + columns, total, mask=live)
    followed = live & (columns < K) & (split == 0) & (pair != 0)
    tl.store(following + row * K + columns, total.to(x.dtype.element_ty), mask=followed)


class Bench:
    """Tensors that all lines share, and the two ways to launch their kernels."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.w = torch.randn(2 * WEIGHTS, N, K, device="cuda", dtype=torch.bfloat16) * (K // SPLITS) ** -0.5
        self.scales = torch.rand(K, device="cuda").bfloat16() + 0.5
        self.start = torch.randn(16, K, device="cuda").bfloat16()
        self.x = torch.zeros(2, 16, K, device="cuda", dtype=torch.bfloat16)
        self.sums = [torch.zeros(SPLITS, 16, columns, device="cuda") for columns in (N, 2 * N)]
        library = Path(tempfile.mkdtemp()) / "early_launch.so"
        options = ["-O3", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-shared", "-Xcompiler", "-fPIC"]
        source = str(Path(__file__).with_suffix("").with_name("early_launch.cu"))
        subprocess.run(["nvcc", *options, "-o", str(library), source], check=True)
        self.cuda = ctypes.CDLL(str(library))
        assert not self.cuda.prepare(-1)
        self.kernels: dict[int, object] = {}

    def weight(self, index: int, wide: bool) -> Tensor:
        return self.w[index % WEIGHTS * 2 :][: 2 if wide else 1].flatten(0, 1)

    def reset(self) -> None:
        self.x[:] = self.start
        for sums in self.sums:
            sums.copy_(torch.linspace(-1, 1, sums.numel(), device="cuda").view_as(sums))

    def in_cuda(self, even: bool) -> Launches:
        def pointer(tensor: Tensor | None) -> ctypes.c_void_p:
            return ctypes.c_void_p(None if tensor is None else tensor.data_ptr())

        def call(name: str, *arguments: object) -> None:
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            assert not getattr(self.cuda, name)(stream, *arguments), name

        def row(rows: int, flags: int, early: bool) -> None:
            call("launch_row", pointer(self.sums[0]), pointer(self.scales), pointer(self.x[0]), N, rows, flags, early)

        def product(index: int, pair: bool, rows: int, flags: int, early: bool) -> None:
            wide, here = pair and index % 2 == 0, index % 2 if pair else 0
            out, following = self.sums[int(wide)], self.x[1 - here] if pair else None
            columns, weight = out.shape[2], self.weight(index, wide)
            arguments = (pointer(self.x[here]), pointer(weight), pointer(out), pointer(following), columns)
            call("launch_product", even, *arguments, rows, flags, early)

        return row, product

    def in_triton(self) -> Launches:
        def row(rows: int, flags: int, early: bool) -> None:
            kernel = _row[(rows,)](
                self.sums[0], self.scales, self.x[0], N, K, SPLITS, flags, num_warps=32, maxnreg=64, launch_pdl=early
            )
            self.kernels[kernel.function] = kernel

        def product(index: int, pair: bool, rows: int, flags: int, early: bool) -> None:
            wide, here = pair and index % 2 == 0, index % 2 if pair else 0
            out = self.sums[int(wide)]
            columns, following = out.shape[2], self.x[1 - here]
            arguments = (self.x[here], self.weight(index, wide), out, following, int(pair), rows, columns, K, SPLITS)
            grid = (columns // 32, SPLITS)
            kernel = _product[grid](*arguments, flags, num_warps=4, num_stages=6, launch_pdl=early)
            self.kernels[kernel.function] = kernel

        return row, product

    def carveout(self, percent: int) -> None:
        """How much of a multiprocessor's memory is shared memory, the same for all kernels; -1: the driver's choice."""
        assert not self.cuda.prepare(percent)
        for function in self.kernels:
            ctypes.CDLL("libcuda.so.1").cuFuncSetAttribute(ctypes.c_void_p(function), 9, percent)


def captured(step: Step) -> torch.cuda.CUDAGraph:
    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def microseconds(graph: torch.cuda.CUDAGraph, replays: int = 15) -> float:
    """The best of three, per replay."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    best = float("inf")
    for _ in range(3):
        graph.replay()
        begin.record()
        for _ in range(replays):
            graph.replay()
        end.record()
        end.synchronize()
        best = min(best, begin.elapsed_time(end) * 1e3 / replays)
    return best


def time_line(bench: Bench, launches: Launches, rows: int, pair: bool) -> None:
    """Prints a row of the table: microseconds per pair of kernels for each variant."""
    row, product = launches
    expected: list[Tensor] = []
    for early, row_flags, product_flags in VARIANTS.values():

        def line(early: bool = early, row_flags: int = row_flags, product_flags: int = product_flags) -> None:
            for index in range(2 * PAIRS if pair else PAIRS):
                if not pair:
                    row(rows, row_flags, early)
                product(index, pair, rows, product_flags, early)

        graph = captured(line)
        worst = 0.0
        for _ in range(5):
            bench.reset()
            graph.replay()
            results = [tensor[..., :rows, :].float() for tensor in (bench.x, *bench.sums)]
            expected = expected or results
            far = [((a - b).norm() / a.norm()).item() for a, b in zip(expected, results, strict=True)]
            worst = max(worst, *far)  # a stale row changes everything that follows; rounding, some percent
        mark = " " if worst == 0 else "~" if worst < 0.1 else "*"
        print(f"{microseconds(graph) / PAIRS:6.2f}{mark}", end="", flush=True)
    print()


def check_product(bench: Bench) -> None:
    """The CUDA kernels against PyTorch: once is enough, variants are compared with the plain line."""
    for even in (False, True):
        bench.reset()
        bench.in_cuda(even)[1](1, False, 16, 0, False)
        wanted = bench.x[0].float() @ bench.weight(1, False).float().T
        error = (bench.sums[0].sum(0) - wanted).abs().max().item()
        print(f"product in CUDA, {'even' if even else 'small'} programs: largest error {error:.1e}")


def time_empty(bench: Bench) -> None:
    """Prints what a node of a line costs when it does nothing."""
    source, target = (torch.zeros(256, device="cuda") for _ in range(2))

    def empties(programs: int, threads: int, flags: int, early: bool) -> Step:
        def one() -> None:
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            assert not bench.cuda.launch_empty(stream, programs, threads, flags, early)

        return one

    def forked() -> None:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            empties(1, 128, 0, False)()
        empties(1, 128, 0, False)()
        torch.cuda.current_stream().wait_stream(side)

    def repeated(step: Step) -> torch.cuda.CUDAGraph:
        return captured(lambda: [step() for _ in range(500)])

    side = torch.cuda.Stream()
    forms = {"plain": (0, False), "attribute": (0, True), "wait": (WAIT, True), "trigger": (WAIT | TRIGGER, True)}
    print("Empty nodes, microseconds each: " + ", ".join(forms))
    for programs, threads in ((1, 128), (1, 1024), (132, 128), (528, 128), (528, 512)):
        print(f"{programs:4} programs of {threads:4} threads   ", end="")
        for flags, early in forms.values():
            print(f"{microseconds(repeated(empties(programs, threads, flags, early))) / 500:7.3f}", end="")
        print()
    print(f"copy of 1 KB {microseconds(repeated(lambda: target.copy_(source))) / 500:.3f}")
    print(f"two empties beside each other {microseconds(repeated(forked)) / 500:.3f}")


def main() -> None:
    bench = Bench()
    check_product(bench)
    time_empty(bench)
    forms = {"CUDA, small": bench.in_cuda(False), "CUDA, even": bench.in_cuda(True), "Triton": bench.in_triton()}
    kinds = {"row, product; 1 row": (1, False), "row, product; 16 rows": (16, False), "two products; 1 row": (1, True)}
    print(f"{LEGEND}\nfloors: {FLOOR:.2f} us with a row kernel, {3 * FLOOR:.2f} us of two products")
    for percent in (-1, 100):
        print(f"{f'shared memory {percent} %':36}" + "".join(f"{name:>6} " for name in VARIANTS))
        for form, launches in forms.items():
            for kind, (rows, pair) in kinds.items():
                bench.carveout(percent)
                print(f"{form + ', ' + kind:36}", end="", flush=True)
                time_line(bench, launches, rows, pair)


if __name__ == "__main__":
    main()
