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
    default: Tiles, per_step: int, bits: int, *, split: bool = False, columns: Sequence[int] = (16, 32, 64)
) -> tuple[Tiles, ...]:
    """``per_step``: weight tiles that a program reads in each step; ``bits``: of a number in them. Columns and depth in
    use are tried with other stages and splits too, even where they stand beside the usual ones."""
    # Every choice has to be compiled, so splits are tried with the stages in use; INT4, whose tiles have few bytes, is
    # also tried with more. Three splits of 64 columns make of 2816 a program for each of Hopper's 132 multiprocessors.
    more = (default.stages, 6) if bits < 8 else (default.stages,)
    stages, splits = (more, (1, 2, 3, 4, 8)) if split else ((3, 4, 6, 8), (default.splits,))
    depths = sorted({default.depth, *((128, 256, 512) if bits < 8 else (128, 256))})
    columns = sorted({default.columns, *columns})
    found = [
        replace(default, columns=each, depth=depth, stages=ahead, splits=parts)
        for each, depth, ahead, parts in product(columns, depths, stages, splits)
    ]
    return tuple(tiles for tiles in dict.fromkeys(found) if _is_worth_trying(tiles, per_step, bits))


def _is_worth_trying(tiles: Tiles, per_step: int, bits: int) -> bool:
    """Whether enough weights are on their way, and the tiles fit; a step's rows are of 16 bits or of 32."""
    weights = tiles.depth * per_step * tiles.columns * bits // 8
    rows = tiles.depth * MAX_ROWS * max(2, bits // 8)
    enough = LEAST_IN_FLIGHT if bits >= 8 else LEAST_IN_FLIGHT // 2
    return (tiles.stages - 1) * weights >= enough and tiles.stages * (weights + rows) <= SHARED_MEMORY


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


def gate_up_and_route_choices(bits: int) -> tuple[Tiles, ...]:
    """For weights of so many bits a number. The router's own tiles, of 16 bits, share the launch."""
    columns = (16,) if bits >= 16 else (16, 32)
    return (
        *(Tiles(each, 256, warps=w, stages=s) for each in columns for w in (2, 4, 8) for s in (3, 4, 5, 6)),
        *(Tiles(each, 128, warps=w, stages=s) for each in columns for w in (2, 4, 8) for s in (6, 8, 10)),
        *(Tiles(each, 512, warps=w, stages=s) for each in columns for w in (4, 8) for s in (2, 3, 4) if bits < 16),
        *(Tiles(16, 512, warps=w, stages=s) for w in (4, 8) for s in (5, 6) if bits < 8),
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
