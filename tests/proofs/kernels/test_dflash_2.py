"""DFlash 2's draft as kernels against its modules, in Triton's interpreter."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch

from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.round.choices import reference_candidates
from engine.kernels.round.walk import reference_walk, walk
from engine.kernels.toolchain.jit import INTERPRETED
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.dflash.modules import DFlashDrafter
from support.checkpoints import FULL, SLIDING, random_target, second_config, write_drafter
from support.speculators import write_speculators
from tests.engine.conftest import CPU, no_progress
from tests.engine.decoding.pairs import DRAFT_TILES, HEADS, TILES
from tests.engine.small_decoders import prompt_ids, run_turn, settings
from tests.kernels.tensors import noise

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")


@pytest.mark.parametrize("few", [False, True])
def test_a_walk(few: bool) -> None:
    """``few``: among a hundred of two hundred tokens."""
    found = reference_candidates(noise(7, 100))
    scores, candidates = found.logits, found.tokens
    states, before, after = noise(7, 32, seed=1), noise(200, 32, seed=2), noise(100, 32, seed=3)
    target_ids = torch.arange(100) * 2 + 1 if few else None
    token, chance = torch.zeros(16, dtype=torch.int64), torch.zeros(16)
    walk(found, states, before, after, torch.tensor([42, 0]), token, chance, target_ids)
    ids, chances = reference_walk(scores, candidates, states, before, after, 42, target_ids)
    assert token[:7].tolist() == ids.tolist() and token[7:].sum() == 0
    torch.testing.assert_close(chance[:7], chances, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("few", [False, True])
def test_drafts_and_answers_are_those_of_the_host(few: bool, tmp_path: Path) -> None:
    random_target([SLIDING, FULL], False, seed=2, **HEADS).save_pretrained(tmp_path / "target")
    write = partial(write_speculators, count=40) if few else write_drafter
    write(tmp_path / "drafter", second_config([0, 1], 2, **HEADS), seed=2)
    target = load_target(tmp_path / "target", CPU, no_progress)
    drafter = load_drafter(tmp_path / "drafter", target, no_progress)
    assert isinstance(drafter, DFlashDrafter)
    wanted, prompt, answers = settings(max_new_tokens=4, block_size=8), prompt_ids(30), []
    for device in (False, True):
        decoder = Decoder(target, drafter, 64)
        if device:
            launches = RoundLaunches(decoder, tiles=TILES, draft_tiles=DRAFT_TILES)
            decoder.use_rounds(DeviceRounds(launches))
        answers.append(run_turn(decoder, prompt, wanted))
    host, ours = answers
    assert ours.ids == host.ids
    assert [done.draft_ids for done in ours.rounds] == [done.draft_ids for done in host.rounds]
    assert any(done.draft_ids for done in host.rounds)
