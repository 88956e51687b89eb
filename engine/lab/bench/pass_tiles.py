"""All choices that a pair's passes run by, what stands around each of them, and the file that holds what was found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from ...kernels.decode.attend_tiles import AttendTiles, FullTiles, WindowTiles, tiles_of_source, use_tiles
from ...kernels.decode.tiles import DraftTiles, RowTiles, TargetTiles, Tiles
from ...kernels.decode.trials import Trial
from ...kernels.toolchain.card import Card
from ...layer_config import AttentionConfig
from ...measured.tiles import neighbours, read_choice, with_choice

Kind = Literal["one", "sixteen", "draft"]
"""Passes that are timed: of the target's one row and sixteen, and a draft."""
AnyTiles = Tiles | RowTiles | AttendTiles

LEAST_SPLIT, MOST_SPLIT, LEAST_KEYS = 32, 256, 16
ROW_WARPS = (4, 8, 16)
EARLY_STEPS = (1, 2, 0)
REGISTERS = (None, 168, 128, 96)
NEVER_ASKED = ("head", "router", "expert_gate_up", "expert_gate_up_alone")
"""Products that ask for nothing before they wait."""
NEVER_TURNED = ("head", "router", "expert_gate_up_alone")
"""Products whose programs all begin at the same place of the depth, or where those of sixteen rows do."""
OF_THE_FORMAT = ("pairs", "shared")
"""What no search changes: it follows from the weights' format."""
ROUTER: Trial[Any] = Trial(lambda _tiles: [], splits=True)
"""Of a router that stands alone."""


@dataclass(frozen=True, slots=True)
class PassTiles:
    """The choices for one pair."""

    target: TargetTiles
    drafter: DraftTiles | None = None
    window: WindowTiles | None = None
    """For heads of the target's layers with a window."""
    full: FullTiles | None = None
    """For those of its layers without."""

    def take_effect(self, layers: tuple[AttentionConfig, ...]) -> None:
        """Attention's, for what is built from now on; passes are told of the others."""
        for layer in layers:
            tiles = self.full if layer.window is None else self.window
            if tiles is not None:
                use_tiles(layer.head_dim, tiles)


def with_attention(tiles: PassTiles, layers: tuple[AttentionConfig, ...]) -> PassTiles:
    """With what the target's layers attend by."""
    for layer in layers:
        found = tiles_of_source(layer)
        tiles = replace(tiles, window=found) if isinstance(found, WindowTiles) else replace(tiles, full=found)
    return tiles


@dataclass(frozen=True, slots=True)
class Knob:
    """One choice among those of a pair."""

    owner: Literal["target", "drafter", ""]
    name: str
    trial: Trial[Any] | None
    """Of a product: what may be changed."""

    def of(self, tiles: PassTiles) -> AnyTiles:
        chosen: AnyTiles = getattr(getattr(tiles, self.owner) if self.owner else tiles, self.name)
        return chosen

    def kinds(self) -> tuple[Kind, ...]:
        """The passes that it decides."""
        if self.owner == "drafter":
            return ("draft",)
        return ("one",) if self.name == "expert_gate_up_alone" else ("one", "sixteen")

    def put(self, tiles: PassTiles, chosen: AnyTiles, card: Card) -> PassTiles:
        """With another choice, and what must follow from it."""
        if not self.owner:
            changed: dict[str, Any] = {self.name: chosen}
            return replace(tiles, **changed)
        whose: Any = getattr(tiles, self.owner)
        if isinstance(chosen, Tiles) and self.name == "expert_gate_up_alone" and self.trial is not None:
            beside = tiles.target.expert_gate_up  # a row alone takes steps as deep
            warps = chosen.warps if self.trial.warps else beside.warps
            chosen = replace(chosen, depth=beside.depth, turned=beside.turned, warps=warps)
        if isinstance(chosen, Tiles) and self.trial is not None:
            made = with_choice(whose, self.name, chosen, self.trial, card)
            if self.name == "expert_gate_up" and made.expert_gate_up_alone.depth != whose.expert_gate_up_alone.depth:
                # As many stages as before would be as many times the memory, or the registers.
                made = replace(made, expert_gate_up_alone=replace(made.expert_gate_up_alone, stages=chosen.stages))
            changed = {self.owner: made}
        else:
            changed = {self.owner: replace(whose, **{self.name: chosen})}
        return replace(tiles, **changed)

    def around(self, chosen: AnyTiles, card: Card, depth: int) -> list[AnyTiles]:
        """Other choices to try from one, those first that may change most. ``depth``: of the router's product."""
        found: list[AnyTiles] = []
        if isinstance(chosen, RowTiles):
            found += [replace(chosen, warps=warps) for warps in ROW_WARPS]
        elif isinstance(chosen, WindowTiles):
            found += _windows(chosen)
        elif isinstance(chosen, FullTiles):
            found += _fulls(chosen, card)
        elif self.name == "router" and self.trial is ROUTER:
            found += _routers(chosen, depth)
        else:
            assert self.trial is not None
            if self.name not in NEVER_TURNED:
                found.append(replace(chosen, turned=not chosen.turned))
            found += [*_shared_depths(chosen, self.trial, card), *neighbours(chosen, self.trial, card)]
            found += [replace(chosen, registers=most) for most in REGISTERS]
            if self.name not in NEVER_ASKED and not self.trial.packed:
                found += [replace(chosen, early=steps) for steps in EARLY_STEPS]
        return [each for each in dict.fromkeys(found) if each != chosen]


