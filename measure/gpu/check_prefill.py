"""Checks products of a prompt's rows with packed weights, at the real shapes: ``python -m measure.gpu.check_prefill``.

Compares values with the definition, and bits with a second run and with fewer rows; times them in turns with PyTorch's
products in bf16. ``engine.lab.bench --weights fp8 --prompts 2048 8000`` measures whole prompts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median

import torch
from torch import Tensor
from torch.nn import functional as F

from engine.kernels.prefill.gate import reference_gated
from engine.kernels.prefill.products import multiply_many
from engine.kernels.weights.fp8 import Fp8Weight
from engine.kernels.weights.int4 import Int4Weight
from engine.kernels.weights.mxfp4 import Mxfp4Weight
from engine.kernels.weights.plain import PlainWeight
from engine.kernels.weights.weight import Weight
from engine.lab.bench.shapes import SHAPES, read_shape
from engine.models.gemma4.config import Gemma4Config
from measure.gpu.report import Report
from measure.quick import parse

FORMATS: dict[str, type[Fp8Weight | Int4Weight | Mxfp4Weight]] = {
    "fp8": Fp8Weight, "int4": Int4Weight, "mxfp4": Mxfp4Weight
}  # fmt: skip
COPIES = 4
"""Weights that are multiplied in turn, so that none is still in the cache."""
TURNS = 5
ERROR = 2.0**-8
"""Relative error of a product whose weight or result is rounded to bf16."""


@dataclass(frozen=True, slots=True)
class Product:
    """One product of a layer."""

    name: str
    columns: int
    depth: int
    experts: int = 0
    top_k: int = 1
    gate: bool = False
    """Whether it is a product of gate and up."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.experts, self.columns, self.depth) if self.experts else (self.columns, self.depth)

    def flops(self, rows: int) -> float:
        return 2.0 * rows * self.top_k * self.columns * self.depth


def products_of(config: Gemma4Config) -> list[Product]:
    """Every product of a layer of each kind, once."""
    hidden, found = config.hidden_size, {}
    for layer in config.attention:
        heads = layer.num_heads + (1 if layer.value_is_key else 2) * layer.num_kv_heads
        for each in (
            Product("qkv", heads * layer.head_dim, hidden),
            Product("output", hidden, layer.num_heads * layer.head_dim),
        ):
            found[each.shape] = each
    inter = config.intermediate_size
    dense = [Product("gate/up", 2 * inter, hidden, gate=True), Product("down", hidden, inter)]
    moe = config.moe
    if moe is not None:
        both = 2 * moe.intermediate_size
        dense.append(Product("experts' gate/up", both, hidden, moe.num_experts, moe.top_k, gate=True))
        dense.append(Product("experts' down", hidden, moe.intermediate_size, moe.num_experts, moe.top_k))
    return [*found.values(), *dense]


class Measured:
    """One product on one device: rows, a weight of the same values in each format, and experts' ends."""

    def __init__(self, what: Product, device: torch.device):
        self.what, self.device = what, device
        self.copies = 1 if what.experts else COPIES
        generator = torch.Generator(device).manual_seed(what.columns + what.depth)
        plain = torch.randn(what.shape, generator=generator, device=device, dtype=torch.bfloat16) * what.depth**-0.5
        self.weights: dict[str, list[Weight]] = {"bf16": [PlainWeight(plain.clone()) for _ in range(self.copies)]}
        for name, kind in FORMATS.items():
            packed = kind.of(plain)
            self.weights[name] = [type(packed)(packed.values.clone(), packed.scales) for _ in range(self.copies)]

    def rows(self, n: int) -> Tensor:
        generator = torch.Generator(self.device).manual_seed(n)
        shape = (n * self.what.top_k, self.what.depth)
        return torch.randn(shape, generator=generator, device=self.device, dtype=torch.bfloat16)

    def ends(self, n: int, *, ragged: bool = False) -> Tensor | None:
        """Where experts' rows end, for evenly chosen experts; ``ragged``: a few experts have most rows, some none."""
        if not self.what.experts:
            return None
        generator = torch.Generator().manual_seed(n)
        chances = torch.rand(self.what.experts, generator=generator)
        chances = chances.pow(8).where(chances > 0.1, 0.0) if ragged else torch.ones(self.what.experts)
        chosen = torch.multinomial(chances, n * self.what.top_k, replacement=True, generator=generator)
        return torch.bincount(chosen, minlength=self.what.experts).cumsum(0).to(torch.int32).to(self.device)


