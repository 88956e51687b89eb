"""Layers whose state can't be rewound by a cursor: what was refused leaves no trace, and prefixes are reused."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import Qwen3_5TextConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5GatedDeltaNet

from engine.commands import GenerationSettings
from engine.decoding.decoder import PREFILL_CHUNK, Decoder
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_drafter
from engine.loading.memory_plan import NO_DRAFTING, MemoryPlan
from engine.measured.costs import time_rounds
from engine.models.dflash.modules import DFlashDrafter
from tests.engine.checkpoints import FULL, SLIDING, VOCAB_SIZE, drafter_config, write_drafter
from tests.engine.conftest import CPU, no_progress
from tests.engine.models.recurrent_family import (
    DELTA,
    MOST_REPLAYED,
    DeltaState,
    GatedDeltaNet,
    RecurrentTarget,
    recurrent_target,
)
from tests.engine.small_decoders import (
    GENERATION_PROMPT,
    MAX_CONTEXT,
    Conversation,
    Proposal,
    assert_caches_equal_recomputation,
    converse,
    prompt_ids,
    run_turn,
    scripted,
    settings,
    stop_and_go_on,
)

SPECULATIVE = settings(block_size=16)
PLAIN = settings(speculation=False)
WARM = {"temperature": 0.8, "seed": 5}


@dataclass(frozen=True)
class RecurrentPair:
    """In fp64: a pass of 16 rows and one of a single row then add up to the same token, however near another is."""

    target: RecurrentTarget
    drafter: DFlashDrafter


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> RecurrentPair:
    folder: Path = tmp_path_factory.mktemp("recurrent") / "drafter"
    write_drafter(folder, drafter_config([SLIDING, FULL], [0, 2], 4, final_logit_softcapping=None))
    target = recurrent_target()
    return RecurrentPair(target.double(), load_drafter(folder, target, no_progress).double())


def states(cache: Cache) -> list[DeltaState]:
    return [layer for layer in cache.layers if isinstance(layer, DeltaState)]


def passing(target: RecurrentTarget, cache: Cache, ids: tuple[int, ...]) -> Tensor:
    """Runs rows from the cursor on and commits none of them."""
    cache.note_written(cache.length + len(ids))
    return target(torch.tensor(ids), cache.length, cache).hidden


def filled(target: RecurrentTarget, ids: tuple[int, ...], sizes: tuple[int, ...] = ()) -> Cache:
    """A cache that holds these tokens, run in pieces of these sizes; in one without."""
    cache = Cache(target.config.layers, 256, 64, torch.float64, CPU)
    for size in sizes or (len(ids),):
        passing(target, cache, ids[cache.length : cache.length + size])
        cache.commit(cache.length + size)
    assert cache.length == len(ids)
    return cache


def assert_same(ours: Cache, theirs: Cache) -> None:
    for one, other in zip(states(ours), states(theirs), strict=True):
        for actual, expected in zip(one.now, other.now, strict=True):
            torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-4)


@torch.inference_mode()
def test_the_layer_is_the_one_of_transformers(pair: RecurrentPair) -> None:
    ours = pair.target.layers[0].self_attn
    assert isinstance(ours, GatedDeltaNet)
    config = Qwen3_5TextConfig(
        hidden_size=64,
        linear_num_key_heads=DELTA.num_key_heads,
        linear_num_value_heads=DELTA.num_value_heads,
        linear_key_head_dim=DELTA.key_dim,
        linear_value_head_dim=DELTA.value_dim,
        linear_conv_kernel_dim=DELTA.kernel,
        num_hidden_layers=1,
        layer_types=["linear_attention"],
        rms_norm_eps=1e-6,
    )
    theirs = Qwen3_5GatedDeltaNet(config, 0)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(50, 64, generator=torch.Generator().manual_seed(0))
    state = DELTA.new_state(256, 64, torch.float64, CPU)
    mixed = []
    for piece in x.split([1, 20, 1, 16, 12]):
        start = sum(map(len, mixed))
        mixed.append(ours(piece.double(), start, state, None))
        state.commit(start + len(piece))
    torch.testing.assert_close(torch.cat(mixed).float(), theirs(x[None])[0], atol=1e-5, rtol=1e-4)


# --- the state itself


@torch.inference_mode()
@pytest.mark.parametrize("accepted", range(1, 17))
def test_refused_rows_leave_no_trace(accepted: int, pair: RecurrentPair) -> None:
    """A pass of 16 rows of which some count leaves what as many steps leave."""
    ids, refused = prompt_ids(20 + accepted), prompt_ids(16 - accepted, seed=1)
    cache = filled(pair.target, ids[:20])
    passing(pair.target, cache, (*ids[20:], *refused))
    cache.commit(20 + accepted)
    assert_same(cache, filled(pair.target, ids, (20, *[1] * accepted)))
    # And what runs next sees nothing of it either.
    again = filled(pair.target, ids)
    following = prompt_ids(5, seed=2)
    torch.testing.assert_close(
        passing(pair.target, cache, following), passing(pair.target, again, following), atol=1e-4, rtol=1e-4
    )


@torch.inference_mode()
def test_a_pass_that_is_never_committed_changes_nothing(pair: RecurrentPair) -> None:
    ids = prompt_ids(30)
    cache = filled(pair.target, ids)
    for seed in range(3):
        passing(pair.target, cache, prompt_ids(9, seed))
    assert cache.can_rewind_to(30)
    cache.rewind(30)
    assert_same(cache, filled(pair.target, ids))


@torch.inference_mode()
def test_it_goes_back_as_far_as_the_last_short_pass(pair: RecurrentPair) -> None:
    ids = prompt_ids(40)
    cache = filled(pair.target, ids, (30, 10))
    assert [length for length in range(45) if cache.can_rewind_to(length)] == list(range(30, 41))
    for length in (40, 36, 31, 30):
        cache.rewind(length)
        assert_same(cache, filled(pair.target, ids[:length]))
    long = filled(pair.target, ids, (10, MOST_REPLAYED + 14))
    assert [length for length in range(45) if long.can_rewind_to(length)] == [40]


@torch.inference_mode()
def test_a_snapshot_outlives_what_comes_after_it(pair: RecurrentPair) -> None:
    ids = prompt_ids(40)
    cache = filled(pair.target, ids, (30, 10))
    here, earlier = cache.snapshot(), cache.snapshot(33)
    passing(pair.target, cache, prompt_ids(60, seed=1))
    cache.commit(100)
    cache.restore(here)
    assert cache.length == 40
    assert_same(cache, filled(pair.target, ids))
    cache.restore(earlier)
    assert cache.length == 33
    assert_same(cache, filled(pair.target, ids[:33]))
    cache.clear()
    passing(pair.target, cache, ids)
    cache.commit(40)
    assert_same(cache, filled(pair.target, ids))


@torch.inference_mode()
def test_its_bytes_are_those_that_are_kept(pair: RecurrentPair) -> None:
    """Behind a block: the state before it and after, a snapshot, and the block's rows."""
    cache = filled(pair.target, prompt_ids(46), (30, 16))
    state = states(cache)[0]
    kept = [*state.now, *state._before]
    restore, replay = cache.layers[0].snapshot(40), state._replay
    assert replay is not None
    closures = [cell.cell_contents for function in (restore, replay) for cell in function.__closure__ or ()]
    kept += [value for value in closures if isinstance(value, Tensor)]
    kept += [tensor for value in closures if isinstance(value, tuple) for tensor in value if value is not state._before]
    assert state.nbytes == sum(tensor.nbytes for tensor in kept)
    plan = MemoryPlan(pair.target.config.layers, (), 256, "bf16", 0, 0, (NO_DRAFTING,), 0, 0, CPU, False, 256)
    planned = Cache(pair.target.config.layers, 256, PREFILL_CHUNK, torch.float32, CPU)
    assert plan.caches == planned.nbytes == sum(layer.nbytes for layer in planned.layers)


