"""How the small-row kernels cut their work: one frozen choice per operation, for a bench to sweep. It changes speed and
the order of sums, and holds for every width, so that a row's bits don't depend on the others."""

from __future__ import annotations

from dataclasses import dataclass

from ...layer_config import MoeConfig


@dataclass(frozen=True, slots=True)
class Tiles:
    """Tile of a product with a weight [columns of the result, depth]."""

    columns: int
    """Weight rows per program; twice as many where a program reads a gate tile and its up tile."""
    depth: int
    """Weight columns per step of the loop."""
    splits: int = 1
    """Programs that share one column tile, each with its part of the depth; their sums are added in order later."""
    warps: int = 4
    stages: int = 4
    """Steps whose tiles a program holds or waits for at a time."""
    programs: int = 528
    """Experts only: how many programs share the tiles of the experts that run."""
    registers: int | None = None
    """The most that a thread may have: with fewer more programs run at once. None: as many as the compiler likes."""

    @property
    def ahead(self) -> int:
        """How many steps before it multiplies them a program asks for tiles."""
        return self.stages - 1


@dataclass(frozen=True, slots=True)
class RowTiles:
    """Tile of an operation on whole rows: a program per row."""

    warps: int = 8
    """With more, adding up a row's parts among them takes longer than reading it with fewer (MEASUREMENTS.md)."""

    @property
    def options(self) -> dict[str, int]:
        """For a launch. Left alone, the compiler may give a thread more registers than so many threads can have."""
        return {"num_warps": self.warps, "maxnreg": min(255, 65536 // (32 * self.warps))}


ROW_TILES = RowTiles()


@dataclass(frozen=True, slots=True)
class TargetTiles:
    """The choices for one target; these for 26B-A4B. What they aim at is in DECISIONS.md: 40 KB or more on their way to
    each of 132 multiprocessors, all programs of a launch resident at once."""

    qkv: Tiles = Tiles(columns=32, depth=128, stages=5)
    output: Tiles = Tiles(columns=32, depth=128, splits=4, warps=2, stages=4)
    gate_up: Tiles = Tiles(columns=16, depth=256)
    """Of the experts' models 132 programs, each with whole sums: one for each multiprocessor."""
    router: Tiles = Tiles(columns=32, depth=256, splits=11)
    """One step each. As deep as those of gate and up, whose rows' layout would decide that of the scores otherwise."""
    down: Tiles = Tiles(columns=32, depth=64, splits=3, stages=6)
    expert_gate_up: Tiles = Tiles(columns=32, depth=128, stages=4, programs=396)
    expert_gate_up_alone: Tiles = Tiles(columns=32, depth=128, warps=2, stages=3, programs=396)
    """For passes of one row. Only splits and depth decide the order of sums, so the bits are the same."""
    expert_down: Tiles = Tiles(columns=64, depth=64, warps=2, stages=4)
    head: Tiles = Tiles(columns=64, depth=128, stages=4)
    rows: RowTiles = ROW_TILES


DENSE_TARGET = TargetTiles(
    qkv=Tiles(columns=32, depth=128),
    output=Tiles(columns=32, depth=128, splits=2),
    gate_up=Tiles(columns=32, depth=128),
    down=Tiles(columns=32, depth=128, splits=4),
)
"""For targets without experts, whose dense layers are several times larger."""


def target_tiles(moe: MoeConfig | None) -> TargetTiles:
    """The tiles in use for a target with these experts, or without."""
    return DENSE_TARGET if moe is None else TargetTiles()


@dataclass(frozen=True, slots=True)
class DraftTiles:
    """The choices for a drafter."""

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
    context=Tiles(columns=32, depth=256, splits=6),
    context_kv=Tiles(columns=32, depth=256),
    qkv=Tiles(columns=32, depth=256, stages=5),
    output=Tiles(columns=32, depth=256, splits=4),
    gate_up=Tiles(columns=32, depth=256),
    down=Tiles(columns=32, depth=256, splits=2, stages=5),
)
"""Steps twice as deep: as many bytes on their way."""


def draft_tiles(in_8_bits: bool) -> DraftTiles:
    """The tiles in use for a drafter whose weights are read in 8 bits, or in 16."""
    return DRAFT_TILES_IN_8_BITS if in_8_bits else DRAFT_TILES
