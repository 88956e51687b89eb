"""DSpark and DSpine in each published layout draft what a reference drafts. ``tests/proofs/engine/models`` has a
hundred rounds of each, more kinds, all damages, and the same in Triton's interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.models.registry import drafter_config_of
from support.checkpoints import FULL, dspark_config
from tests.engine.models import dspark, dspine
from tests.engine.models.dspark import answers, assert_drafts_are_the_references, dspark_pair, published
from tests.engine.models.dspine import dspine_pair
from tests.engine.small_decoders import prompt_ids


@pytest.mark.parametrize(("kind", "layout"), [(kind, each) for kind in (dspark, dspine) for each in kind.LAYOUTS])
def test_drafts_are_the_references_and_change_no_text(kind: object, layout: str, tmp_path: Path) -> None:
    if kind is dspark:
        head, count = "gated" if layout == "SpecForge" else "vanilla", 200 if layout == "speculators" else None
        pair, longest = dspark_pair(tmp_path, layout, count, markov_head_type=head), 6 + (layout != "speculators")
    else:
        pair, longest = dspine_pair(tmp_path, layout), 15
        assert pair.drafter.config.method == "dspine" and pair.drafter.conditioned
    drafted, alone = answers(pair, 24)
    assert assert_drafts_are_the_references(pair, drafted, prompt_ids(30)) > 12
    assert drafted.ids == alone.ids
    assert max(len(done.draft_ids) for done in drafted.rounds) == longest


@pytest.mark.parametrize("layout", dspark.LAYOUTS)
def test_a_block_never_has_more_rows_than_a_round(layout: str) -> None:
    """SpecForge trains blocks of sixteen rows that all draft: the last draft has no row to be verified in."""
    for rows in (7, 15, 16):
        config = published(layout, dspark_config([FULL], [0], 2, block_size=rows))
        assert drafter_config_of(config).block_size == min(rows + (layout != "speculators"), 16)


@pytest.mark.parametrize(("kind", "layout"), [(kind, each) for kind in (dspark, dspine) for each in kind.LAYOUTS])
def test_damage_is_refused_by_name(kind: object, layout: str, tmp_path: Path) -> None:
    tried, silent = kind.silent_damages(tmp_path, layout, every=9)  # type: ignore[attr-defined]
    assert tried > 12 and not silent, "\n".join(silent)