# --- answers


def accepting(text: list[int], counts: list[int]) -> Proposal:
    """Proposes what follows in ``text``, of which each round gets so many right, in turn."""
    padded, left = [*text, *[0] * 32], iter(counts * len(text))

    def propose(position: int, _: int, count: int) -> list[int]:
        right, following = next(left), padded[position + 1 : position + 1 + count]
        return [token if place < right else (token + 1) % VOCAB_SIZE for place, token in enumerate(following)]

    return propose


@pytest.mark.parametrize("sampler", [{}, WARM], ids=["greedy", "warm"])
def test_answers_with_speculation_equal_the_plain_ones(sampler: dict[str, float], pair: RecurrentPair) -> None:
    """Whatever a round accepts, from nothing to a whole block."""
    prompt, wanted = prompt_ids(40), settings(block_size=16, max_new_tokens=160, **sampler)
    plain = Decoder(pair.target, None, MAX_CONTEXT)
    expected = run_turn(plain, prompt, replace(wanted, speculation=False)).ids
    assert len(set(expected)) > 20
    counts = list(range(16))
    random.Random(1).shuffle(counts)
    drafter = scripted(pair.drafter, accepting([*prompt, *expected], counts))
    decoder = Decoder(pair.target, drafter, MAX_CONTEXT)
    answer = run_turn(decoder, prompt, wanted)
    assert answer.ids == expected
    assert {done.num_accepted for done in answer.rounds} == set(range(16))
    assert_caches_equal_recomputation(decoder)
    for one, other in zip(states(decoder.cache), states(plain.cache), strict=True):
        torch.testing.assert_close(one.now, other.now, atol=1e-4, rtol=1e-3)


