"""How the small-row kernels are cut: one frozen choice for each operation, which a bench may sweep. It changes speed
and the order of sums, and holds for every width, so that a row's bits don't depend on the others. The choices here were
measured on Hopper; ``on_card`` adapts them to another card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from ...toolchain.card import HOPPER, Card
from ...toolchain.jit import MAX_ROWS

RESIDENT = 2
"""How many programs of a product a multiprocessor holds, at least: while one waits for its next tiles, the other
multiplies."""
LEAST_STAGES = 2


def most_registers(warps: int) -> int:
    """The most registers that a thread has in a program of ``warps`` warps. Launches that leave it open may get more;
    or far fewer than there are, and then instructions wait for one another: a step of INT4's former loop 425 cycles in
    place of 307 (MEASUREMENTS.md)."""
    return min(255, 65536 // (32 * warps))


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tile of a product with a weight [columns of the result, depth]."""

    columns: int
    """Weight rows per program; twice as many where a program reads a gate tile and its up tile."""
    depth: int
    """Weight columns per step of the loop."""
    splits: int = 1
    """Programs that share one column tile, each with its part of the depth; their sums are added in order later."""
    warps: int = 4
    stages: int = 4
    """How many steps' tiles a program holds or waits for at a time."""
    programs: int = 528
    """Experts only: how many programs share the tiles of the experts that run."""
    registers: int | None = None
    """The most registers of a thread: with fewer, more programs run at once. None: all that this many warps can
    have."""
    early: int | None = None
    """How many steps' tiles a launch prefetches into L2 before it waits; None for none. Packed weights don't need it:
    their first tiles are loaded into registers by then."""
    turned: bool = False
    """Whether programs begin at other depths than those of columns further on: see ``tile_shape.place_of``."""
    copied: int | None = None
    """The stages of a row alone that is multiplied by a weight in bf16, if its first steps' tiles are copied into
    shared memory before the launch waits, in place of what is ``early``: see ``toolchain/early_copies.py``. None: a row
    alone is launched as sixteen are."""

    @property
    def ahead(self) -> int:
        """How many steps before it multiplies them a program loads tiles."""
        return self.stages - 1

    @property
    def options(self) -> dict[str, int]:
        """Keyword arguments of a kernel's launch."""
        registers = most_registers(self.warps) if self.registers is None else self.registers
        return {"num_warps": self.warps, "num_stages": self.stages, "maxnreg": registers}

    def shared_memory(self, weight_tiles: int = 1, bits: int = 16) -> int:
        """Bytes that a program loads at a time: ``weight_tiles`` tiles of a weight of ``bits`` for each step, and the
        tile of the rows, in 16 bits. Tiles of packed weights are in registers, which are as many on every card."""
        return self.ahead * self.depth * (weight_tiles * self.columns * bits + MAX_ROWS * 16) // 8


@dataclass(frozen=True, slots=True)
class RowTiles:
    """The tile of an operation on whole rows: a program for each row."""

    warps: int = 8
    """With more, adding up a row's parts among them takes longer than reading it with fewer (MEASUREMENTS.md)."""

    @property
    def options(self) -> dict[str, int]:
        """Keyword arguments of a kernel's launch."""
        return {"num_warps": self.warps, "maxnreg": most_registers(self.warps)}


ROW_TILES = RowTiles()


@dataclass(frozen=True, slots=True)
class TargetTiles:
    """The choices for one target; the defaults are for 26B-A4B. DECISIONS.md says what they aim at: 40 KB or more under
    way to each of 132 multiprocessors, all programs of a launch resident at once."""

    qkv: Tiles = Tiles(columns=32, depth=128, stages=5, early=1)
    output: Tiles = Tiles(columns=32, depth=128, splits=4, warps=2, stages=4)
    gate_up: Tiles = Tiles(columns=16, depth=256, early=1)
    """For a dense MLP beside experts: 132 programs, one for each multiprocessor, each with whole sums."""
    router: Tiles = Tiles(columns=32, depth=256, splits=11)
    """One step in each. In bf16 as deep as those of gate and up, whose layout of rows would otherwise decide that of
    the scores; rows of packed weights have a layout of their own."""
    down: Tiles = Tiles(columns=64, depth=64, splits=3, stages=6)
    expert_gate_up: Tiles = Tiles(columns=32, depth=128, stages=4, programs=396)
    expert_gate_up_alone: Tiles = Tiles(columns=32, depth=128, warps=2, stages=3, programs=396)
    """The experts' first product in passes of one row. Its bits are those of ``expert_gate_up``: only splits and depth
    decide the order of sums."""
    expert_down: Tiles = Tiles(columns=64, depth=64, warps=2, early=1)
    head: Tiles = Tiles(columns=64, depth=128, stages=4)
    rows: RowTiles = ROW_TILES
    pairs: int = MAX_ROWS
    """How many pairs of an expert a program multiplies at a time. With packed weights 8: half the products, with the
    same bits, but an expert with more pairs is read twice."""
    lets_go: bool = False
    """Whether attention behind a window, of a row alone, lets the output's programs start as soon as it has its inputs.
    They gather on the multiprocessors that are free, which pays where they ask for much before they wait."""
    shared: int | None = None
    """Kilobytes of a multiprocessor's memory that programs share, if not all: see ``toolchain/memory_split.py``."""


