"""DSpine in each published layout drafts what a reference drafts. ``tests/proofs/engine/models/test_dspine.py`` has 300
rounds of each, and the same in Triton's interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.models.dspark import answers, assert_drafts_are_the_references
from tests.engine.models.dspine import LAYOUTS, dspine_pair, silent_damages
from tests.engine.small_decoders import prompt_ids


@pytest.mark.parametrize("layout", LAYOUTS)
def test_drafts_are_the_references_and_change_no_text(layout: str, tmp_path: Path) -> None:
    pair = dspine_pair(tmp_path, layout)
    drafted, alone = answers(pair, 20)
    assert assert_drafts_are_the_references(pair, drafted, prompt_ids(30)) > 12
    assert drafted.ids == alone.ids
    assert max(len(done.draft_ids) for done in drafted.rounds) == 15
    assert pair.drafter.config.method == "dspine" and pair.drafter.conditioned


@pytest.mark.parametrize("layout", LAYOUTS)
def test_damage_is_refused_by_name(layout: str, tmp_path: Path) -> None:
    tried, silent = silent_damages(tmp_path, layout, every=9)
    assert tried > 12 and not silent, "\n".join(silent)
