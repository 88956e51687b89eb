"""The tiles that a sweep of the kernels found best, for rounds that are measured with them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..kernels.decode.tiles import DRAFT_TILES_IN_8_BITS, DraftTiles, TargetTiles, Tiles

Tried = Mapping[Tiles, float]
"""Microseconds of one kernel with each choice."""


def read_tiles(sweep: Path, target: TargetTiles) -> tuple[TargetTiles, DraftTiles]:
    """The tiles of target and drafter that a sweep's JSON found best (``ValueError``: it holds no sweep). A choice that
    serves several kernels is the one with the least mean slowdown; what the sweep lacks keeps its default."""
    by_field: dict[str, list[Tried]] = defaultdict(list)
    try:
        kernels = json.loads(sweep.read_text("utf-8"))["kernels"]
        for kernel in kernels:
            if kernel["choice"] and kernel["tried"]:
                by_field[kernel["choice"]].append({Tiles(**tiles): us for tiles, us in kernel["tried"]})
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{sweep} holds no sweep of the kernels: {error}") from error
    chosen = {field: tiles for field, tried in by_field.items() if (tiles := best_for_all(tried)) is not None}
    return replace(target, **_of("target.", chosen)), replace(DRAFT_TILES_IN_8_BITS, **_of("draft.", chosen))


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