DENSE_TARGET = TargetTiles(
    qkv=Tiles(columns=32, depth=128),
    output=Tiles(columns=32, depth=128, splits=2),
    gate_up=Tiles(columns=32, depth=128),
    down=Tiles(columns=32, depth=128, splits=4),
)
"""For targets without experts, whose dense layers are several times larger."""


SHARED_WITH_PACKED = 132
"""Kilobytes, of a multiprocessor's 228, that programs share beside packed weights: room for one program of a window's
attention, or two of the head."""
PACKED_DENSE_TARGET = TargetTiles(
    qkv=Tiles(columns=32, depth=512, warps=8, stages=3, registers=128),
    output=Tiles(columns=32, depth=512, splits=2, warps=8, stages=3, registers=128),
    gate_up=Tiles(columns=16, depth=512, warps=8, stages=3, registers=128),
    down=Tiles(columns=32, depth=512, splits=4, warps=8, stages=3, registers=128),
    shared=SHARED_WITH_PACKED,
)
"""For packed targets without experts: set by analogy, nobody has timed them."""
Sizes = tuple[int, int]
"""A target's hidden size, and that between a layer's feed-forward products: of an expert, where there are any."""


@dataclass(frozen=True, slots=True)
class FormatTiles:
    """The tiles in use for targets in one format. For packed weights a warp takes 64 of the depth, so that a thread
    reads 8 bytes at once in INT4, 16 in FP8, and 16 warps with 128 registers each fill a multiprocessor."""

    experts: TargetTiles
    dense: TargetTiles | None = None
    """For targets without experts; None where nobody publishes any."""
    of_sizes: Mapping[Sizes, TargetTiles] = field(default_factory=dict)
    """What a search in whole passes found for targets of these sizes; used in place of the others."""


PLAIN_TILES = FormatTiles(
    experts=TargetTiles(),
    dense=DENSE_TARGET,
    of_sizes={
        (2816, 704): TargetTiles(  # 26B-A4B
            qkv=Tiles(columns=32, depth=128, stages=5, early=1, copied=5),
            output=Tiles(columns=32, depth=128, splits=4, warps=2, early=1, copied=5),
            lets_go=True,
        ),
        (3840, 15360): replace(DENSE_TARGET, qkv=Tiles(columns=32, depth=128, copied=4)),  # Gemma 4 12B
        (5376, 21504): replace(DENSE_TARGET, qkv=Tiles(columns=32, depth=128, copied=4)),  # Gemma 4 31B
        (4096, 14336): TargetTiles(  # Llama-3.1-8B
            qkv=Tiles(columns=64, depth=256, early=1, turned=True),
            output=Tiles(columns=64, depth=256, splits=2),
            gate_up=Tiles(columns=32, depth=128, warps=2, stages=3),
            down=Tiles(columns=64, depth=128, splits=4, warps=2, early=1),
        ),
        (4096, 12288): TargetTiles(  # Qwen3-8B
            qkv=Tiles(columns=64, depth=256, early=1),
            output=Tiles(columns=64, depth=128, splits=2, stages=5),
            gate_up=Tiles(columns=32, depth=128, warps=2, early=1),
            down=Tiles(columns=64, depth=128, splits=4, stages=5, early=1, turned=True),
        ),
        (2048, 768): TargetTiles(  # Qwen3-Coder-30B-A3B
            qkv=Tiles(columns=64, depth=256, stages=5, early=1),
            output=Tiles(columns=32, depth=256, splits=4, warps=2, early=1),
            router=Tiles(columns=32, depth=256, splits=8),
            expert_gate_up=Tiles(columns=128, depth=128, programs=396),
            expert_gate_up_alone=Tiles(columns=64, depth=128, programs=264),
            expert_down=Tiles(columns=128, depth=128, stages=5, early=1),
            rows=RowTiles(warps=16),
        ),
        (2048, 512): TargetTiles(  # Qwen3.5-35B-A3B, Qwen3-Coder-Next
            output=Tiles(columns=32, depth=128, splits=4, warps=2, stages=5, early=1),
            gate_up=Tiles(columns=16, depth=128, stages=5, early=1),
            down=Tiles(columns=32, depth=128, splits=3),
            expert_gate_up_alone=Tiles(columns=32, depth=128),
            expert_down=Tiles(columns=128, depth=128, stages=5, early=1),
        ),
    },
)
"""The tiles of targets in bf16."""