def _shared_depths(chosen: Tiles, trial: Trial[Any], card: Card) -> Iterator[Tiles]:
    """Packed weights: warps share a step's depth, so that a long depth is walked through in few steps only if there are
    more of them."""
    if trial.bits == 16 or not (trial.depth and trial.warps):
        return
    for warps in (8, 4):
        for each in (64, 32) if trial.bits == 8 else (64, 128):
            for stages in (3, 4):
                for registers in (128, None):
                    made = replace(chosen, depth=warps * each, warps=warps, stages=stages, registers=registers)
                    if trial.fits(made, card):
                        yield made


def _routers(chosen: Tiles, depth: int) -> Iterator[Tiles]:
    """One step or two for each program."""
    for step in (256, 128, 512, 64):
        for steps in (1, 2):
            yield replace(chosen, depth=step, splits=-(-depth // (step * steps)))
    yield from (replace(chosen, columns=columns) for columns in (16, 64))
    yield from (replace(chosen, warps=warps) for warps in (2, 8))
    yield from (replace(chosen, stages=stages) for stages in (2, 3))


def _windows(chosen: WindowTiles) -> Iterator[WindowTiles]:
    for split in (chosen.split // 2, 2 * chosen.split):
        if LEAST_SPLIT <= split <= MOST_SPLIT:
            yield replace(chosen, split=split)
    for warps, registers in ((4, 255), (8, 128), (8, 255)):
        yield replace(chosen, warps=warps, registers=registers)
    yield from (replace(chosen, rows=rows) for rows in (16, 32))
    yield from (replace(chosen, added=added) for added in (4096, 2048, 1024))


def _fulls(chosen: FullTiles, card: Card) -> Iterator[FullTiles]:
    for split in (chosen.split // 2, 2 * chosen.split):
        if LEAST_SPLIT <= split <= MOST_SPLIT:
            yield replace(chosen, split=split, keys=min(chosen.keys, split))
    for keys in (chosen.keys // 2, 2 * chosen.keys):
        if LEAST_KEYS <= keys <= chosen.split:
            yield replace(chosen, keys=keys)
    yield from (replace(chosen, rows=rows, warps=rows // 16) for rows in (64, 128))
    yield from (replace(chosen, stages=stages) for stages in (2, 3, 4))
    yield from (replace(chosen, programs=programs) for programs in (132, 264, 528))


# --- files


def as_data(tiles: PassTiles) -> dict[str, Any]:
    return asdict(tiles)


def read_tiles(file: Path, now: PassTiles) -> PassTiles:
    """The choices that a file of ``engine.lab.bench tiles`` holds (``ValueError``: it holds none); those that it lacks
    stay as they are."""
    try:
        held = json.loads(file.read_text("utf-8"))["tiles"]
        return PassTiles(
            _group(TargetTiles, held["target"], now.target),
            now.drafter if now.drafter is None else _group(DraftTiles, held["drafter"] or {}, now.drafter),
            read_choice(WindowTiles, held["window"]) if held["window"] else now.window,
            read_choice(FullTiles, held["full"]) if held["full"] else now.full,
        )
    except (OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{file} holds no tiles: {error}") from error


def _group(kind: type[Any], held: Mapping[str, Mapping[str, int | None]], now: Any) -> Any:
    known = {each.name for each in fields(kind)}
    if set(held) - known:
        raise ValueError(f"unknown choices {sorted(set(held) - known)}")
    choices = {name: parts for name, parts in held.items() if name not in OF_THE_FORMAT}
    kinds = {name: RowTiles if name == "rows" else Tiles for name in choices}
    return replace(now, **{name: read_choice(kinds[name], parts) for name, parts in choices.items()})


def source_lines(tiles: TargetTiles | DraftTiles) -> str:
    """As the tables in ``kernels/decode/tiles.py`` have it: what differs from the class's own choices."""
    kind, whole = type(tiles), type(tiles)()
    changed = [each.name for each in fields(kind) if getattr(tiles, each.name) != getattr(whole, each.name)]
    lines = "".join(f"    {name}={_written(getattr(tiles, name))},\n" for name in changed)
    return f"{kind.__name__}(\n{lines})" if lines else f"{kind.__name__}()"


def _written(chosen: Any) -> str:
    if isinstance(chosen, int):
        return str(chosen)
    plain = {each.name: each.default for each in fields(chosen)}
    parts = [f"{name}={value}" for name, value in asdict(chosen).items() if value != plain[name]]
    return f"{type(chosen).__name__}({', '.join(parts)})"
