"""The lanes of a race: ways to decode one question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.commands import AUTO, METHODS, NO_DRAFTER, BlockSize, DraftBy, GenerationSettings, Method

ALONE = "one token at a time"
LOOKUP = "lookup"


@dataclass(frozen=True, slots=True)
class Lane:
    """One way to decode the question."""

    name: str
    settings: GenerationSettings
    side: int = 0
    """Which of the race's engines and servers runs it."""


KINDS: dict[str, str] = {**dict(METHODS.items()), LOOKUP: "Lookup"}
"""Kinds of drafters, for people: some are asked for by them."""
CALLED: dict[str, Method] = {
    "assistant": "mtp", "eagle3": "eagle3", "dspark": "dspark", "dspine": "dspine", "dflash2": "dflash2",
}  # fmt: skip
"""What the names of published drafters hold, by which a drafter's method is told before it is loaded."""


def kind_of(drafter: str | None) -> str:
    """The kind of a drafter, as one of ``KINDS``, by how published ones are called."""
    if drafter is None or drafter in KINDS:
        return drafter or "dflash"
    called = drafter.rstrip("/").rpartition("/")[2].lower()
    return next((method for word, method in CALLED.items() if word in called), "dflash")


def block_name(size: BlockSize, drafter: str = "dflash") -> str:
    name = KINDS.get(drafter, drafter)
    return f"{name}, auto" if size == AUTO else f"{name}, block {size}"


def lanes_for(
    settings: GenerationSettings, block_sizes: Sequence[BlockSize], drafter: str = "dflash"
) -> tuple[Lane, ...]:
    """The target alone, then with its drafter at each block size. Raises ``ValueError`` for one out of range."""
    alone = Lane(ALONE, replace(settings, speculation=False))
    drafting = (
        Lane(block_name(size, drafter), replace(settings, speculation=True, block_size=size)) for size in block_sizes
    )
    return (alone, *drafting)


def lanes_of(
    settings: GenerationSettings, block_sizes: Sequence[BlockSize], drafters: Sequence[str]
) -> tuple[tuple[Lane, ...], tuple[str, ...]]:
    """A lane for each of these drafters and block sizes, each by itself, the target alone (``none``) first; and the
    drafters of the sides that they run on. ``lookup`` needs no side of its own, as the target alone doesn't. Raises
    ``ValueError`` for fewer than two lanes, or one that is named twice."""
    sides = tuple(each for each in drafters if each not in (NO_DRAFTER, LOOKUP)) or (NO_DRAFTER,)
    lanes = [Lane(ALONE, replace(settings, speculation=False))] if NO_DRAFTER in drafters else []
    for drafter in (each for each in drafters if each != NO_DRAFTER):
        by: DraftBy = "lookup" if drafter == LOOKUP else "drafter"
        side = 0 if drafter == LOOKUP else sides.index(drafter)
        for size in block_sizes:
            lane = replace(settings, speculation=True, block_size=size, draft_by=by)
            lanes.append(Lane(block_name(size, drafter), lane, side))
    if len(set(drafters)) < len(drafters) or len(lanes) < 2:
        raise ValueError(f"a race needs two lanes or more, each once, not {','.join(drafters)}")
    return tuple(lanes), sides


def lanes_against(
    settings: GenerationSettings, block_sizes: Sequence[BlockSize], servers: Sequence[str], drafter: str = "dflash"
) -> tuple[Lane, ...]:
    """A lane for each block size on the engine, if there are any, and one for each server, by its name."""
    own = [Lane(block_name(size, drafter), replace(settings, block_size=size)) for size in block_sizes]
    others = [Lane(name, settings, side) for side, name in enumerate(servers, start=1 if own else 0)]
    return (*own, *others)
