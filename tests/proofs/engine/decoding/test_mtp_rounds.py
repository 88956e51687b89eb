"""An assistant on the device, in Triton's interpreter: it drafts what the host drafts, and the text is the target's."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kernels.weights.int8 import Int8Weight
from engine.models.dflash.weights import hold_in_8_bits
from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable, RoundCosts
from tests.engine.decoding.pairs import (
    CONTEXT,
    DRAFT_TILES,
    PROMPT,
    TILES,
    Pair,
    assert_same_rounds,
    by_host,
    copying,
    of,
    on_device,
    pair,
)
from tests.engine.small_decoders import prompt_ids, run_turn, settings
from tests.proofs.engine.decoding import test_wide_rounds as wide

__all__ = ["pair"]

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

SEQUENTIAL = CostTable(
    (0,), (RoundCosts(0.1, tuple(2.0 + 0.05 * row for row in range(16)), 0.01, step=0.8, one_by_one=True),)
)


@of("dense, MTP", "qwen3_5, MTP")
def test_an_automatic_depth_is_drafted_as_chosen(pair: Pair) -> None:
    """The number of drafts changes from round to round, and rounds without one keep what the next draft needs."""
    device, wanted, prompt = on_device(pair), settings(max_new_tokens=11, draft_by="drafter"), prompt_ids(30)
    device.use_policy(Auto(SEQUENTIAL))
    answer = run_turn(device, prompt, wanted)
    assert answer.ids == run_turn(Decoder(pair.target, None, CONTEXT), prompt, wanted).ids
    drafted = [len(done.draft_ids) for done in answer.rounds[1:]]
    assert len({count for count in drafted if count}) > 1 and 0 in drafted
    # The last draft, behind a rest, is what a decoder that starts from nothing makes of the same text.
    places = [place for place, done in enumerate(answer.rounds) if done.draft_ids]
    last = answer.rounds[places[-1]].draft_ids
    text = [*prompt, *(token for done in answer.rounds[: places[-1]] for token in done.emitted)]
    wanted = settings(block_size=len(last) + 1, max_new_tokens=len(last) + 2, draft_by="drafter")
    assert run_turn(by_host(pair), text[:-1], wanted).rounds[1].draft_ids == last


@of("qwen3_5_moe, MTP")
def test_a_targets_own_layer_drafts_in_8_bits(pair: Pair) -> None:
    """Held so, it drafts on the device what it drafts on the host; by copies of it and of the head the text stays."""
    wanted = settings(max_new_tokens=4, block_size=3)
    packed = Pair(pair.target, deepcopy(pair.drafter).float())  # as on a GPU, where no projections were merged
    hold_in_8_bits(packed.drafter)
    assert packed.drafter.in_8_bits and not pair.drafter.in_8_bits
    held = run_turn(on_device(packed), PROMPT, wanted)
    assert_same_rounds(held, run_turn(by_host(packed), PROMPT, wanted))
    decoder = Decoder(pair.target, deepcopy(pair.drafter), CONTEXT)
    head = Int8Weight.of(pair.target.head)
    decoder.use_rounds(DeviceRounds(RoundLaunches(decoder, head, TILES, DRAFT_TILES)))
    answer = run_turn(decoder, PROMPT, wanted)
    assert answer.ids == held.ids and any(done.draft_ids for done in answer.rounds)


@of("experts, MTP")
def test_it_drafts_on_behind_wide_rounds(pair: Pair) -> None:
    """Which tell it of the newest row that was kept, wherever in the pass that stood."""
    pair, wanted = copying(pair), replace(wide.AUTO, max_new_tokens=37)
    answers = []
    for device in (True, False):
        decoder = wide.decoder_of(pair, wide.HALF, wide.DRAFT, drafts=True, device=device)
        answers.append(run_turn(decoder, wide.PROMPT, wanted))
    assert_same_rounds(*answers)
    assert max(len(done.emitted) for done in answers[0].rounds) > 16
    assert any(done.draft_ids for done in answers[0].rounds)
