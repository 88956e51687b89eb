"""Chooses tiles by timing, for cards on which nobody measured: times each product with the tiles in use and with
neighbours of them, over the weights of the loaded model. A choice holds for every width, so it changes no text between
widths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from time import perf_counter
from typing import Any, Generic

import torch

from ..kernels.decode.tiling.tile_trials import Launch, TileTrial, TileTrials
from ..kernels.decode.tiling.tiles import LEAST_STAGES, AllTiles, DraftTiles, TargetTiles, Tiles
from ..kernels.toolchain.card import Card
from ..kernels.toolchain.jit import KernelFailure
from .timing import time_launches

SECONDS = 60.0
"""Seconds that all this may take at a first start."""
BETTER = 0.98
"""The share of the time of the choice in use that another must stay below: times of one choice differ by a
hundredth."""
COLUMNS, DEPTHS, WARPS, STAGES, SPLITS = (16, 128), (64, 512), (2, 8), (2, 8), (1, 16)
"""The smallest and the largest value that is tried of each field of ``Tiles``."""
REPLAYS = 5

Timer = Callable[[Sequence[Launch], torch.device], float]
Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Timed:
    """The tiles of one product before and now, with microseconds of a launch."""

    name: str
    before: Tiles
    before_us: float
    now: Tiles
    now_us: float


@dataclass(slots=True)
class Tuned(Generic[AllTiles]):
    """The tiles of a pass, and what was timed."""

    tiles: AllTiles
    timed: list[Timed] = field(default_factory=list)
    complete: bool = True
    """Whether there was time for every choice."""


def neighbours(choice: Tiles, trial: TileTrial[Any], card: Card) -> list[Tiles]:
    """Choices that differ in one thing and fit a card; those that differ in what matters most come first."""
    others = [
        *_halved_and_doubled(choice, "columns", *COLUMNS),
        *(_halved_and_doubled(choice, "depth", *DEPTHS) if trial.depth else ()),
        *(replace(choice, stages=choice.stages + more) for more in (-1, 1)),
        *(_halved_and_doubled(choice, "splits", *SPLITS) if trial.splits else ()),
        *(_halved_and_doubled(choice, "warps", *WARPS) if trial.warps else ()),
        *(_programs(choice, card) if trial.shares else ()),
    ]
    low, high = STAGES
    return [each for each in others if low <= each.stages <= high and trial.fits(each, card)]


def _halved_and_doubled(choice: Tiles, what: str, least: int, most: int) -> Iterator[Tiles]:
    now: int = getattr(choice, what)
    changes: list[dict[str, Any]] = [{what: value} for value in (2 * now, now // 2) if least <= value <= most]
    yield from (replace(choice, **change) for change in changes)


def _programs(choice: Tiles, card: Card) -> Iterator[Tiles]:
    each = choice.programs // card.multiprocessors
    yield from (replace(choice, programs=card.multiprocessors * count) for count in (each - 1, each + 1) if count > 0)


def with_choice(tiles: AllTiles, name: str, choice: Tiles, trial: TileTrial[Any], card: Card) -> AllTiles:
    """The tiles with another choice for a product, and with what must follow from it: a single row takes the steps of
    sixteen, and of packed weights, whose depth warps share, as many warps."""
    changed: dict[str, Any] = {name: choice}
    if name == "expert_gate_up" and isinstance(tiles, TargetTiles):
        alone = replace(tiles.expert_gate_up_alone, depth=choice.depth, turned=choice.turned)
        alone = replace(alone, warps=choice.warps) if trial.packed else alone
        changed["expert_gate_up_alone"] = alone if trial.fits(alone, card) else replace(alone, stages=LEAST_STAGES)
    return replace(tiles, **changed)


def first_ring(tiles: AllTiles, trials: TileTrials[AllTiles], card: Card) -> Iterator[Launch]:
    """One launch of every choice that will be timed first, to compile them ahead."""
    for name, trial in trials.items():
        for choice in neighbours(getattr(tiles, name), trial, card):
            yield trial.launches(with_choice(tiles, name, choice, trial, card))[0]


def tune(
    tiles: AllTiles,
    trials: TileTrials[AllTiles],
    card: Card,
    device: torch.device,
    deadline: float,
    progress: Progress = lambda done, total: None,
    timer: Timer = lambda launches, device: time_launches(launches, device, REPLAYS),
) -> Tuned[AllTiles]:
    """Moves each choice to its best neighbour until none is better, or until ``deadline`` (of ``perf_counter``). What
    doesn't compile or run is passed over."""
    tuned = Tuned(tiles)
    for number, (name, trial) in enumerate(trials.items()):
        progress(number, len(trials))
        if perf_counter() > deadline:
            tuned.complete = False
            break
        _tune_one(tuned, name, trial, card, device, deadline, timer)
    return tuned


