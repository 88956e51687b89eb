from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.core.rounds.lenses import LEGENDS, LENSES, Lens, LensReading, bin_of, next_lens
from engine.events import DraftToken, EmittedToken, Step
from engine.rounds.store import RoundStore
from tests.pace import examples

FEW = settings(max_examples=examples(30), deadline=None)


PROBABILITIES = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)


@st.composite
def answers(draw: st.DrawFn) -> list[Step]:
    """Rounds whose drafts have probabilities and whose milliseconds differ."""
    steps: list[Step] = []
    for index in range(draw(st.integers(1, 45))):
        sure = draw(st.lists(PROBABILITIES, max_size=6)) if index else []
        accepted = draw(st.integers(0, len(sure)))
        draft = tuple(DraftToken(number, "d", p) for number, p in enumerate(sure))
        own = EmittedToken(99, "t", "plain" if not draft else "corrected" if accepted < len(draft) else "bonus")
        emitted = (*(EmittedToken(token.id, "d", "accepted") for token in draft[:accepted]), own)
        cost = draw(st.integers(1, 40)) / 2
        steps.append(
            Step(1, index, 0.01 * (index + 1), draft, accepted, emitted, len(draft) + 1, 1.0, 2.0, cost, 9, 7, 0.0)
        )
    return steps


def shades(lens: Lens, steps: list[Step]) -> list[str | None]:
    """Every token's shade, with the answer there as a whole."""
    history = RoundStore(steps)
    reading = LensReading(lens, history)
    return [reading.shade(token) for token in range(history.num_tokens)]


@given(answers())
@FEW
def test_confidence_is_the_drafters_for_what_it_guessed_right(steps: list[Step]) -> None:
    expected = [
        f"sure-{bin_of(step.draft[place].probability) + 1}" if token.verdict == "accepted" else "undrafted"
        for step in steps
        for place, token in enumerate(step.emitted)
    ]
    assert shades("confidence", steps) == expected


@given(PROBABILITIES, PROBABILITIES)
@FEW
def test_a_surer_draft_is_never_in_a_lower_bin(one: float, other: float) -> None:
    assert (bin_of(min(one, other)) <= bin_of(max(one, other))) and 0 <= bin_of(one) <= 4


@given(answers())
@FEW
def test_verdicts_and_plain_text_need_no_shade(steps: list[Step]) -> None:
    assert set(shades("plain", steps)) == {None}


def test_a_running_answer_is_read_as_it_grows() -> None:
    history = RoundStore()
    reading = LensReading("confidence", history)
    assert reading.shade(0) is None
    for index in range(70):
        draft = (DraftToken(1, "d", 0.5), DraftToken(2, "d", 0.1))
        emitted = (EmittedToken(1, "d", "accepted"), EmittedToken(3, "t", "corrected"))
        history.append(Step(1, index, 0.1 * index, draft, 1, emitted, 3, 1.0, 1.0, 2.0, 9, 3, 0.0))
        assert [reading.shade(2 * index), reading.shade(2 * index + 1)] == ["sure-3", "undrafted"]


def test_every_lens_but_two_explains_its_shades_and_they_come_round() -> None:
    assert set(LENSES) - set(LEGENDS) == {"verdict", "plain"}
    lens: Lens = "verdict"
    seen = []
    for _ in LENSES:
        seen.append(lens)
        lens = next_lens(lens)
    assert tuple(seen) == LENSES and lens == "verdict"
