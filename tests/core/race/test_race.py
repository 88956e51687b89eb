"""A race: what is asked in which order, and what is made of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.core.figures.speed_up import SpeedUp
from dflash_tui.core.race.clock import RaceClock
from dflash_tui.core.race.lanes import ALONE, lanes_for
from dflash_tui.core.race.race import LaneResult, Race, RaceResult, Run, as_race
from dflash_tui.core.race.report import how, race_object, race_remarks, race_table, times_of
from dflash_tui.core.rounds.pace import pace_words
from engine.commands import Ask, Command, GenerationSettings, Message, Stop
from engine.events import EngineError, EngineReady, Event, TurnFinished, TurnStarted

from ..answers_for_tests import make_answer, plain_answer, turn_of

LANES = lanes_for(GenerationSettings(seed=7, max_new_tokens=200), [16, 8])
QUESTION = Message("user", "Tell me a story")


class Bench:
    """A race and what it has asked for; answers as it is told to."""

    def __init__(self, runs: int) -> None:
        self.sent: list[Command] = []
        self.race = Race([QUESTION], LANES, runs, [self.sent.append])

    @property
    def asks(self) -> list[Ask]:
        return [command for command in self.sent if isinstance(command, Ask)]

    def answer(self) -> None:
        """The newest question."""
        ask = self.asks[-1]
        for event in answer_events(ask):
            self.race.apply(event)


def answer_events(ask: Ask) -> list[Event]:
    made = make_answer() if ask.settings.speculation else plain_answer(list("abcde"), seconds=0.2)
    steps = [replace(step, turn=ask.turn) for step in made.rounds]
    started = TurnStarted(ask.turn, 10, 3, ask.settings.to_dict(), ask.messages[-1].content)
    return [started, *steps, TurnFinished(ask.turn, "stop", made.text)]


def run_race(runs: int) -> tuple[Bench, RaceResult]:
    bench = Bench(runs)
    bench.race.start()
    while not bench.race.over:
        bench.answer()
    assert bench.race.result is not None
    return bench, bench.race.result


def test_the_order_of_the_lanes_alternates() -> None:
    bench, _ = run_race(3)
    order = [ask.settings for ask in bench.asks[1::2]]
    forwards = [lane.settings for lane in LANES]
    assert order == [*forwards, *reversed(forwards), *forwards]


def test_every_measured_run_follows_a_short_one_of_its_own_lane() -> None:
    bench, _ = run_race(2)
    warm_ups, measured = bench.asks[::2], bench.asks[1::2]
    for short, whole in zip(warm_ups, measured, strict=True):
        assert short.messages != whole.messages == (QUESTION,)
        assert replace(short.settings, max_new_tokens=200) == whole.settings
        assert short.settings.max_new_tokens < 200


def test_figures_are_medians_and_the_speed_up_is_per_token() -> None:
    _, result = run_race(3)
    alone, wide, narrow = result.lanes
    assert alone.lane.name == ALONE and result.speed_up(alone).times == 1
    assert result.speed_up(wide).times == pytest.approx(2) == result.speed_up(narrow).times
    assert result.winner is wide, "the first of two that are alike"
    assert wide.tok_s == pytest.approx(20)  # four tokens in 0.2 s behind the first
    assert wide.ttft_ms == pytest.approx(100) and wide.decode_ms == pytest.approx(200)
    assert (wide.target_passes, wide.draft_passes, wide.num_tokens) == (2, 2, 5)


def test_whose_times_are_arrivals_here_is_said() -> None:
    own = EngineReady("org/target", "org/drafter", "cpu", "float32", 16, 4096, 1.0)
    server = replace(own, server="http://laptop:8080/v1", dialect="vLLM", times="arrival")
    said = how((own, server))
    assert "engine runs org/target on cpu" in said and "laptop:8080 is vLLM with org/target; its times are arr" in said


def raced(alone_ms: Sequence[float], *drafted_ms: Sequence[float]) -> RaceResult:
    """A race in which the target wrote five tokens one by one, and the other lanes some two a pass, in so many
    milliseconds a token; a run for each."""
    timings = (alone_ms, *drafted_ms)
    lanes = []
    for lane, milliseconds in zip(LANES, timings, strict=False):
        answers = [
            make_answer(seconds=2 * each / 1000) if lane.settings.speculation
            else plain_answer(list("abcde"), seconds=each / 1000)
            for each in milliseconds
        ]  # fmt: skip
        lanes.append(LaneResult(lane, tuple(map(Run, answers))))
    return RaceResult("Why?", tuple(lanes))


def test_a_winner_is_named_only_beyond_noise() -> None:
    clear = raced([10.0, 10.2, 9.9], [7.8, 7.9, 7.7])
    assert clear.winner is clear.lanes[1] and not clear.speed_up(clear.lanes[1]).about
    once = raced([10.0], [6.0])
    assert once.speed_up(once.lanes[1]).about, "one run of three"
    near = raced([10.0, 10.2, 9.9], [7.9, 8.0, 7.8], [7.8, 7.9, 7.7])
    assert near.winner is near.lanes[2] is near.best, "the headline names the fastest of the table"
    for lane in near.lanes[1:]:
        alone = near.lanes[0]
        assert near.speed_up(lane).times == pytest.approx(alone.decode_ms / lane.decode_ms, rel=1e-6)
    assert raced([10.0, 10.2, 9.9], [9.5, 9.4, 9.6]).winner is None, "too near"
    assert raced([10.0, 30.0, 9.0], [6.0, 12.0, 14.0]).winner is None, "a busy machine"
    slower = raced([5.0, 5.1, 4.9], [8.0, 8.2, 8.1])
    assert slower.winner is slower.lanes[0] and slower.speed_up(slower.lanes[1]).times < 1


def test_no_lane_is_faster_than_its_passes_allow() -> None:
    impossible = raced([100.0], [10.0])
    assert impossible.speed_up(impossible.lanes[1]) == SpeedUp(2, about=True), "two passes wrote four tokens"
    assert times_of(impossible, impossible.lanes[1]) == "≤2.00×", "no figure beside a time that says another"
    assert any("a time that is shorter still is chance" in remark for remark in race_remarks(impossible))
    answer = plain_answer(list("abcde"), seconds=0.1)
    slow = plain_answer(list("abcde"), seconds=0.5)
    lanes = (LaneResult(LANES[0], (Run(slow),)), LaneResult(LANES[1], (Run(answer),)))
    equal = RaceResult("Why?", lanes)
    assert equal.winner is None and equal.speed_up(lanes[1]).times == 1.0, "as many passes: they can't differ"


def test_guesses_that_were_kept_are_counted_and_a_limit_is_said() -> None:
    answers = plain_answer(list("abcde")), make_answer()
    answers[0].apply(TurnFinished(1, "length", "abcde"))
    result = as_race("Why?", [("a", answers[0]), ("b", answers[1])])
    head, *rows = race_table(result).rows
    assert [row[head.index("kept")] for row in rows] == ["0", "2"]
    assert race_remarks(result)[0] == "The lanes stopped at 5 tokens: the answer is longer."


def test_what_was_looked_up_is_not_the_drafter_s() -> None:
    answer = make_answer()
    draft = tuple(replace(token, source="lookup") for token in answer.rounds[1].draft)
    first, second, third = answer.rounds
    found = turn_of([first, replace(second, draft=draft), third], dict(answer.settings))
    result = as_race("Why?", [("a", answer), ("b", found)])
    assert [lane.draft_passes for lane in result.lanes] == [2, 1]
    told = [remark for remark in race_remarks(result) if "looked up" in remark]
    assert told == ["b: 50% of its accepted tokens were looked up in the text before."]


def test_a_stopped_race_has_no_result_and_waits_for_the_engine() -> None:
    bench = Bench(1)
    bench.race.start()
    bench.race.stop()
    assert bench.sent[-1] == Stop() and bench.race.over and not bench.race.idle
    bench.answer()
    assert bench.race.idle and bench.race.result is None and len(bench.asks) == 1


@pytest.mark.parametrize("fatal", [False, True])
def test_an_error_ends_the_race(fatal: bool) -> None:
    bench = Bench(1)
    bench.race.start()
    bench.race.apply(EngineError("device", "Out of memory.", "Close something.", fatal, 1))
    assert bench.race.over and bench.race.failure is not None
    if not fatal:
        assert not bench.race.idle
        bench.race.apply(TurnFinished(1, "error", ""))
    assert bench.race.idle and len(bench.asks) == 1


@given(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=12), st.data())
def test_the_first_difference_is_found_wherever_it_is(texts: list[str], data: st.DataObject) -> None:
    first = plain_answer(texts)
    place = data.draw(st.integers(0, len(texts) - 1))
    steps = list(first.rounds)
    step = steps[place]
    steps[place] = replace(step, emitted=(replace(step.emitted[0], id=999, probability=0.25),))
    other = turn_of(steps, dict(first.settings))
    result = as_race("Why?", [("a", first), ("b", other)])
    parting = result.divergence(result.lanes[1])
    assert parting is not None and parting.index == place
    assert parting.margin == pytest.approx(abs(step.emitted[0].probability - 0.25))
    assert result.divergence(result.lanes[0]) is None


def test_runs_that_differ_from_each_other_are_told() -> None:
    _, result = run_race(2)
    first, *others = result.lanes
    odd = replace(first.runs[0], answer=plain_answer(["other"]))
    mixed = replace(result, lanes=(replace(first, runs=(odd, *first.runs[1:])), *others))
    assert not mixed.lanes[0].repeats_itself
    assert any("differ from each other" in remark for remark in race_object(mixed)["remarks"])


def test_the_clock_shows_every_step_once_and_in_time() -> None:
    result = as_race("Why?", [("slow", make_answer(seconds=0.4)), ("fast", make_answer(seconds=0.1))])
    clock = RaceClock(result)
    shown: list[int] = []
    for moment in range(100):
        if clock.over:
            break
        slow, fast = clock.advance(moment * 0.05)
        shown += [len(slow), len(fast)]
        for place, lane in enumerate(result.lanes):
            steps = list(lane.shown.answer.rounds)
            ended = [step for step in steps if step.time - steps[0].time <= moment * 0.05]
            now = clock.lanes[place]
            assert now.tokens == sum(len(step.emitted) for step in ended)
            assert now.target_passes == sum(step.verify_width > 0 for step in ended)
            assert now.over == (len(ended) == len(steps))
    assert clock.over and sum(shown) == 6
    assert result.seconds == pytest.approx(0.8)


def test_the_clock_of_a_race_runs_at_its_pace_and_can_be_stopped() -> None:
    result = as_race("Why?", [("slow", make_answer(seconds=0.4)), ("fast", make_answer(seconds=0.1))])
    clock = RaceClock(result)
    assert pace_words(clock.pace) == "slowed 12 times" and clock.most_tokens == 5
    clock.tick(99.0)
    assert clock.seconds == 0
    clock.play(100.0)
    clock.tick(103.0)
    assert clock.seconds == pytest.approx(3 / 12) and not clock.over
    clock.playing = False
    clock.tick(200.0)
    assert clock.seconds == pytest.approx(3 / 12)
    clock.play(300.0)
    clock.tick(310.0)
    assert clock.over and clock.seconds == clock.length