def test_timing_rounds_leaves_nothing_behind(pair: RecurrentPair) -> None:
    decoder = Decoder(pair.target, pair.drafter, MAX_CONTEXT)
    assert time_rounds(decoder, prompt_ids(16)) is not None
    fresh = Decoder(pair.target, None, MAX_CONTEXT)
    assert run_turn(decoder, prompt_ids(30), PLAIN).ids == run_turn(fresh, prompt_ids(30), PLAIN).ids
    assert_caches_equal_recomputation(decoder)


def test_a_continuation_reuses_every_row(pair: RecurrentPair) -> None:
    talk = Conversation(pair)
    first = prompt_ids(40)
    said = (*first, *GENERATION_PROMPT, *talk.ask(first, PLAIN).ids)
    assert talk.ask((*said, *prompt_ids(9, 1)), PLAIN).num_reused == len(said) - 1


def test_a_speculative_continuation_goes_back_to_what_the_drafter_holds(pair: RecurrentPair) -> None:
    """The drafter hasn't read the last round: the target's last pass is taken back."""
    talk = Conversation(pair)
    first = prompt_ids(40)
    said = (*first, *GENERATION_PROMPT, *talk.ask(first, SPECULATIVE).ids)
    held = talk.draft_length
    assert len(first) < held < talk.decoder.cache.length
    assert talk.ask((*said, *prompt_ids(9, 1)), SPECULATIVE).num_reused == held


@pytest.mark.parametrize("wanted", [PLAIN, SPECULATIVE], ids=["plain", "speculative"])
def test_another_question_goes_back_to_the_snapshot(wanted: GenerationSettings, pair: RecurrentPair) -> None:
    talk = Conversation(pair)
    first = prompt_ids(60)
    talk.ask(first, wanted)
    assert talk.ask((*first, *prompt_ids(9, 1)), wanted).num_reused == len(first)
    assert talk.ask((*first[:50], *prompt_ids(9, 2)), wanted).num_reused == 0


def test_a_long_piece_of_a_prompt_ends_where_the_snapshot_is_taken(pair: RecurrentPair) -> None:
    talk = Conversation(pair)
    talk.decoder.prefill_chunk = 1000
    first = prompt_ids(120)
    talk.ask(first, SPECULATIVE)
    assert talk.ask((*first, *prompt_ids(30, 1)), SPECULATIVE).num_reused == len(first)


@pytest.mark.parametrize("polls", range(1, 8))
def test_a_stopped_turn_can_be_followed(polls: int, pair: RecurrentPair) -> None:
    """Between the pieces of a prompt and between rounds."""
    talk = Conversation(pair)
    talk.decoder.prefill_chunk = 20
    stop_and_go_on(talk, SPECULATIVE, polls)


@pytest.mark.parametrize("seed", range(3))
def test_random_conversations(seed: int, pair: RecurrentPair) -> None:
    """Any order of plain and speculative turns, of going on, going back and starting over."""
    converse(Conversation(pair), SPECULATIVE, seed, turns=8, longest=40)
