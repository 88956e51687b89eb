from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.core.rounds.travel import Position, Traveller
from engine.events import Step
from engine.rounds.store import RoundStore
from tests.pace import examples

from ..rounds_for_tests import rounds

FEW = settings(max_examples=examples(30), deadline=None)


@dataclass
class Turn:
    number: int
    num_prompt_tokens: int = 0
    rounds: RoundStore = field(default_factory=RoundStore)


CONVERSATIONS = st.lists(rounds(), min_size=1, max_size=4)


def travels(conversation: list[list[Step]]) -> tuple[Traveller, list[Position], list[Step]]:
    """A traveller, every place in order, and the step at each. An empty turn stands between the others."""
    turns: list[Turn] = []
    for number, steps in enumerate(conversation):
        turn = Turn(2 * number + 1)
        for step in steps:
            turn.rounds.append(replace(step, turn=turn.number))
        turns += [turn, Turn(2 * number + 2)]
    places = [Position(turn.number, step) for turn in turns for step in range(len(turn.rounds))]
    return Traveller(lambda: turns), places, [step for steps in conversation for step in steps]


@given(CONVERSATIONS)
@FEW
def test_every_round_is_reached_one_by_one_both_ways(conversation: list[list[Step]]) -> None:
    travel, places, _ = travels(conversation)
    for order, direction in ((places, 1), (places[::-1], -1)):
        for here, there in zip(order, [*order[1:], None], strict=True):
            assert travel.next_step(here, direction) == there
    assert travel.latest() == places[-1]


@given(CONVERSATIONS, st.data())
@FEW
def test_rejections_are_reached_in_order(conversation: list[list[Step]], data: st.DataObject) -> None:
    travel, places, steps = travels(conversation)
    start = data.draw(st.integers(0, len(places) - 1))
    behind = [place for place, step in zip(places, steps, strict=True) if step.is_corrected]
    ahead = [place for place in behind if places.index(place) > start]
    before = [place for place in behind if places.index(place) < start]
    assert travel.next_rejection(places[start], 1) == (ahead[0] if ahead else None)
    assert travel.next_rejection(places[start], -1) == (before[-1] if before else None)


@given(CONVERSATIONS, st.integers(0, 15), st.data())
@FEW
def test_a_bar_of_the_histogram_leads_round_all_its_rounds(
    conversation: list[list[Step]], accepted: int, data: st.DataObject
) -> None:
    travel, places, steps = travels(conversation)
    start = data.draw(st.sampled_from(places))
    wanted = {
        place
        for place, step in zip(places, steps, strict=True)
        if place.turn == start.turn and step.draft and step.num_accepted == accepted
    }
    seen, here = set(), start
    for _ in range(len(wanted) + 1):
        there = travel.next_with(here, accepted)
        assert (there is None) == (not wanted)
        if there is None:
            return
        seen.add(there)
        here = there
    assert seen == wanted


@given(CONVERSATIONS)
@FEW
def test_the_cursor_walks_through_every_token(conversation: list[list[Step]]) -> None:
    travel, places, _ = travels(conversation)
    turn = places[0].turn
    here = travel.next_token(Position(turn, 0), 1)
    tokens = []
    while here is not None:
        tokens.append(here)
        assert travel.of_token(turn, here.token or 0) == here
        here = travel.next_token(here, 1)
    expected = [(index, token) for index, step in enumerate(conversation[0]) for token in step.emitted]
    assert [place.step for place in tokens] == [index for index, _ in expected]
    assert [place.token for place in tokens] == list(range(len(expected)))


def test_where_there_is_nothing_there_is_no_place() -> None:
    travel = Traveller(lambda: [Turn(1)])
    assert travel.latest() is None and travel.at(1, 0) is None and travel.of_token(1, 0) is None
    assert travel.next_step(Position(9, 0), 1) is None and travel.next_with(Position(9, 0), 1) is None


@given(CONVERSATIONS, st.integers(-5, 100))
@FEW
def test_a_number_outside_leads_to_the_nearest_round(conversation: list[list[Step]], number: int) -> None:
    travel, places, _ = travels(conversation)
    last = len(conversation[0]) - 1
    assert travel.at(places[0].turn, number) == Position(places[0].turn, min(max(number, 0), last))