@dataclass(frozen=True, slots=True)
class DraftTiles:
    context: Tiles = Tiles(columns=32, depth=128, splits=8)
    """The product of the features, whose depth is several hidden sizes."""
    context_kv: Tiles = Tiles(columns=32, depth=128)
    qkv: Tiles = Tiles(columns=32, depth=128)
    output: Tiles = Tiles(columns=32, depth=128, splits=4, warps=2)
    gate_up: Tiles = Tiles(columns=32, depth=128, warps=2)
    down: Tiles = Tiles(columns=32, depth=128, splits=4, warps=2)
    head: Tiles = Tiles(columns=64, depth=128, stages=3)


DRAFT_TILES = DraftTiles()
DRAFT_TILES_IN_8_BITS = DraftTiles(
    context=Tiles(columns=32, depth=128, splits=6, warps=2, stages=5),
    context_kv=Tiles(columns=32, depth=256, stages=3),
    qkv=Tiles(columns=32, depth=128, warps=2, stages=5, early=2),
    output=Tiles(columns=32, depth=256, splits=4, early=1),
    gate_up=Tiles(columns=32, depth=256, early=1),
    down=Tiles(columns=32, depth=128, splits=4, warps=2, stages=5, early=2),
    head=Tiles(columns=64, depth=256, stages=3),
)
"""Drafter tiles for weights in 8 bits. Steps are twice as deep as for 16, so that as many bytes are under way."""


DRAFTS_MEASURED_AT: dict[tuple[bool, Sizes], DraftTiles] = {
    (True, (5376, 10752)): DraftTiles(  # Gemma 4 31B's, which were not looked for
        context=Tiles(columns=32, depth=256, splits=6),
        context_kv=Tiles(columns=32, depth=256),
        qkv=Tiles(columns=32, depth=256, stages=5),
        output=Tiles(columns=32, depth=256, splits=4, early=1),
        gate_up=Tiles(columns=32, depth=256, early=1),
        down=Tiles(columns=32, depth=256, splits=2, stages=5, early=1),
        head=Tiles(columns=64, depth=128, stages=5),
    ),
    (True, (4096, 14336)): DraftTiles(  # Llama-3.1-8B's
        context=Tiles(columns=32, depth=256, splits=3, early=2),
        context_kv=Tiles(columns=32, depth=256),
        qkv=Tiles(columns=64, depth=256, stages=5, turned=True),
        output=Tiles(columns=32, depth=128, splits=4, warps=2, stages=5, early=1),
        gate_up=Tiles(columns=32, depth=128, stages=3, early=1, turned=True),
        down=Tiles(columns=64, depth=256, splits=2, stages=5, early=1, turned=True),
        head=Tiles(columns=64, depth=256, stages=3),
    ),
    (True, (4096, 12288)): DraftTiles(  # Qwen3-8B's
        context=Tiles(columns=32, depth=128, splits=6, stages=3),
        context_kv=Tiles(columns=32, depth=256),
        qkv=Tiles(columns=32, depth=128, warps=2, stages=5, early=2),
        output=Tiles(columns=32, depth=256, splits=4, early=1),
        gate_up=Tiles(columns=64, depth=128, early=1),
        down=Tiles(columns=64, depth=256, splits=2, stages=5, early=1, turned=True),
        head=Tiles(columns=64, depth=256, stages=3),
    ),
    (True, (2048, 6144)): DraftTiles(  # Qwen3-Coder-30B-A3B's
        context=Tiles(columns=32, depth=128, splits=6, early=1),
        context_kv=Tiles(columns=32, depth=256),
        qkv=Tiles(columns=64, depth=256, early=1),
        output=Tiles(columns=32, depth=256, splits=4, warps=2, stages=6, early=1),
        gate_up=Tiles(columns=32, depth=128, warps=2, stages=5, early=1),
        down=Tiles(columns=32, depth=256, splits=4, stages=5, early=2, turned=True),
        head=Tiles(columns=64, depth=128, stages=5),
    ),
    (True, (2880, 7680)): DraftTiles(  # gpt-oss-20b's
        context=Tiles(columns=32, depth=128, splits=6),
        context_kv=Tiles(columns=32, depth=256),
        qkv=Tiles(columns=32, depth=128, warps=2, stages=5, early=2),
        output=Tiles(columns=32, depth=256, splits=4, stages=3, early=1),
        gate_up=Tiles(columns=32, depth=128, stages=5, early=2),
        down=Tiles(columns=32, depth=256, splits=4, registers=128, early=1),
        head=Tiles(columns=64, depth=256, stages=3),
    ),
}
"""What a search in whole passes found for drafters of these sizes, or what they were timed with; by whether they are
read in 8 bits."""


