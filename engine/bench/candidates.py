"""Which tiles a sweep of the kernels tries, and which of them it found best."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from ..kernels.decode.attention import AttendTiles, WindowTiles
from ..kernels.decode.tiles import DraftTiles, RowTiles, TargetTiles, Tiles
from ..kernels.prefill.attention import ChunkTiles
from ..kernels.toolchain.jit import MAX_ROWS

AnyTiles = Tiles | RowTiles | AttendTiles | ChunkTiles

SHARED_MEMORY = 160_000
"""Bytes that a program may use; tiles that need more are left out of a sweep."""
LEAST_IN_FLIGHT = 16_000
"""Bytes of weights that a program has on their way; with fewer, memory idles."""


def tile_choices(
    default: Tiles, per_step: int, itemsize: int, *, split: bool = False, columns: Sequence[int] = (16, 32, 64)
) -> tuple[Tiles, ...]:
    """``per_step``: weight tiles that a program reads in each step."""
    # Every choice has to be compiled, so splits are tried with the stages in use.
    stages, splits = ((default.stages,), (1, 2, 4, 8)) if split else ((3, 4, 6, 8), (default.splits,))
    found = [
        replace(default, columns=each, depth=depth, stages=ahead, splits=parts)
        for each, depth, ahead, parts in product(columns, (128, 256), stages, splits)
    ]
    return tuple(
        tiles
        for tiles in found
        if (tiles.stages - 1) * tiles.depth * per_step * tiles.columns * itemsize >= LEAST_IN_FLIGHT
        and tiles.stages * tiles.depth * (per_step * tiles.columns + MAX_ROWS) * itemsize <= SHARED_MEMORY
    )


def refinements(tiles: AnyTiles) -> tuple[AnyTiles, ...]:
    """Neighbours of the best of a sweep, in what the sweep left fixed."""
    if not isinstance(tiles, Tiles):
        return ()
    warps = [replace(tiles, warps=warps) for warps in (2, 8)]
    return (*warps, *(replace(tiles, programs=programs) for programs in (264, 396, 528, 792)))


def attend_choices(default: AttendTiles) -> tuple[AttendTiles, ...]:
    if isinstance(default, WindowTiles):
        sizes = ((size, rows) for size in (default.split // 2, default.split) for rows in (16, 32))
        return tuple(
            WindowTiles(*size, warps, most) for size in sizes for warps, most in ((4, 255), (8, 128), (8, 255))
        )
    shorter = [replace(default, keys=default.keys // 2, stages=stages) for stages in (2, 3, 4)]
    whole = replace(default, rows=64, values=2 * default.values, warps=8)
    return (*shorter, replace(default, split=2 * default.split), whole, replace(whole, keys=16, stages=3))


GATE_UP_AND_ROUTE_CHOICES = (
    *(Tiles(16, 256, warps=warps, stages=stages) for warps in (2, 4, 8) for stages in (3, 4, 5, 6)),
    *(Tiles(16, 128, warps=warps, stages=stages) for warps in (2, 4, 8) for stages in (6, 8, 10)),
)
ROUTER_CHOICES = tuple(
    Tiles(32, depth, splits) for depth, splits in ((64, 4), (64, 11), (128, 2), (256, 11), (128, 22))
)
ROW_CHOICES = tuple(RowTiles(warps) for warps in (4, 8, 16, 32))


Tried = Mapping[Tiles, float]
"""Microseconds of one kernel with each choice."""


def read_tiles(sweep: Path, target: TargetTiles, drafter: DraftTiles) -> tuple[TargetTiles, DraftTiles]:
    """The tiles that a sweep's JSON found best (``ValueError``: it holds no sweep). A choice that serves several
    kernels is the one with the least mean slowdown; what the sweep lacks stays as given."""
    by_field: dict[str, list[Tried]] = defaultdict(list)
    try:
        kernels = json.loads(sweep.read_text("utf-8"))["kernels"]
        for kernel in kernels:
            if kernel["choice"] and kernel["tried"]:
                by_field[kernel["choice"]].append({Tiles(**tiles): us for tiles, us in kernel["tried"]})
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{sweep} holds no sweep of the kernels: {error}") from error
    chosen = {field: tiles for field, tried in by_field.items() if (tiles := best_for_all(tried)) is not None}
    return replace(target, **_of("target.", chosen)), replace(drafter, **_of("draft.", chosen))


def best_for_all(kernels: Iterable[Tried]) -> Tiles | None:
    """The choice with the least mean slowdown among those that ran in every kernel; None when there is none."""
    kernels = list(kernels)
    common = set.intersection(*(set(tried) for tried in kernels))
    best = [min(tried.values()) for tried in kernels]

    def slowdown(tiles: Tiles) -> float:
        return sum(tried[tiles] / least for tried, least in zip(kernels, best, strict=True))

    return min(common, key=slowdown, default=None)


def _of(prefix: str, chosen: Mapping[str, Tiles]) -> dict[str, Any]:
    return {field.removeprefix(prefix): tiles for field, tiles in chosen.items() if field.startswith(prefix)}
