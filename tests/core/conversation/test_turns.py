from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.core.conversation.reducer import Reducer
from dflash_tui.core.figures.statistics import TurnSnapshot
from engine.events import Step, TurnFinished, TurnStarted
from support.events_for_tests import make_step
from tests.pace import examples

from ..rounds_for_tests import rounds

FEW = settings(max_examples=examples(30), deadline=None)


def figures(snapshot: TurnSnapshot) -> list[float]:
    """Every number of a snapshot, in steps too coarse for the order of additions to show."""
    cost, rate = snapshot.cost, snapshot.rate
    numbers = [cost.draft_ms, cost.verify_ms, cost.total_ms, rate.now, rate.mean, rate.peak, *rate.history]
    return [round(number, 6) for number in numbers]


def played(steps: list[Step]) -> Reducer:
    reducer = Reducer()
    reducer.apply(TurnStarted(1, 40, 0, {}))
    for step in steps:
        reducer.apply(step)
    return reducer


@given(rounds(), st.floats(0.001, 0.7), st.data())
@FEW
def test_the_past_shows_what_the_screen_showed_then(steps: list[Step], pace: float, data: st.DataObject) -> None:
    steps = [
        make_step(s.num_accepted, len(s.draft), index=i, time=round(0.05 + pace * i, 6)) for i, s in enumerate(steps)
    ]
    index = data.draw(st.integers(0, len(steps) - 1))
    then = played(steps[: index + 1]).turn
    now = played(steps).turn
    assert then is not None and now is not None
    past, expected = now.snapshot_at(index), then.snapshot
    assert figures(past) == figures(expected)
    assert past.acceptance == expected.acceptance and past.cost.rounds == expected.cost.rounds
    assert (past.step, past.num_tokens, past.context_length) == (index, expected.num_tokens, expected.context_length)
    assert round(past.ttft_ms or 0, 3) == round(expected.ttft_ms or 0, 3)


def test_only_the_last_step_text_a_finished_answer_is_its_end() -> None:
    reducer = played([make_step(0, 0, index=0, time=0.05), make_step(3, 15, index=1, time=0.1)])
    assert reducer.turn is not None
    assert not reducer.turn.snapshot_at(1).finished
    reducer.apply(TurnFinished(1, "stop", "x"))
    assert [reducer.turn.snapshot_at(index).finished for index in (0, 1)] == [False, True]