def _tune_one(
    tuned: Tuned[AllTiles],
    name: str,
    trial: TileTrial[AllTiles],
    card: Card,
    device: torch.device,
    deadline: float,
    timer: Timer,
) -> None:
    def timed(choice: Tiles) -> float:
        try:
            return timer(trial.launches(with_choice(tuned.tiles, name, choice, trial, card)), device)
        except KernelFailure:
            return float("inf")

    best: Tiles = getattr(tuned.tiles, name)
    tried: dict[Tiles, float] = {best: timed(best)}
    improved = True
    while improved and perf_counter() < deadline:
        improved = False
        around: list[Tiles] = neighbours(best, trial, card)
        for choice in around:
            if choice not in tried and perf_counter() < deadline:
                tried[choice] = timed(choice)
                improved |= tried[choice] < BETTER * tried[best]
        best = min((best, *(each for each in around if each in tried)), key=tried.__getitem__)
    first = next(iter(tried))
    if not tried[best] < BETTER * tried[first]:
        best = first
    tuned.timed.append(Timed(name, first, tried[first], best, tried[best]))
    tuned.tiles = with_choice(tuned.tiles, name, best, trial, card) if best != first else tuned.tiles


def as_data(target: TargetTiles, drafter: DraftTiles | None) -> dict[str, Any]:
    """The tiles of both passes as JSON, which ``read_data`` reads again."""
    return {"target": _plain(target), "drafter": None if drafter is None else _plain(drafter)}


def read_data(data: Mapping[str, Any], target: TargetTiles, drafter: DraftTiles) -> tuple[TargetTiles, DraftTiles]:
    """The tiles with the choices that ``as_data`` wrote; what it lacks stays as given. Raises ``ValueError``,
    ``TypeError`` or ``KeyError`` for what is no tiles."""
    return _read(data["target"], target), _read(data["drafter"] or {}, drafter)


def _plain(tiles: TargetTiles | DraftTiles) -> dict[str, dict[str, int | None]]:
    choices = {name: getattr(tiles, name) for name in tiles.__dataclass_fields__}
    return {
        name: {field: getattr(choice, field) for field in Tiles.__dataclass_fields__}
        for name, choice in choices.items()
        if isinstance(choice, Tiles)
    }


def _read(data: Mapping[str, Any], tiles: AllTiles) -> AllTiles:
    read: dict[str, Any] = {name: read_choice(Tiles, parts) for name, parts in data.items()}
    return replace(tiles, **read)


def read_choice(kind: type[Any], parts: Mapping[str, int | None]) -> Any:
    """One choice, of a kind of tiles, from a file; raises ``ValueError`` or ``TypeError`` for what is none."""
    made = kind(**parts)
    for each in fields(kind):
        value = parts.get(each.name, each.default)
        may_be_none, least = each.default is None, 0 if each.name == "early" else 1
        if type(each.default) is bool:
            fits = type(value) is bool
        else:
            fits = (may_be_none and value is None) or (type(value) is int and value >= least)
        if not fits:
            raise ValueError("not tiles")
    return made
