"""DSpine in each published layout: 300 rounds whose drafts are a reference's, texts that speculation leaves alone, and
the same drafts in Triton's interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.toolchain.jit import INTERPRETED
from engine.models.dflash.weights import hold_in_8_bits
from tests.engine.decoding.pairs import DRAFT_TILES, TILES, assert_same_rounds
from tests.engine.models.dspark import answers, assert_drafts_are_the_references
from tests.engine.models.dspine import LAYOUTS, dspine_pair, silent_damages
from tests.engine.small_decoders import prompt_ids, run_turn, settings


@pytest.mark.parametrize("layout", LAYOUTS)
def test_three_hundred_rounds(layout: str, tmp_path: Path) -> None:
    pair = dspine_pair(tmp_path, layout)
    drafted, alone = answers(pair, 340)
    assert assert_drafts_are_the_references(pair, drafted, prompt_ids(30)) >= 300
    assert drafted.ids == alone.ids
    drafted, alone = answers(pair, 60, temperature=0.9, seed=5)
    assert assert_drafts_are_the_references(pair, drafted, prompt_ids(30)) >= 40
    assert drafted.ids == alone.ids


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")
@pytest.mark.parametrize(("packed", "temperature", "block"), [(False, 0.9, 16), (True, 0.0, 8)])
def test_the_device_drafts_alike(packed: bool, temperature: float, block: int, tmp_path: Path) -> None:
    pair = dspine_pair(tmp_path)
    if packed:
        hold_in_8_bits(pair.drafter)
    wanted, prompt = settings(max_new_tokens=16, block_size=block, temperature=temperature, seed=3), prompt_ids(30)
    host, device = (Decoder(pair.target, pair.drafter, 96) for _ in range(2))
    device.use_rounds(DeviceRounds(RoundLaunches(device, tiles=TILES, draft_tiles=DRAFT_TILES)))
    expected = run_turn(host, prompt, wanted)
    assert any(len(done.draft_ids) >= block - 2 for done in expected.rounds)
    found = run_turn(device, prompt, wanted)
    if packed:  # whose products the two round differently
        assert [done.draft_ids for done in found.rounds] == [done.draft_ids for done in expected.rounds]
    else:
        assert_same_rounds(found, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_damage_is_refused_by_name(layout: str, tmp_path: Path) -> None:
    tried, silent = silent_damages(tmp_path, layout)
    assert tried > 110 and not silent, "\n".join(silent)
