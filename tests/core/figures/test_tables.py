"""The tables behind the gauges: the same numbers, in people's words."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.core.conversation.reducer import Reducer
from dflash_tui.core.figures.pass_costs import pass_costs, pass_table
from dflash_tui.core.figures.statistics import NOT_KNOWN, TurnSnapshot
from dflash_tui.core.figures.table import Table
from dflash_tui.core.figures.tables import BEYOND_MEMORY, GaugeFacts, tables
from engine.events import Step, TurnStarted
from engine.rounds.store import RoundStore
from support.events_for_tests import make_step
from tests.core.rounds_for_tests import rounds


def by_id(facts: GaugeFacts) -> dict[str, Table]:
    return {table.id: table for table in tables(facts)}


def played(steps: list[Step]) -> TurnSnapshot:
    reducer = Reducer()
    reducer.apply(TurnStarted(1, 40, 12, {}))
    for step in steps:
        reducer.apply(step)
    assert reducer.turn is not None
    return reducer.turn.snapshot


@given(rounds(), st.lists(st.sampled_from((0.0, 0.001, 7.5, 1e6)), max_size=64))
def test_every_table_is_even_and_says_something(steps: list[Step], timed_ms: list[float]) -> None:
    history = RoundStore(steps)
    costs = pass_costs(history.pass_times(-1) if steps else (), timed_ms)
    timed = [step for step in steps[1:] if step.verify_ms]
    assert sum(each.passes for each in costs) == len(timed) + sum((step.alone_ms or 0) > 0 for step in steps[1:])
    facts = GaugeFacts(played(steps), max_context=4096, num_prompt_tokens=40, rows=2)
    made = tables(facts, costs)
    assert tables(facts, costs, drawn=False)[0] == made[0]
    for table in made:
        assert table.rows and len({len(row) for row in (*table.rows, *([table.head] if table.head else []))}) == 1
        assert all(cell for row in table.rows for cell in row)
    assert len({table.id for table in made}) == len(made)


@given(rounds())
def test_tables_agree_with_the_snapshot(steps: list[Step]) -> None:
    turn = played(steps)
    made = by_id(GaugeFacts(turn, max_context=4096))
    assert made["speed"].rows[0][1] == f"{turn.num_tokens:,}"
    if turn.acceptance.num_spec_steps:
        counts = [int(row[1].replace(",", "")) for row in made["histogram"].rows]
        assert sum(counts) == turn.acceptance.num_spec_steps
        assert made["acceptance"].rows[-1][1] == f"{turn.tokens_per_round:.2f}"


def test_who_guessed_and_how_often_wide_rounds_kept_how_many() -> None:
    step = make_step(20, 20)
    draft = tuple(replace(token, source="lookup" if place else None) for place, token in enumerate(step.draft))
    made = by_id(GaugeFacts(played([make_step(0, 0, index=0), replace(step, draft=draft)])))
    rows = {row[0]: row[1] for row in made["acceptance"].rows}
    assert rows["of the accepted guessed by drafter"] == "5%"
    assert rows["of the accepted guessed by lookup"] == "95%"
    assert [row[0] for row in made["histogram"].rows] == [*map(str, range(16)), "20"]


def test_what_memory_allows_is_said_where_its_pace_is_known() -> None:
    turn = played([replace(make_step(0, 0, index=0), time=0.0), make_step(3, 4, time=0.1)])
    rows = dict(by_id(GaugeFacts(turn, floor_ms=50.0))["speed"].rows)
    assert rows[BEYOND_MEMORY] == "2.00×", "forty tokens a second, where twenty can be read"
    assert dict(by_id(GaugeFacts(turn))["speed"].rows)[BEYOND_MEMORY] == NOT_KNOWN


def test_what_a_pass_costs_is_what_was_timed() -> None:
    costs = pass_costs([(3, 2000), (4, 4000), (64, 9000)], (1.0, 1.5, 0.0, 2.0))
    *rows, bars = zip(*pass_table(costs, 3, drawn=True).rows, strict=True)
    head, *rest = zip(*rows, strict=True)
    assert head == ("1", "1.00 ms", "-", "0")
    assert rest == [
        ("2", "1.50 ms", "-", "0"),
        ("3 to 4, now 3", "2.00 ms", "3.00 ms", "2"),
        ("33 to 64", "-", "9.00 ms", "1"),
    ]
    assert [bar.count("█") for bar in bars] == [0, 0, 7, 20], "of what answers took, as wide passes weren't timed"
    assert pass_table((), 1, drawn=True).rows == (("by its rows", NOT_KNOWN),), "a server doesn't tell"
