"""Tiles follow what a card has, and on the cards they were measured on they are those of the source."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.kernels.decode.attention.attend_tiles import FULL_TILES, WINDOW_TILES, attend_tiles
from engine.kernels.decode.tiling.target_tiles import target_tiles, tiles_of
from engine.kernels.decode.tiling.tiles import (
    DRAFT_TILES,
    DRAFT_TILES_IN_8_BITS,
    draft_tiles,
)
from engine.kernels.prefill.attention import ChunkTiles, chunk_tiles
from engine.kernels.prefill.products import MOST_ROWS, SHORT, many_tiles
from engine.kernels.toolchain import card as cards
from engine.kernels.toolchain.card import HOPPER, REPRESENTATIVES, Card, card_of, representative, stand_in
from engine.kernels.weights.kinds import MAKERS
from engine.layer_config import MoeConfig
from engine.models.attention_backends import TRITON
from tests.proofs.kernels.test_row_attention import LAYERS

MEASURED = {
    (weights, experts): tiles
    for weights in MAKERS
    for experts, tiles in ((True, tiles_of(weights).experts), (False, tiles_of(weights).dense))
    if tiles is not None
}
MOE = MoeConfig(num_experts=128, top_k=8, intermediate_size=704)
SIZES = (128, 256, 512)


def test_measured_cards_have_the_tiles_of_the_source() -> None:
    for (weights, experts), tiles in MEASURED.items():
        assert target_tiles(MOE if experts else None, HOPPER, weights) == tiles
    assert draft_tiles(False, HOPPER) == DRAFT_TILES and draft_tiles(True, HOPPER) == DRAFT_TILES_IN_8_BITS
    for size in SIZES:
        window, full = (replace(layer, head_dim=size) for layer in (LAYERS["sliding"], LAYERS["full"]))
        assert attend_tiles(full, 4096, HOPPER) == FULL_TILES[size]
        if size in WINDOW_TILES:
            assert attend_tiles(window, 4096, HOPPER) == WINDOW_TILES[size]
    chunks = [chunk_tiles(size, HOPPER) for size in SIZES]
    assert chunks == [ChunkTiles(64, 64, 4, 3), ChunkTiles(128, 64, 8, 2), ChunkTiles(128, 32, 8, 2)]


@pytest.mark.parametrize("card", REPRESENTATIVES, ids=lambda card: f"sm_{card.capability}")
@pytest.mark.parametrize("experts", [0, 32, 128])
def test_products_of_many_rows_fit_a_card_and_have_two_kinds_of_machine_code(card: Card, experts: int) -> None:
    """Which are compiled ahead: a short piece's and the longest's."""
    for columns, depth in ((8192, 2816), (9216, 2816), (2816, 704), (2816, 2112), (4224, 2816), (5760, 2880)):
        tried = [many_tiles(columns, rows, depth, card, experts) for rows in range(1, MOST_ROWS + 1, 31)]
        few, many = (many_tiles(columns, rows * max(1, experts // 8), depth, card, experts) for rows in (32, MOST_ROWS))
        assert set(tried) <= {few, many}
        for tiles in {few, many}:
            assert card.programs_of(tiles.shared_memory) > 0 and tiles.stages >= 2
            assert tiles.depth == SHORT.depth, "which decides the order of sums"


def test_cards_of_no_known_capability_are_taken_for_the_newest_that_is_no_newer() -> None:
    assert [representative(capability).capability for capability in (80, 87, 90, 103, 121)] == [80, 86, 90, 100, 120]


def test_a_card_is_what_the_driver_says_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    class Properties:
        major, minor, multi_processor_count, name = 8, 6, 82, "whatever"
        shared_memory_per_block_optin, shared_memory_per_multiprocessor = 99 << 10, 100 << 10

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _index: Properties())
    cards.found_card.cache_clear()
    try:
        assert card_of(torch.device("cuda", 0)) == representative(86)
        assert card_of(torch.device("cpu")) == HOPPER
    finally:
        cards.found_card.cache_clear()


def test_kernels_are_not_chosen_before_ampere() -> None:
    device = torch.device("cuda")
    stand_in(replace(HOPPER, capability=75))
    try:
        assert TRITON.why_not(256, device, torch.bfloat16) == "it needs a GPU of compute capability 8.0 or more"
    finally:
        stand_in(HOPPER)
