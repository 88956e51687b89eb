from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.core.rounds.playback import (
    FULL,
    LEAST_PHASE,
    PHASES,
    SLOWEST,
    Phase,
    Player,
    Quiz,
    phase_starts,
    round_seconds,
)
from dflash_tui.core.rounds.slow_motion import TEACHING_PACE, SlowMotion
from engine.rounds.store import RoundStore
from support.events_for_tests import make_step
from tests.pace import examples

from ..rounds_for_tests import rounds

FEW = settings(max_examples=examples(30), deadline=None)


HISTORIES = rounds().map(RoundStore)


@given(HISTORIES, st.floats(SLOWEST, FULL), st.integers(1, 40))
@FEW
def test_an_answer_takes_its_own_time_over_the_pace(history: RoundStore, pace: float, frames: int) -> None:
    """However the viewer's seconds are cut into frames, the rounds take as long as they took, divided by the pace."""
    player = Player(history, 0)
    length = sum(round_seconds(history, step) for step in range(len(history))) / pace
    for _ in range(frames):
        assert not player.at_end
        player.advance(0.999 * length / frames, pace)
    assert not player.at_end
    player.advance(0.002 * length, pace)
    assert player.at_end and player.step == len(history) - 1


@given(HISTORIES)
@FEW
def test_phase_by_phase_shows_every_phase_of_every_round_once(history: RoundStore) -> None:
    player = Player(history, 0)
    first = (0, player.phase)
    seen = [first]
    while seen[-1] != (len(history) - 1, "emit"):
        player.next_phase()
        seen.append((player.step, player.phase))
    steps = [step for step, phase in seen if phase == "emit"]
    assert steps == list(range(len(history)))
    assert [phase for step, phase in seen if step == len(history) - 1] in (list(PHASES), list(PHASES[1:]))
    for place in reversed(seen[:-1]):
        player.previous_phase()
        assert (player.step, player.phase) == place


def test_drafting_and_verifying_share_the_time_as_they_did() -> None:
    history = RoundStore([make_step(0, 0, index=0), make_step(3, 15, index=1, time=0.2)])
    block, draft, verify, *_ = phase_starts(history, 1)
    assert (verify - draft) / (draft - block) == pytest.approx(2)  # make_step drafts for 1 ms and verifies for 2


def motion_at(step: int, *, teaching: bool = True) -> SlowMotion:
    motion = SlowMotion()
    if teaching:
        motion.teach()
    history = RoundStore([make_step(min(index, 4), 8, index=index, time=0.1 * index + 0.1) for index in range(6)])
    motion.begin(history, step, now=0.0)
    return motion


def test_every_phase_can_be_seen_however_fast_the_machine_was() -> None:
    """Rounds of 2 ms, as on a GPU: the viewer's clock shows each phase for more than half a second."""
    history = RoundStore([make_step(4, 15, index=index, time=0.002 * (index + 1)) for index in range(4)])
    motion, seen = SlowMotion(), dict[tuple[int, Phase], float]()
    motion.teach()
    motion.begin(history, 1, now=0.0)
    for tick in range(1, 1000):
        motion.tick(0.01 * tick)
        if motion.at_end:
            break
        place = motion.step, motion.phase
        seen[place] = seen.get(place, 0.0) + 0.01
    assert motion.at_end and len(seen) == 3 * len(PHASES)
    assert min(seen.values()) >= LEAST_PHASE / TEACHING_PACE - 0.02 > 0.5


def test_a_pause_stops_the_clock_and_going_on_does_not_jump() -> None:
    motion = motion_at(1)
    motion.toggle(0.0)
    motion.tick(50.0)
    assert motion.step == 1
    motion.toggle(100.0)
    motion.tick(100.0 + 0.05 / TEACHING_PACE)
    assert motion.step == 1 and motion.playing


def test_who_wants_no_motion_gets_none() -> None:
    motion = SlowMotion()
    motion.moves = False
    motion.teach()
    motion.begin(RoundStore([make_step(2, 8, index=index, time=0.1 * index + 0.1) for index in range(3)]), 0, now=0.0)
    motion.tick(1000.0)
    assert (motion.step, motion.phase, motion.playing) == (0, "block", False)
    motion.change_phase(1)
    assert motion.phase == "draft"


def test_the_game_asks_before_the_target_has_spoken_and_once_a_round() -> None:
    motion = motion_at(3)
    motion.quiz = Quiz()
    for tick in range(100):
        motion.tick(0.05 * tick)
    assert motion.waiting and (motion.step, motion.phase) == (3, "draft") and motion.num_guesses == 8
    motion.answer(3)
    assert not motion.waiting and motion.phase == "emit" and motion.quiz.num_right == 1
    motion.tick(1000.0)
    assert motion.step == 3, "the verdict stays to be read"
    motion.toggle(5.0)
    for tick in range(200):
        motion.tick(5.0 + 0.05 * tick)
    assert motion.waiting and motion.step == 4
    motion.answer(8)
    assert motion.quiz.score == "1 of 2 right, off by 2.0 on average"


@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), min_size=1, max_size=20))
@FEW
def test_the_score_counts_every_answer(answers: list[tuple[int, int]]) -> None:
    quiz = Quiz()
    assert quiz.score == ""
    for guess, kept in answers:
        quiz.ask()
        quiz.answer(guess, kept)
    right, off = sum(guess == kept for guess, kept in answers), sum(abs(guess - kept) for guess, kept in answers)
    assert quiz.score == f"{right} of {len(answers)} right, off by {off / len(answers):.1f} on average"