def defined(x: Tensor, weight: Weight, ends: Tensor | None) -> Tensor:
    """fp32 products with the values of the weight."""
    if ends is None:
        return F.linear(x.float(), weight.restored())
    out = torch.empty(len(x), weight.shape[-2], device=x.device)
    since = 0
    for number, until in enumerate(ends.tolist()):
        if until > since:
            part = type(weight)(weight.values[number], None if weight.scales is None else weight.scales[number])
            out[since:until] = F.linear(x[since:until].float(), part.restored())
        since = until
    return out


def check_values(measured: Measured, report: Report, n: int) -> None:
    """Compares a product's values with the definition, and its bits with a second run and with fewer rows."""
    what = measured.what
    for name, ragged in product(FORMATS, (False, True) if what.experts else (False,)):
        weight, x, ends = measured.weights[name][0], measured.rows(n), measured.ends(n, ragged=ragged)
        found, wanted = multiply_many(x, weight, ends), defined(x, weight, ends)
        error = float((found.float() - wanted).norm() / wanted.norm())
        worst = float((found.float() - wanted).abs().max() / wanted.abs().max())
        where = f"{what.name} {name}{' ragged' if ragged else ''}, {n} rows"
        report.line(where, f"error {error:.1e}, worst {worst:.1e}", error <= ERROR and worst <= ERROR)
        if what.gate:
            wanted = reference_gated(wanted)
            error = float((multiply_many(x, weight, ends, gate="gelu_tanh").float() - wanted).norm() / wanted.norm())
            report.line(f"{where}, gated", f"error {error:.1e}", error <= ERROR)
        same = torch.equal(found, multiply_many(x, weight, ends))
        if ends is None:
            parts = [(0, 1), (3, 40), (0, min(100, n)), (max(0, n - 300), n)]
            company = all(torch.equal(multiply_many(x[a:b].contiguous(), weight), found[a:b]) for a, b in parts)
        else:
            kept = ends.clamp(max=int(ends[len(ends) // 2]))  # half of the experts have no rows any more
            company = torch.equal(multiply_many(x, weight, kept)[: int(kept[-1])], found[: int(kept[-1])])
            dense = type(weight)(weight.values[-1], weight.scales[-1] if weight.scales is not None else None)
            since = int(ends[-2])
            if since < len(x):
                company &= torch.equal(multiply_many(x[since:].contiguous(), dense), found[since:])
        report.line(f"{where}, bits", f"twice the same: {same}, in other company: {company}", same and company)


def microseconds(runs: Sequence[Callable[[], object]], device: torch.device, repeat: int = 2) -> float:
    """Microseconds of one run, replayed in a graph, one after the other."""
    if device.type != "cuda":
        return float("nan")
    for run in runs:
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeat):
            for run in runs:
                run()
    graph.replay()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return 1e3 * start.elapsed_time(end) / (repeat * len(runs))


def check_times(measured: Measured, report: Report, n: int) -> None:
    """Times a product in turns with PyTorch's in bf16."""
    what, x, ends = measured.what, measured.rows(n), measured.ends(n)
    runs: dict[str, list[Callable[[], object]]] = {
        "bf16": [
            partial(w.linear, x) if ends is None else partial(w.grouped, x, ends) for w in measured.weights["bf16"]
        ]
    }
    for name in FORMATS:
        runs[name] = [partial(multiply_many, x, weight, ends) for weight in measured.weights[name]]
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(TURNS):
        for name, these in runs.items():
            taken[name].append(microseconds(these, measured.device))
    rate = {name: what.flops(n) / median(times) / 1e6 for name, times in taken.items()}
    value = ", ".join(f"{name} {median(times):.0f} us ({rate[name]:.0f} TFLOPS)" for name, times in taken.items())
    report.line(f"{what.name} {'x'.join(map(str, what.shape))}, {n} rows", value)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m measure.gpu.check_prefill")
    parser.add_argument("--shape", choices=SHAPES, default="26B-A4B")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, nargs="+", default=[2048, 4096])
    parser.add_argument("--json", type=Path)
    options = parse(parser, "--device cpu --shape tiny --rows 40", kernels=True)
    config = read_shape(options.shape).target
    assert isinstance(config, Gemma4Config)
    device, report = torch.device(options.device), Report()
    if device.type == "cuda":
        print(torch.cuda.get_device_name(), flush=True)
    for what in products_of(config):
        measured = Measured(what, device)
        check_values(measured, report, options.rows[0] - 5)
        if device.type == "cuda":
            for n in options.rows:
                check_times(measured, report, n)
    report.write(options.json)
    print("all holds" if report.ok else "NOT ALL HOLDS")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
