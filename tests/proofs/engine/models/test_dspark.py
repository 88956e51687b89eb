"""DSpark in each published layout: 300 rounds whose drafts are a reference's, texts that speculation leaves alone, and
the same drafts in Triton's interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.toolchain.jit import INTERPRETED
from tests.engine.decoding.pairs import DRAFT_TILES, TILES, assert_same_rounds
from tests.engine.models.dspark import (
    LAYOUTS,
    answers,
    assert_drafts_are_the_references,
    dspark_pair,
    silent_damages,
)
from tests.engine.small_decoders import prompt_ids, run_turn, settings

KINDS: dict[str, tuple[str, int | None, dict[str, Any]]] = {
    **{layout: (layout, None, {}) for layout in LAYOUTS},
    "gated": ("DeepSpec", None, {"markov_head_type": "gated"}),
    "gated, few tokens": ("speculators, anchor", 200, {"markov_head_type": "gated"}),
    "few tokens": ("speculators", 100, {"confidence_head_with_markov": False}),
    "a rank of its own, no confidence": ("SpecForge", None, {"markov_rank": 24, "enable_confidence_head": False}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_three_hundred_rounds(kind: str, tmp_path: Path) -> None:
    layout, count, changes = KINDS[kind]
    pair = dspark_pair(tmp_path, layout, count, **changes)
    drafted, alone = answers(pair, 340)
    assert assert_drafts_are_the_references(pair, drafted, prompt_ids(30)) >= 300
    assert drafted.ids == alone.ids
    drafted, alone = answers(pair, 60, temperature=0.9, seed=5)
    assert assert_drafts_are_the_references(pair, drafted, prompt_ids(30)) >= 40
    assert drafted.ids == alone.ids


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")
@pytest.mark.parametrize("kind", ["SpecForge", "DeepSpec, Gemma", "speculators", "gated, few tokens", "few tokens"])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_the_device_drafts_alike(kind: str, temperature: float, tmp_path: Path) -> None:
    layout, count, changes = KINDS[kind]
    pair = dspark_pair(tmp_path, layout, count, **changes)
    wanted, prompt = settings(max_new_tokens=8, block_size=8, temperature=temperature, seed=3), prompt_ids(30)
    host, device = (Decoder(pair.target, pair.drafter, 96) for _ in range(2))
    device.use_rounds(DeviceRounds(RoundLaunches(device, tiles=TILES, draft_tiles=DRAFT_TILES)))
    expected = run_turn(host, prompt, wanted)
    assert any(len(done.draft_ids) >= 6 for done in expected.rounds)
    assert_same_rounds(run_turn(device, prompt, wanted), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_damage_is_refused_by_name(layout: str, tmp_path: Path) -> None:
    tried, silent = silent_damages(tmp_path, layout)
    assert tried > 120 and not silent, "\n".join(silent)