def draft_tiles(in_8_bits: bool, card: Card, sizes: Sizes | None = None) -> DraftTiles:
    """The tiles in use on a card for a drafter whose weights are read in 8 bits, or in 16."""
    tiles = DRAFT_TILES_IN_8_BITS if in_8_bits else DRAFT_TILES
    if sizes is not None:
        tiles = DRAFTS_MEASURED_AT.get((in_8_bits, sizes), tiles)
    return on_card(tiles, card, bits=8 if in_8_bits else 16)


AllTiles = TypeVar("AllTiles", TargetTiles, DraftTiles)


def on_card(tiles: AllTiles, card: Card, bits: int = 16, plain: Sequence[str] = (), packed: bool = False) -> AllTiles:
    """The same choices adapted to another card, for weights of ``bits``, ``packed`` or not, except those fields that
    are ``plain``. The order of sums stays. Nothing starts as early as only measuring allows (``lets_go``)."""
    if card.was_measured:
        return tiles
    fit = {
        name: with_programs(choice, card)
        if packed and name not in plain
        else fitted(choice, card, 2 if "gate_up" in name else 1, 16 if name in plain else bits)
        for name, choice in products_of(tiles).items()
    }
    if "router" in fit:  # it runs beside gate and up, with their number of stages
        router_tiles = fitted(replace(fit["router"], stages=fit["gate_up"].stages), card)
        fit["gate_up"] = replace(fit["gate_up"], stages=router_tiles.stages)
    changed: dict[str, Any] = {**fit, "lets_go": False} if isinstance(tiles, TargetTiles) else fit
    return replace(tiles, **changed)


def with_least_memory(tiles: AllTiles) -> AllTiles:
    """The same choices with as few stages as a loop can have, of one row and of sixteen, for where more don't run. The
    order of sums stays."""
    changed: dict[str, Any] = {
        name: replace(each, stages=LEAST_STAGES, copied=None) for name, each in products_of(tiles).items()
    }
    return replace(tiles, **changed)


def products_of(tiles: TargetTiles | DraftTiles) -> dict[str, Tiles]:
    choices = {each.name: getattr(tiles, each.name) for each in fields(tiles)}
    return {name: choice for name, choice in choices.items() if isinstance(choice, Tiles)}


def fitted(tiles: Tiles, card: Card, weight_tiles: int = 1, bits: int = 16) -> Tiles:
    """The tiles with fewer stages, until a multiprocessor holds two programs; programs that share tiles become as many
    for each multiprocessor as on Hopper, if they fit. Nothing is ``copied`` where nobody measured it."""
    tiles = replace(tiles, copied=None)
    while tiles.stages > LEAST_STAGES and card.programs_of(tiles.shared_memory(weight_tiles, bits)) < RESIDENT:
        tiles = replace(tiles, stages=tiles.stages - 1)
    return with_programs(tiles, card, max(1, card.programs_of(tiles.shared_memory(weight_tiles, bits))))


def with_programs(tiles: Tiles, card: Card, most: int | None = None) -> Tiles:
    """The tiles with as many of the programs that share tiles, for each multiprocessor, as on Hopper, or the most that
    fit."""
    wanted = max(1, tiles.programs // HOPPER.multiprocessors)
    return replace(tiles, programs=card.multiprocessors * (wanted if most is None else min(wanted, most)))
