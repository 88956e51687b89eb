"""DSpark and DSpine in each published layout: a hundred rounds whose drafts are a reference's, texts that speculation
leaves alone, the same drafts in Triton's interpreter, and damage that is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.toolchain.jit import INTERPRETED
from engine.models.dflash.weights import hold_in_8_bits
from tests.engine.decoding.pairs import DRAFT_TILES, TILES, assert_same_rounds
from tests.engine.models import dspark, dspine
from tests.engine.models.dspark import ReferencedPair, answers, assert_drafts_are_the_references, dspark_pair
from tests.engine.models.dspine import dspine_pair
from tests.engine.small_decoders import prompt_ids, run_turn, settings

PAIRS: dict[str, Callable[[Path], ReferencedPair]] = {
    **{f"DSpark, {layout}": partial(dspark_pair, layout=layout) for layout in dspark.LAYOUTS},
    "gated": partial(dspark_pair, layout="DeepSpec", markov_head_type="gated"),
    "gated, few tokens": partial(dspark_pair, layout="speculators, anchor", count=200, markov_head_type="gated"),
    "few tokens": partial(dspark_pair, layout="speculators", count=100, confidence_head_with_markov=False),
    "a rank of its own": partial(dspark_pair, layout="SpecForge", markov_rank=24, enable_confidence_head=False),
    **{f"DSpine, {layout}": partial(dspine_pair, layout=layout) for layout in dspine.LAYOUTS},
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_hundred_rounds(name: str, tmp_path: Path) -> None:
    pair, rounds = PAIRS[name](tmp_path), 0
    for tokens, temperature in ((80, 0.0), (50, 0.9)):
        drafted, alone = answers(pair, tokens, temperature=temperature, seed=5)
        rounds += assert_drafts_are_the_references(pair, drafted, prompt_ids(30))
        assert drafted.ids == alone.ids
    assert rounds >= 100


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")
@pytest.mark.parametrize(
    ("name", "temperature", "block", "packed"),
    [
        ("DSpark, SpecForge", 0.0, 8, False),
        ("DSpark, DeepSpec, Gemma", 0.9, 8, False),
        ("DSpark, speculators", 0.0, 8, False),
        ("gated, few tokens", 0.9, 8, False),
        ("few tokens", 0.0, 8, False),
        ("DSpine, SpecForge", 0.9, 16, False),
        ("DSpine, SpecForge", 0.0, 8, True),
    ],
)
def test_the_device_drafts_alike(name: str, temperature: float, block: int, packed: bool, tmp_path: Path) -> None:
    pair = PAIRS[name](tmp_path)
    if packed:
        hold_in_8_bits(pair.drafter)
    wanted, prompt = settings(max_new_tokens=block, block_size=block, temperature=temperature, seed=3), prompt_ids(30)
    host, device = (Decoder(pair.target, pair.drafter, 96) for _ in range(2))
    device.use_rounds(DeviceRounds(RoundLaunches(device, tiles=TILES, draft_tiles=DRAFT_TILES)))
    expected, found = run_turn(host, prompt, wanted), run_turn(device, prompt, wanted)
    assert any(len(done.draft_ids) >= block - 2 for done in expected.rounds)
    if packed:  # whose products the two round differently
        assert [done.draft_ids for done in found.rounds] == [done.draft_ids for done in expected.rounds]
    else:
        assert_same_rounds(found, expected)


@pytest.mark.parametrize(("kind", "layout"), [(kind, each) for kind in (dspark, dspine) for each in kind.LAYOUTS])
def test_damage_is_refused_by_name(kind: object, layout: str, tmp_path: Path) -> None:
    tried, silent = kind.silent_damages(tmp_path, layout)  # type: ignore[attr-defined]
    assert tried > 110 and not silent, "\n".join(silent)
