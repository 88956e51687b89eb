"""``python -m engine.lab.bench kernels``: each kernel alone against its floor, with the tiles in use. Launches over
several copies of the weights are replayed from a CUDA graph, so neither the host nor a cache helps. A kernel that
breaks the GPU costs its process."""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from ....commands import WeightFormat
from ....kernels.toolchain.card import card_of
from ....kernels.toolchain.jit import HAS_TRITON, INTERPRETED
from ....kernels.weights.kinds import MAKERS
from ....loading.checkpoint import compute_dtype, pick_device
from ....measured.timing import time_launches
from ..ceiling import Ceiling, measure_ceiling
from ..report import ceiling_line, table
from ..shapes import SHAPES, TINY, read_shape
from .case import Case
from .cases import cases_of, copies_for

PROG = "python -m engine.lab.bench kernels"
CONTEXTS = (128, 2048, 32_768)
CASE_SECONDS = 90.0
HEADS = ("kernel", "MB", "floor us", "us", "share")


@dataclass(slots=True)
class KernelFigures:
    """What one kernel's launch took, in microseconds, and its floor."""

    name: str
    num_bytes: float
    floor_us: float
    tiles: dict[str, Any]
    us: float | None = None
    """None when the launch failed."""
    failure: str = ""
    broken: bool = False
    """Whether the GPU refuses everything since some launch, so that the process has to be replaced."""

    def row(self) -> list[str]:
        share = "" if self.us is None else f"{100 * self.floor_us / self.us:.0f}%"
        us = "failed" if self.us is None else f"{self.us:.2f}"
        return [self.name, f"{self.num_bytes / 1e6:.2f}", f"{self.floor_us:.2f}", us, share]


@dataclass(frozen=True, slots=True)
class TimingPlan:
    """What to time; it is sent to the processes that do it."""

    shape: str
    device: str
    contexts: tuple[int, ...]
    weights: WeightFormat = "bf16"
    """The format of the target's weights."""
    copy_rate: float = 1e12
    """Bytes per second, by which floors become microseconds."""
    isolated: bool = True
    """Whether kernels are timed in processes of their own, so that a broken launch ends only one of them."""

    def cases(self) -> list[Case]:
        device = torch.device(self.device)
        return cases_of(read_shape(self.shape), compute_dtype(device), self.contexts, card_of(device), self.weights)


def time_case(plan: TimingPlan, name: str) -> KernelFigures:
    """Times one kernel. Runs in a process of its own."""
    case, device = _find(plan, name), torch.device(plan.device)
    torch.manual_seed(0)
    dtype = compute_dtype(device)
    launches_of = case.prepare(device, dtype, copies_for(case.num_bytes) if device.type == "cuda" else 2)
    figures = KernelFigures(name, case.num_bytes, case.num_bytes / plan.copy_rate * 1e6, asdict(case.tiles))
    try:
        figures.us = time_launches(launches_of(case.tiles), device)
    except Exception as error:
        figures.failure = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    figures.broken = _is_broken(device)
    return figures


def _find(plan: TimingPlan, name: str) -> Case:
    found = [case for case in plan.cases() if case.name == name]
    if not found:
        raise ValueError(f"there is no kernel called {name}")
    return found[0]


def time_cases(plan: TimingPlan, names: Sequence[str]) -> Iterator[KernelFigures | str]:
    """The figures of each case as they come. A string in their place says which case could not be timed, and why."""
    if not plan.isolated:
        yield from (time_case(plan, name) for name in names)
        return
    waiting = list(names)
    while waiting:
        with _process() as pool:
            for name in list(waiting):
                waiting.remove(name)
                try:
                    figures = pool.submit(time_case, plan, name).result(timeout=CASE_SECONDS)
                except (BrokenProcessPool, TimeoutError) as error:
                    yield f"{name}: {type(error).__name__}"
                    _end(pool)
                    break
                except Exception as error:  # before anything was launched, such as for lack of memory
                    yield f"{name}: {type(error).__name__} {error}".strip()
                    continue
                yield figures
                if figures.broken:
                    _end(pool)
                    break


def _is_broken(device: torch.device) -> bool:
    """Whether an earlier launch has left the GPU in an error state, which lasts as long as the process."""
    try:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except RuntimeError:
        return True
    return False


def _end(pool: ProcessPoolExecutor) -> None:
    """Ends a process that hangs, for which its pool would wait."""
    for process in list((pool._processes or {}).values()):
        process.kill()


def _process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROG, description="Time each kernel of a round alone, at a shape's sizes.")
    parser.add_argument("--shape", choices=SHAPES, help="26B-A4B on a GPU, tiny on a CPU")
    parser.add_argument("--weights", choices=list(MAKERS), default="bf16", help="how the target's lie in memory")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--contexts", type=int, nargs="+", default=list(CONTEXTS), metavar="N", help="for attention")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="kernels whose name holds one of these")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the JSON there as well")
    return parser


def run(arguments: Sequence[str]) -> int:
    """Times and prints; returns the exit code, 1 when a kernel could not be timed with the tiles in use."""
    options = make_parser().parse_args(arguments)
    device = pick_device(options.device)
    if not HAS_TRITON or (device.type == "cpu" and not INTERPRETED):
        raise ValueError("kernels need a GPU and Triton; on a CPU, TRITON_INTERPRET=1 runs them slowly")
    started = perf_counter()
    shape = options.shape or (TINY if device.type == "cpu" else "26B-A4B")
    ceiling = measure_ceiling(device)
    contexts, on_gpu = tuple(options.contexts), device.type == "cuda"
    plan = TimingPlan(shape, str(device), contexts, options.weights, ceiling.copy, on_gpu)
    wanted = [case.name for case in plan.cases() if _is_wanted(case.name, options.only)]
    figures, lost = [], []
    for done in time_cases(plan, wanted):
        if isinstance(done, str):
            lost.append(done)
        else:
            figures.append(done)
        _save(options.out, plan, ceiling, figures, lost)  # keeps what there is when time runs out
    if options.json:
        print(json.dumps(_as_object(plan, ceiling, figures, lost)))
    else:
        _print(plan, ceiling, figures, lost, perf_counter() - started)
    return 1 if lost or any(each.us is None for each in figures) else 0


def _is_wanted(name: str, only: Sequence[str]) -> bool:
    return not only or any(text in name for text in only)


def _as_object(
    plan: TimingPlan, ceiling: Ceiling, figures: Sequence[KernelFigures], lost: Sequence[str]
) -> dict[str, Any]:
    return {
        "shape": plan.shape,
        "weights": plan.weights,
        "ceiling": asdict(ceiling),
        "kernels": [asdict(each) for each in figures],
        "lost": list(lost),
    }


def _save(
    path: Path | None, plan: TimingPlan, ceiling: Ceiling, figures: Sequence[KernelFigures], lost: Sequence[str]
) -> None:
    if path is not None:
        path.write_text(json.dumps(_as_object(plan, ceiling, figures, lost), indent=1))


def _print(
    plan: TimingPlan, ceiling: Ceiling, figures: Sequence[KernelFigures], lost: Sequence[str], seconds: float
) -> None:
    for each in figures:
        if each.failure:
            print(f"{each.name} failed with {each.tiles}: {each.failure}")
    for name in lost:
        print(f"not timed: {name}")
    print(f"{plan.shape} in {plan.weights}, {ceiling_line(ceiling)}, {seconds:.0f} s")
    print(table(HEADS, [each.row() for each in figures]))
