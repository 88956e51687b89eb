"""How near each product of packed weights comes to the memory's pace, alone: ``python -m measure.gpu.packed_pace``.

A launch is captured over the weights of some layers, one after the other, so that no cache holds them, with one row and
with sixteen, whose experts are forced; its bytes over its time are compared with what a copy reaches. ``--tiles
expert_down:stages=6,programs=528`` measures other tiles beside those in use."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

import torch
from torch import Tensor

from engine.commands import WeightFormat
from engine.kernels.decode.experts.experts import expert_down_rows, expert_gate_up_rows
from engine.kernels.decode.experts.router import Assignment, reference_assignment
from engine.kernels.decode.products.dense import gate_up, partial_sums, project
from engine.kernels.decode.tiling.target_tiles import target_tiles
from engine.kernels.decode.tiling.tiles import TargetTiles, Tiles, products_of
from engine.kernels.toolchain.card import HOPPER
from engine.kernels.toolchain.memory_split import SPLIT
from engine.kernels.weights.kinds import PACKED
from engine.kernels.weights.panels import PackedWeight
from engine.lab.bench.routing import Routing, forced_scores
from engine.lab.bench.shapes import read_shape
from engine.measured.ceiling import measure_ceiling
from engine.measured.timing import time_launches

META = torch.device("meta")
Launch = Callable[[], None]
BEST_OF = 3


@dataclass(frozen=True, slots=True)
class Case:
    """One product, with one row or sixteen, and what it reads."""

    name: str
    field: str
    """Its tiles' name among a target's."""
    num_bytes: int
    launches: Callable[[Tiles], list[Launch]]
    """One for each layer."""


class Layers:
    """Random weights of some layers of a shape, in a format."""

    def __init__(self, shape: str, weights: WeightFormat, layers: int, device: torch.device):
        config = read_shape(shape).target
        self.config, self.device, self.count, self.kind = config, device, layers, PACKED[weights]
        inter = config.moe.intermediate_size if config.moe else config.intermediate_size
        self.tiles: TargetTiles = target_tiles(config.moe, HOPPER, weights, (config.hidden_size, inter))

    def weights(self, *shape: int) -> list[PackedWeight]:
        return [_random(self.kind.allocate(*shape, device=self.device)) for _ in range(self.count)]

    def rows(self, *shape: int) -> Tensor:
        return torch.randn(shape, device=self.device).to(torch.bfloat16)

    def assignments(self, routing: Routing, rows: int) -> tuple[list[Assignment], float]:
        """Each layer's, and how many different experts run, on average."""
        moe = self.config.moe
        assert moe is not None
        scores = [each[:rows] for each in forced_scores(routing, self.count, moe.num_experts, torch.device("cpu"))]
        most = min(16, self.tiles.pairs)
        found = [reference_assignment(each, moe.top_k, None, most) for each in scores]
        distinct = sum(len(set(each.experts.tolist()) - {-1}) for each in found) / len(found)
        return [each.to(self.device) for each in found], distinct

    def cases(self) -> Iterator[Case]:
        hidden = self.config.hidden_size
        layer = self.config.attention[0]
        if self.config.moe is not None:
            yield from self._experts()
        for name, columns, depth in (
            ("qkv", (layer.num_heads + 2 * layer.num_kv_heads) * layer.head_dim, hidden),
            ("output", hidden, layer.num_heads * layer.head_dim),
            ("down", hidden, self.config.intermediate_size),
        ):
            if depth:
                yield from self._products(name, columns, depth)
        if self.config.intermediate_size and self.config.moe is None:
            inter = self.config.intermediate_size
            weights = self.weights(2 * inter, hidden)
            x, out = self.rows(16, hidden), self.rows(16, inter)
            for rows in (1, 16):

                def launches(tiles: Tiles, rows: int = rows) -> list[Launch]:
                    return [lambda w=w: gate_up(x, w, out, "silu", tiles, rows) for w in weights]  # type: ignore[misc]

                yield Case(f"gate_up, {rows}", "gate_up", weights[0].nbytes, launches)

    def _products(self, name: str, columns: int, depth: int) -> Iterator[Case]:
        weights = self.weights(columns, depth)
        x = self.rows(16, depth)
        for rows in (1, 16):

            def launches(tiles: Tiles, rows: int = rows) -> list[Launch]:
                out = partial_sums(tiles, columns, self.device)
                return [lambda w=w: project(x, w, out, tiles, rows) for w in weights]  # type: ignore[misc]

            yield Case(f"{name}, {rows}", name, weights[0].nbytes, launches)

    def _experts(self) -> Iterator[Case]:
        moe, hidden = self.config.moe, self.config.hidden_size
        assert moe is not None
        inter, top_k = moe.intermediate_size, moe.top_k
        ups, downs = self.weights(moe.num_experts, 2 * inter, hidden), self.weights(moe.num_experts, hidden, inter)
        x, act, out = self.rows(16, hidden), self.rows(16 * top_k, inter), self.rows(16, top_k, hidden)
        passes: tuple[tuple[int, Routing], ...] = ((1, "uniform"), (16, "correlated"), (16, "uniform"))
        for rows, routing in passes:
            found, distinct = self.assignments(routing, rows)

            def up(tiles: Tiles, rows: int = rows, found: list[Assignment] = found) -> list[Launch]:
                return [
                    lambda w=w, f=f: expert_gate_up_rows(x, w, f, act, tiles, None, rows)  # type: ignore[misc]
                    for w, f in zip(ups, found, strict=True)
                ]

            def down(tiles: Tiles, rows: int = rows, found: list[Assignment] = found) -> list[Launch]:
                return [
                    lambda w=w, f=f: expert_down_rows(act, w, f, out, tiles, rows)  # type: ignore[misc]
                    for w, f in zip(downs, found, strict=True)
                ]

            said = f"{rows}" if rows == 1 else f"{rows} {routing}"
            for weights, name, launches in ((ups, "expert_gate_up", up), (downs, "expert_down", down)):
                field = "expert_gate_up_alone" if name == "expert_gate_up" and rows == 1 else name
                yield Case(f"{name}, {said}", field, int(weights[0].nbytes / moe.num_experts * distinct), launches)


