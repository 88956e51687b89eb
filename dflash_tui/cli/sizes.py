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
HEADS = ("model", "weights", "GB", "drafter", "cache 8k", "32k", "128k", "sum at 32k", "fits with", "tokens/s")


def size_objects(gpu: Gpu | None, pace: int | None = None) -> list[dict[str, Any]]:
    """A row of the table for each model and format, in bytes. ``pace``: bytes that the card's memory was measured to
    read in a second."""
    return [row for size in known_sizes() for row in _objects(size, gpu, pace)]


def _objects(size: PairSize, gpu: Gpu | None, pace: int | None) -> Iterator[dict[str, Any]]:
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
            "token_bytes": size.token[weights],
            "most_tokens_per_second": pace and round(pace / size.token[weights], 1),
            "fits": None if gpu is None else [each for each in size.caches if size.fits(weights, each, gpu.free)],
        }


def size_lines(gpu: Gpu | None, pace: int | None = None) -> list[str]:
    """The table as lines, with remarks. ``gpu``: the card that the pairs shall fit on, None for no card; ``pace`` as of
    ``size_objects``."""
    rows = [_row(each) for each in size_objects(gpu, pace)]
    heads = HEADS[: -2 if gpu is None else -1 if pace is None else None]
    if gpu is None:
        about = "No NVIDIA GPU here; for one that you have in mind: dflash-chat doctor --memory 24, or --memory 4090"
    else:
        about = f"On {gpu.name}: {gpu.free / 1e9:.1f} of {gpu.memory / 1e9:.1f} GB free"
    remarks = [
        "GB. The drafter with its 8-bit copies, or in 8 bits alone where that fits; the sum with room to work.",
        f"{NO_CACHE}: longer than the model's own context, which then bounds the sum, too.",
    ]
    if pace is not None:
        remarks.append(f"tokens/s: at most, without speculation: the memory reads {pace / 1e12:.2f} TB in a second.")
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
        f"{each['most_tokens_per_second'] or 0:,.0f}",
    ]
