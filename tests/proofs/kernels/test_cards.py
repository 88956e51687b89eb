"""Tiles follow what a card has, and on the cards they were measured on they are those of the source."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.kernels.prefill.products import MOST_ROWS, SHORT, many_tiles
from engine.kernels.toolchain import card as cards
from engine.kernels.toolchain.card import HOPPER, REPRESENTATIVES, Card, card_of, representative, stand_in
from engine.models.attention_backends import TRITON


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