def _random(weight: PackedWeight) -> PackedWeight:
    """Fills a weight with any finite numbers."""
    assert weight.scales is not None
    if weight.values.device != META:
        weight.values.random_(0, 112)
        if weight.scales.dtype == torch.uint8:
            weight.scales.random_(100, 120)
        else:
            weight.scales.normal_(std=0.01)
    return weight


def choices(tiles: TargetTiles, field: str, tried: Sequence[str]) -> dict[str, Tiles]:
    """The tiles in use, and those to try, by name."""
    used = products_of(tiles)[field]
    found = {"in use": used}
    for wanted in tried:
        name, _, changes = wanted.partition(":")
        if name in (field, field.removesuffix("_alone")):
            values: dict[str, Any] = {
                key: int(value) for key, value in (each.split("=") for each in changes.split(","))
            }
            found[changes] = replace(used, **values)
    return found


def compile_cases(layers: Layers, options: argparse.Namespace, processes: int) -> None:
    """Compiles what will be timed, in a process of its own, since it stands in for the GPU."""
    from engine.kernels.toolchain import compile_ahead as ahead

    ahead.compile_for(HOPPER)

    def run() -> None:
        for case in layers.cases():
            if case.field.startswith(tuple(options.only)):
                for tiles in choices(layers.tiles, case.field, options.tiles).values():
                    case.launches(tiles)[0]()

    ahead.compile_all(run, processes)


def _compile(options: argparse.Namespace) -> None:
    for weights in options.weights:
        compile_cases(Layers(options.shape, weights, 1, META), options, options.processes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="26B-A4B")
    parser.add_argument("--weights", nargs="+", default=["int4", "fp8"], choices=list(PACKED))
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--tiles", nargs="*", default=[], metavar="PRODUCT:KEY=N,...", help="others to try")
    parser.add_argument("--only", nargs="+", default=[""], metavar="PRODUCT", help="how names of products begin")
    parser.add_argument("--shared", type=int, metavar="KB", help="of a multiprocessor's memory, in place of the tiles'")
    parser.add_argument("--processes", type=int, default=16, help="that compile")
    options = parser.parse_args()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(_compile, options).result()
    device = torch.device("cuda")
    ceiling = measure_ceiling(device).copy
    print(f"{torch.cuda.get_device_name()}, copies {ceiling / 1e12:.2f} TB/s", flush=True)
    for weights in options.weights:
        layers = Layers(options.shape, weights, options.layers, device)
        SPLIT.share(options.shared or layers.tiles.shared, HOPPER)
        for case in layers.cases():
            if not case.field.startswith(tuple(options.only)):
                continue
            for name, tiles in choices(layers.tiles, case.field, options.tiles).items():
                try:
                    us = min(time_launches(case.launches(tiles), device) for _ in range(BEST_OF))
                except Exception as error:
                    print(f"{weights} {case.name:<28} {name}: {error}", flush=True)
                    continue
                share = case.num_bytes / ceiling / (us / 1e6)
                print(f"{weights:<5} {case.name:<28} {us:7.2f} us  {share:4.0%}  {name}", flush=True)
        del layers


if __name__ == "__main__":
    main()
