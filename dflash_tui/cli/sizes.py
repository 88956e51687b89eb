"""What the published pairs take in each format, and whether they fit a card, as a table and as a list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dflash_tui.core.export.document import CellTable
from dflash_tui.core.export.spans import table_lines
from engine.hub.sizes import CONTEXTS, PairSize, known_sizes
from engine.tools.gpus import Gpu

SUM_CONTEXT = CONTEXTS[1]
NO_CACHE = "-"
HEADS = ("model", "weights", "GB", "drafter", "cache 8k", "32k", "128k", "sum at 32k", "fits with")


def size_objects(gpu: Gpu | None) -> list[dict[str, Any]]:
    """A row of the table for each model and format, in bytes."""
    return [row for size in known_sizes() for row in _objects(size, gpu)]


def _objects(size: PairSize, gpu: Gpu | None) -> Iterator[dict[str, Any]]:
    for weights, nbytes in size.weights.items():
        drafter = size.draftings[0] if gpu is None else size.drafting(weights, SUM_CONTEXT, gpu.free)
        yield {
            "model": size.target,
            "weights": weights,
            "weights_bytes": nbytes,
            "drafter_bytes": drafter,
            "cache_bytes": {str(context): nbytes for context, nbytes in size.caches.items()},
            "work_bytes": size.work,
            "sum_bytes": size.without_drafter(weights, SUM_CONTEXT) + drafter,
            "fits": None if gpu is None else [each for each in size.caches if size.fits(weights, each, gpu.free)],
        }


def size_lines(gpu: Gpu | None) -> list[str]:
    """The table as lines, with remarks. ``gpu``: the card that the pairs shall fit on, None for no card."""
    rows = [_row(each) for each in size_objects(gpu)]
    heads = HEADS if gpu is not None else HEADS[:-1]
    if gpu is None:
        about = "No NVIDIA GPU here; for one that you have in mind: dflash-chat doctor --memory 24, or --memory 4090"
    else:
        about = f"On {gpu.name}: {gpu.free / 1e9:.1f} of {gpu.memory / 1e9:.1f} GB free"
    remarks = (
        "GB. The drafter with its 8-bit copies, or in 8 bits alone where that fits; the sum with room to work.",
        f"{NO_CACHE}: longer than the model's own context, which then bounds the sum, too.",
    )
    return [about, *table_lines(CellTable((heads, *(tuple(row[: len(heads)]) for row in rows))), left=2), *remarks]


def _row(each: dict[str, Any]) -> list[str]:
    fits, caches = each["fits"], [each["cache_bytes"].get(str(context)) for context in CONTEXTS]
    numbers = (each["weights_bytes"], each["drafter_bytes"], *caches, each["sum_bytes"])
    longest = "no" if not fits else f"{fits[-1] // 1024}k"
    return [
        each["model"].partition("/")[2],
        each["weights"],
        *(NO_CACHE if number is None else f"{number / 1e9:.1f}" for number in numbers),
        "" if fits is None else longest,
    ]
