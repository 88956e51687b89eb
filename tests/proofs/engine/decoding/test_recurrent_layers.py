"""Layers whose state can't be rewound by a cursor, Qwen3.5's: how far they go back, and which prefixes are reused.
That no pass leaves a trace of what was refused: ``tests/engine/models/test_qwen3_5.py``, to the bit."""

from __future__ import annotations

import pytest
import torch

from engine.commands import GenerationSettings
from engine.decoding.decoder import Decoder
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.kv_cache.cache import Cache
from engine.kv_cache.delta_state import DeltaState
from engine.measured.costs import time_rounds
from engine.models.target import TargetModel
from tests.engine.conftest import CPU
from tests.engine.decoding.pairs import Pair, of, pair
from tests.engine.small_decoders import (
    MAX_CONTEXT,
    Conversation,
    assert_caches_equal_recomputation,
    prompt_ids,
    reuse_and_go_on,
    run_turn,
    settings,
    stop_and_go_on,
)

__all__ = ["pair"]

pytestmark = of("qwen3_5")

SPECULATIVE = settings(block_size=16)
PLAIN = settings(speculation=False)


@torch.inference_mode()
def filled(target: TargetModel, ids: tuple[int, ...], *sizes: int) -> Cache:
    """A cache that holds these tokens, run in pieces of these sizes."""
    cache = Cache(target.config.layers, 256, 64, torch.float32, CPU)
    for size in sizes:
        cache.note_written(cache.length + size)
        target(torch.tensor(ids[cache.length : cache.length + size]), cache.length, cache)
        cache.commit(cache.length + size)
    return cache


@torch.inference_mode()
def assert_same(ours: Cache, theirs: Cache) -> None:
    for one, other in zip(ours.layers, theirs.layers, strict=True):
        if isinstance(one, DeltaState) and isinstance(other, DeltaState):
            moments = zip(one.moment(ours.length), other.moment(theirs.length), strict=True)
            assert all(torch.allclose(*parts, atol=1e-5, rtol=1e-4) for parts in moments)


def test_it_goes_back_as_far_as_the_last_short_pass(pair: Pair) -> None:
    ids = prompt_ids(40)
    cache = filled(pair.target, ids, 30, 10)
    assert [length for length in range(45) if cache.can_rewind_to(length)] == list(range(30, 41))
    for length in (40, 36, 31, 30):
        cache.rewind(length)
        assert_same(cache, filled(pair.target, ids, length))
    long = filled(pair.target, ids, 10, MAX_ROWS + 14)
    assert [length for length in range(45) if long.can_rewind_to(length)] == [10, 40]


@torch.inference_mode()
def test_a_snapshot_of_an_earlier_row_outlives_what_comes_after_it(pair: Pair) -> None:
    ids = (*prompt_ids(40), *prompt_ids(60, seed=1))
    cache = filled(pair.target, ids, 30, 10)
    here, earlier = cache.snapshot(), cache.snapshot(33)
    pair.target(torch.tensor(ids[40:]), 40, cache)
    cache.commit(100)
    for moment, length in ((here, 40), (earlier, 33)):
        cache.restore(moment)
        assert cache.length == length
        assert_same(cache, filled(pair.target, ids, length))


def test_timing_rounds_leaves_nothing_behind(pair: Pair) -> None:
    decoder = Decoder(pair.target, pair.drafter, MAX_CONTEXT)
    assert time_rounds(decoder, prompt_ids(16)) is not None
    fresh = Decoder(pair.target, None, MAX_CONTEXT)
    assert run_turn(decoder, prompt_ids(30), PLAIN).ids == run_turn(fresh, prompt_ids(30), PLAIN).ids
    assert_caches_equal_recomputation(decoder)


@pytest.mark.parametrize("wanted", [PLAIN, SPECULATIVE], ids=["plain", "speculative"])
def test_a_continuation_reuses_what_both_caches_hold(wanted: GenerationSettings, pair: Pair) -> None:
    """The target's last pass is taken back."""
    reuse_and_go_on(Conversation(pair), wanted)


@pytest.mark.parametrize("wanted", [PLAIN, SPECULATIVE], ids=["plain", "speculative"])
def test_another_question_goes_back_to_the_snapshot(wanted: GenerationSettings, pair: Pair) -> None:
    """Also within a long piece of a prompt."""
    talk = Conversation(pair)
    talk.decoder.prefill_chunk = 1000
    first = prompt_ids(60)
    talk.ask(first, wanted)
    assert talk.ask((*first, *prompt_ids(9, 1)), wanted).num_reused == len(first)
    assert talk.ask((*first[:50], *prompt_ids(9, 2)), wanted).num_reused == 0


@pytest.mark.parametrize("polls", (1, 3, 5, 7))
def test_a_stopped_turn_can_be_followed(polls: int, pair: Pair) -> None:
    """Between the pieces of a prompt and between rounds."""
    talk = Conversation(pair)
    talk.decoder.prefill_chunk = 20
    stop_and_go_on(talk, SPECULATIVE, polls)
