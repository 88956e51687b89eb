"""Which tiles a target's products have: those of its format and sizes, as they fit the card."""

from __future__ import annotations

from dataclasses import replace

from ....commands import WeightFormat
from ....layer_config import MoeConfig
from ...toolchain.card import Card
from ...weights.kinds import PACKED
from .tiles import PLAIN_TILES, FormatTiles, Sizes, TargetTiles, on_card


def tiles_of(weights: WeightFormat) -> FormatTiles:
    return PLAIN_TILES if weights == "bf16" else PACKED[weights].tiles


def bits_of(weights: WeightFormat) -> int:
    return 16 if weights == "bf16" else PACKED[weights].bits


def plain_choices(weights: WeightFormat) -> tuple[str, ...]:
    """The fields of ``TargetTiles`` whose weights are bf16 in targets of this format."""
    experts_only = weights != "bf16" and PACKED[weights].experts_only
    return ("head", "router", "qkv", "output") if experts_only else ("head", "router")


def target_tiles(
    moe: MoeConfig | None, card: Card, weights: WeightFormat = "bf16", sizes: Sizes | None = None
) -> TargetTiles:
    """The tiles in use on a card for a target with these experts, or without, whose weights have a format. ``sizes``:
    None for any."""
    measured = tiles_of(weights)
    tiles = measured.dense if moe is None else measured.experts
    assert tiles is not None, f"no dense target is {weights}"
    if sizes is not None:
        tiles = measured.of_sizes.get(sizes, tiles)
    if sizes is not None and moe is not None:
        used = -(-sizes[0] // tiles.router.depth)  # further splits would add nothing, exactly
        tiles = replace(tiles, router=replace(tiles.router, splits=min(used, tiles.router.splits)))
    return on_card(tiles, card, bits_of(weights), plain_choices(weights), packed=weights != "bf16")


def tiles_of_plain(
    tiles: TargetTiles, moe: MoeConfig | None, card: Card, weights: WeightFormat, sizes: Sizes
) -> TargetTiles:
    """The tiles for those layers that a target, with these ``tiles`` for its format, holds in bf16."""
    if "qkv" in plain_choices(weights):
        return tiles
    return with_splits_of(tiles, target_tiles(moe, card, "bf16", sizes))


def with_splits_of(tiles: TargetTiles, others: TargetTiles) -> TargetTiles:
    """``others`` with the splits of ``tiles``: layers of two formats leave their sums in one place."""
    return replace(
        others,
        output=replace(others.output, splits=tiles.output.splits),
        down=replace(others.down, splits=tiles.down.splits),
    )
