"""DSpark in each published layout: 300 rounds whose drafts are a reference's, texts that speculation leaves alone, and
the same drafts in Triton's interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.host_rounds import HostRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.toolchain.jit import INTERPRETED
from engine.loading.checkpoint import load_drafter
from engine.speculation.trees import CHOICES, chain, places_in
from support.checkpoints import second_config, write_drafter
from tests.engine.conftest import CPU, no_progress
from tests.engine.decoding.pairs import DRAFT_TILES, TILES, Steady, assert_same_rounds
from tests.engine.decoding.talks import FLAT
from tests.engine.models.dspark import (
    HEADS,
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
@pytest.mark.parametrize("kind", ["SpecForge", "speculators", "gated, few tokens", "few tokens"])
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


@pytest.mark.parametrize("kind", ["SpecForge", "few tokens", "gated, few tokens", "DFlash 2"])
def test_trees_of_conditioned_drafts_change_no_text(kind: str, tmp_path: Path) -> None:
    """On the host, each token of a tree scored behind the one before it. DFlash 2's first choices are its chain's; a
    Markov head may lift a token into a chain that is no candidate of a tree."""
    layout, count, changes = KINDS.get(kind, KINDS["SpecForge"])
    pair: Any = dspark_pair(tmp_path, layout, count, **changes)
    if kind == "DFlash 2":
        write_drafter(tmp_path / "second", second_config([0, 1], 2, **HEADS), seed=2)
        pair = pair._replace(drafter=load_drafter(tmp_path / "second", pair.target, no_progress))
    for temperature in (0.0, 0.9):
        wanted, prompt = settings(max_new_tokens=40, temperature=temperature, seed=4), prompt_ids(30)
        decoder = Decoder(pair.target, pair.drafter, 96)
        decoder.use_rounds(HostRounds(CHOICES))
        decoder.use_policy(Steady(FLAT))
        answer, alone = run_turn(decoder, prompt, wanted), run_turn(Decoder(pair.target, None, 96), prompt, wanted)
        assert answer.ids == alone.ids
        trees = [done for done in answer.rounds if done.tree]
        assert len(trees) > 2 and any(node.choice for done in trees for node in done.tree)
    if kind == "DFlash 2":
        cache = pair.drafter.new_cache(decoder.cache, 64, 16, torch.float32, CPU)
        pair.drafter.ingest(torch.randn(20, 128, generator=torch.Generator().manual_seed(1)), cache)
        ids, lattice = pair.drafter.lattice(pair.target, 200, 8, cache)
        drafted = pair.drafter.draft(pair.target, 200, 8, cache)
        places = places_in(chain(7), lattice)
        assert [ids[position][place] for position, place in enumerate(places)] == drafted.ids.tolist()
        assert [row[0] for row in lattice] == pytest.approx(drafted.probabilities.tolist(), abs=1e-5)
