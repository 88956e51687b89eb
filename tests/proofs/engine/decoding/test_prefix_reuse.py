"""Turns of a conversation on one decoder: each answers like a fresh one, and reuses exactly what it may."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.commands import GenerationSettings
from engine.kv_cache.prefix import MOST_SNAPSHOTS
from tests.engine.conftest import TinyPair
from tests.engine.small_decoders import GENERATION_PROMPT, Conversation, converse, prompt_ids, reuse_and_go_on, settings

PLAIN = settings(speculation=False)
SPECULATIVE = settings(block_size=6)


@pytest.fixture
def pair(unstopped_pair: TinyPair) -> TinyPair:
    return unstopped_pair


@pytest.mark.parametrize("wanted", [PLAIN, SPECULATIVE], ids=["plain", "speculative"])
def test_a_continuation_reuses_what_both_caches_hold(wanted: GenerationSettings, pair: TinyPair) -> None:
    reuse_and_go_on(Conversation(pair), wanted)


@pytest.mark.parametrize("wanted", [PLAIN, SPECULATIVE], ids=["plain", "speculative"])
def test_a_short_way_back_is_a_rewind(wanted: GenerationSettings, pair: TinyPair) -> None:
    """A few tokens back the rings still hold the window: no snapshot is needed, and none is used here."""
    talk = Conversation(pair)
    first = prompt_ids(60)
    talk.ask(first, replace(wanted, max_new_tokens=3))
    talk.decoder.prefix.snapshots.clear()
    assert talk.ask((*first[:57], *prompt_ids(9, 1)), wanted).num_reused == 57


@pytest.mark.parametrize("wanted", [PLAIN, SPECULATIVE], ids=["plain", "speculative"])
def test_a_long_way_back_needs_the_snapshot(wanted: GenerationSettings, pair: TinyPair) -> None:
    talk = Conversation(pair)
    first = prompt_ids(60)
    answer = talk.ask(first, replace(wanted, max_new_tokens=70))
    assert talk.ask((*first, *answer.ids, *prompt_ids(9, 1)), wanted).num_reused == len(first)
    # The first turn's snapshot lies on the way to the second's: both can be gone back to.
    assert talk.ask((*first, *prompt_ids(50, 2)), wanted).num_reused == len(first)


def test_going_back_to_any_turn_reuses_what_the_branches_share(pair: TinyPair) -> None:
    talk = Conversation(pair)
    said: tuple[int, ...] = prompt_ids(30)
    starts = []
    for turn in range(3):
        starts.append(len(said))
        answer = talk.ask(said, replace(SPECULATIVE, max_new_tokens=60))
        said = (*said, *answer.ids, *prompt_ids(20, turn + 1))
    for start in reversed(starts):
        assert talk.ask((*said[:start], *prompt_ids(50, 9)), SPECULATIVE).num_reused == start


def test_of_too_many_snapshots_those_stay_that_save_most(pair: TinyPair) -> None:
    talk = Conversation(pair)
    prefix = talk.decoder.prefix
    talk.ask(prompt_ids(500), replace(PLAIN, max_new_tokens=2))
    prefix.snapshots.clear()
    cache = talk.decoder.cache
    here = cache.length
    for ahead in (0, 40, 41, 90, 140, 190, 240, 290, 340, 390):
        cache.set_length_for_timing(here + ahead)
        prefix.remember([cache], here + ahead)
    kept = [shots[cache].length - here for shots in prefix.snapshots]
    assert len(kept) == MOST_SNAPSHOTS and 0 in kept and 390 in kept and not {40, 41} <= set(kept)


def test_a_restored_ring_counts_from_the_snapshot(pair: TinyPair) -> None:
    """What was written before going back is forgotten: a short way back from there is a rewind again."""
    talk = Conversation(pair)
    first = prompt_ids(60)
    talk.ask(first, replace(SPECULATIVE, max_new_tokens=70))
    second = (*first, *prompt_ids(9, 1))
    assert talk.ask(second, replace(SPECULATIVE, max_new_tokens=2)).num_reused == len(first)
    talk.decoder.prefix.snapshots.clear()
    assert talk.ask((*second[:65], *prompt_ids(9, 2)), SPECULATIVE).num_reused == 65


def test_a_snapshot_of_text_that_was_taken_back_is_not_used(pair: TinyPair) -> None:
    talk = Conversation(pair)
    first = prompt_ids(60)
    talk.ask(first, replace(PLAIN, max_new_tokens=2))
    second = (*first[:57], *prompt_ids(40, 1))
    assert talk.ask(second, replace(PLAIN, max_new_tokens=70), all_stable=True).num_reused == 57
    # The new prompt agrees with the text here beyond the first prompt's end, where other tokens stood then.
    assert talk.ask((*second[:80], *prompt_ids(9, 2)), PLAIN).num_reused == 0


def test_asking_the_same_again_leaves_one_token_to_run(pair: TinyPair) -> None:
    talk = Conversation(pair)
    first = prompt_ids(60)
    short = replace(SPECULATIVE, max_new_tokens=2)
    talk.ask(first, short)
    assert talk.ask(first, short).num_reused == len(first) + len(GENERATION_PROMPT) - 1


def test_a_plain_turn_leaves_the_drafter_behind(pair: TinyPair) -> None:
    """The speculative turn after it goes back to where both caches agree, if the target's rings reach that far."""
    talk = Conversation(pair)
    first = prompt_ids(60)
    answer = talk.ask(first, replace(SPECULATIVE, max_new_tokens=4))
    held = talk.draft_length
    said = (*first, *GENERATION_PROMPT, *answer.ids)
    plain = talk.ask(said, replace(PLAIN, max_new_tokens=3))
    assert plain.num_reused == len(said) - 1 and talk.draft_length == held
    assert talk.ask((*said, *plain.ids), SPECULATIVE).num_reused == held


def test_after_a_long_plain_turn_speculation_goes_back(pair: TinyPair) -> None:
    talk = Conversation(pair)
    first = prompt_ids(60)
    answer = talk.ask(first, SPECULATIVE)
    said = (*first, *answer.ids)
    plain = talk.ask(said, replace(PLAIN, max_new_tokens=80))
    assert plain.num_reused > 0
    said += tuple(plain.ids)
    assert talk.ask(said, SPECULATIVE).num_reused == len(first), "where the drafter was still along"
    assert talk.ask(said, SPECULATIVE).num_reused == len(said)


@pytest.mark.parametrize("seed", range(2))
def test_random_conversations(seed: int, pair: TinyPair) -> None:
    """Any order of plain and speculative turns, short and long, of going on, going back and starting over."""
    converse(Conversation(pair), SPECULATIVE, seed, turns=7, longest=60)
