"""DSpark in each published layout drafts what a reference drafts. ``tests/proofs/engine/models/test_dspark.py`` has 300
rounds of each, and more kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.models.registry import drafter_config_of
from support.checkpoints import FULL, dspark_config
from tests.engine.models.dspark import (
    LAYOUTS,
    answers,
    assert_drafts_are_the_references,
    dspark_pair,
    published,
    silent_damages,
)
from tests.engine.small_decoders import prompt_ids


@pytest.mark.parametrize("layout", LAYOUTS)
def test_drafts_are_the_references_and_change_no_text(layout: str, tmp_path: Path) -> None:
    kind, count = "gated" if layout == "SpecForge" else "vanilla", 200 if layout == "speculators" else None
    pair = dspark_pair(tmp_path, layout, count, markov_head_type=kind)
    drafted, alone = answers(pair, 24)
    assert assert_drafts_are_the_references(pair, drafted, prompt_ids(30)) > 12
    assert drafted.ids == alone.ids
    assert max(len(done.draft_ids) for done in drafted.rounds) == (6 if layout == "speculators" else 7)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_block_never_has_more_rows_than_a_round(layout: str) -> None:
    """SpecForge trains blocks of sixteen rows that all draft: the last draft has no row to be verified in."""
    for rows in (7, 15, 16):
        config = published(layout, dspark_config([FULL], [0], 2, block_size=rows))
        assert drafter_config_of(config).block_size == min(rows + (layout != "speculators"), 16)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_damage_is_refused_by_name(layout: str, tmp_path: Path) -> None:
    tried, silent = silent_damages(tmp_path, layout, every=9)
    assert tried > 12 and not silent, "\n".join(silent)
