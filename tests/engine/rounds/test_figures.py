from __future__ import annotations

from itertools import accumulate
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.events import Step
from engine.rounds.blocks import ROUNDS
from engine.rounds.store import RoundStore
from support.events_for_tests import make_step
from tests.core.replay.steps import turns
from tests.core.rounds_for_tests import rounds
from tests.pace import examples


@given(turns(), st.randoms())
@settings(max_examples=examples(30))
def test_every_step_comes_back_in_any_order(steps: list[Step], random: Random) -> None:
    history = RoundStore(steps)
    order = list(range(len(steps)))
    random.shuffle(order)
    assert [history[index] for index in order] == [steps[index] for index in order]
    assert list(history) == steps
    assert history[-1] == steps[-1]


@given(turns())
@settings(max_examples=examples(30))
def test_tokens_find_their_step(steps: list[Step]) -> None:
    history = RoundStore(steps)
    owners = [index for index, step in enumerate(steps) for _ in step.emitted]
    assert [history.step_of_token(token) for token in range(len(owners))] == owners
    counts = [0, *accumulate(len(step.emitted) for step in steps)]
    assert [history.tokens_before(index) for index in range(len(steps) + 1)] == counts
    with pytest.raises(IndexError):
        history.step_of_token(len(owners))


@given(rounds())
@settings(max_examples=examples(30))
def test_numbers_at_any_step_are_those_of_counting_up_to_it(steps: list[Step]) -> None:
    history = RoundStore(steps)
    for index in range(len(steps)):
        assert history.acceptance(index) == RoundStore(steps[: index + 1]).acceptance(-1)
        assert history.rate(index) == pytest.approx(rate_of(steps[: index + 1]))
        assert history.verified_sum[index] == sum(step.num_verified for step in steps[: index + 1])
        assert history.total_us_sum[index] == round(1000 * sum(step.total_ms for step in steps[: index + 1]))


def rate_of(steps: list[Step]) -> float:
    """Tokens per second over the last second, the first round's left out."""
    now, start = steps[-1].time, steps[0].time
    tokens = sum(len(step.emitted) for step in steps[1:] if round(now - step.time, 6) < 1)
    return tokens / min(now - start, 1) if now > start else 0.0


@given(turns(), st.data())
@settings(max_examples=examples(40))
def test_a_part_is_what_appending_its_steps_would_be_and_goes_on(steps: list[Step], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(steps)))
    stop = data.draw(st.integers(start, len(steps)))
    again = data.draw(st.integers(0, stop - start))
    part, expected = RoundStore(steps).between(start, stop), RoundStore(steps[start:stop])
    assert figures(part) == figures(expected)
    assert figures(part.between(again, stop - start)) == figures(RoundStore(steps[start + again : stop]))
    for step in steps:
        part.append(step)
        expected.append(step)
    assert figures(part) == figures(expected)


def test_parts_may_begin_within_a_block() -> None:
    steps = [make_step(index % 8, 8, index=index, text=f"w{index % 50}") for index in range(5 * ROUNDS)]
    whole = RoundStore(steps)
    for start, stop in ((0, 7), (31, 33), (ROUNDS, 3 * ROUNDS), (45, 120), (65, len(steps))):
        part = whole.between(start, stop)
        assert figures(part) == figures(RoundStore(steps[start:stop]))
        part.append(steps[0])
        assert part[-1] == steps[0] and len(whole) == len(steps)


def figures(history: RoundStore) -> list[object]:
    """Everything that a history tells."""
    columns = (
        history.time, history.accepted, history.verified, history.emitted, history.draft_us, history.verify_us,
        history.total_us, history.accepted_sum, history.verified_sum, history.emitted_sum, history.draft_us_sum,
        history.verify_us_sum, history.total_us_sum, history.context_length,
    )  # fmt: skip
    told = [(history[i], history.acceptance(i), history.cost(i), history.rate(i)) for i in range(len(history))]
    return [*(list(column) for column in columns), told, list(history), history.latest, history.latest_drafted]


def test_iterating_sees_what_is_appended_meanwhile() -> None:
    history = RoundStore([make_step(3, 15, index=index) for index in range(ROUNDS)])
    steps = history.steps(ROUNDS - 1)
    next(steps)
    history.append(make_step(4, 15, index=ROUNDS))
    assert next(steps).num_accepted == 4


@given(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80)), min_size=1, max_size=20))
@settings(max_examples=examples(30))
def test_a_server_may_draft_more_than_this_engine_and_nothing_is_lost(sizes: list[tuple[int, int]]) -> None:
    steps = [make_step(min(pair), max(pair), index=index) for index, pair in enumerate(sizes)]
    counted = RoundStore(steps).acceptance(-1)
    drafted = [step for step in steps if step.draft]
    assert counted.num_accepted_draft_tokens == sum(step.num_accepted for step in drafted)
    assert (counted.num_draft_tokens, counted.num_spec_steps) == (
        sum(len(step.draft) for step in drafted),
        len(drafted),
    )
    assert len(counted.positions) == len(counted.histogram) - 1
