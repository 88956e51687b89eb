"""The log of a turn's rounds: whoever seals it, and whenever, it says the same."""

from __future__ import annotations

import threading
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.events import Step, TurnStarted
from engine.rounds.blocks import ROUNDS, decoded
from engine.rounds.store import Recorder, RoundStore
from support.events_for_tests import make_step
from tests.core.replay.steps import turns
from tests.pace import examples


@given(turns(), st.lists(st.sampled_from(["", "seal", "rest"]), max_size=40))
@settings(max_examples=examples(40))
def test_sealed_or_not_it_holds_every_step(steps: list[Step], seals: list[str]) -> None:
    log = RoundStore()
    for place, step in enumerate(steps):
        log.append(step)
        if (seal := seals[place] if place < len(seals) else "") and log:
            log.seal(rest=seal == "rest")
        assert len(log) == place + 1 and log[place] == step
    assert list(log) == steps
    log.seal(rest=True)
    blocks = [decoded(data) for data in log.blocks]
    assert [step for block in blocks for step in block.steps()] == steps and log.held == len(log)
    assert [block.first for block in blocks] == [sum(map(len, blocks[:count])) for count in range(len(blocks))]


def test_who_appends_makes_blocks_where_nobody_else_does() -> None:
    log = RoundStore(make_step(3, 15, index=index) for index in range(10 * ROUNDS))
    assert len(log.blocks) >= 8 and all(len(decoded(block)) == ROUNDS for block in log.blocks)


def test_reading_and_sealing_disturb_nobody_who_appends() -> None:
    steps = [make_step(index % 5, 6, index=index, text=f"w{index % 9}") for index in range(600)]
    log, ended, wrong = RoundStore(), threading.Event(), []

    def read() -> None:
        while not ended.is_set():
            for index in range(0, len(log), 7):
                if log[index] != steps[index]:
                    wrong.append(index)

    def seal() -> None:
        while not ended.is_set():
            log.seal(rest=True)

    threads = [threading.Thread(target=work) for work in (read, read, seal)]
    for thread in threads:
        thread.start()
    for step in steps:
        log.append(step)
    ended.set()
    for thread in threads:
        thread.join()
    assert not wrong and list(log) == steps


def test_a_recorder_keeps_the_rounds_of_the_turn_at_hand() -> None:
    recorder, step = Recorder(), make_step(2, 5, index=0)
    first = recorder.take(TurnStarted(1, 3, 0, {}))
    assert recorder.take(step) is first and list(first.count()) == [step]
    second = recorder.take(TurnStarted(2, 3, 0, {}))
    assert second is not first and second.held == 0
    third = recorder.take(replace(step, turn=3))
    assert third.held == 1, "its beginning was not told"
