"""Looking at rounds: the step view, time travel, slow motion and lenses, keys in and screen out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.geometry import Region

from dflash_tui.app.widgets.gauges import HistogramGauge, RateGauge
from dflash_tui.app.widgets.rounds.scrubber import Scrubber
from dflash_tui.app.widgets.rounds.step_table import Scene, StepTable, scene_lines
from dflash_tui.app.widgets.rounds.step_view import StepView
from dflash_tui.core.rounds.inspection import inspect_step
from dflash_tui.core.rounds.travel import Position
from engine.events import WidthChoice
from engine.rounds.store import RoundStore
from support.events_for_tests import make_step

from .conftest import Driver, Launch


def lines(chat: Driver) -> list[str]:
    """The screen as text."""
    return [strip.text.rstrip() for strip in chat.screen._compositor.render_strips()]


def shown(chat: Driver) -> str:
    return "\n".join(lines(chat))


def history(chat: Driver) -> RoundStore:
    return chat.screen.chat.reducer.turns[-1].rounds


def place(chat: Driver) -> Position | None:
    return chat.screen.viewer.position


def colours(chat: Driver, word: str) -> set[tuple[str, str]]:
    """Foreground and background of every run in the transcript that holds ``word``."""
    strips = chat.log.render_lines(Region(0, 0, *chat.log.size))
    return {
        (
            str(segment.style.color and segment.style.color.name),
            str(segment.style.bgcolor and segment.style.bgcolor.name),
        )
        for strip in strips
        for segment in strip
        if segment.style and word in segment.text
    }


async def test_the_view_opens_on_the_newest_round_and_closes(chat: Driver) -> None:
    await chat.pilot.press("f3")
    last = history(chat)[-1]
    assert f"round {len(history(chat)) - 1}" in shown(chat) and f"kept {last.num_accepted} of" in shown(chat)
    assert "one at a time: not measured" in shown(chat)
    assert chat.screen.focused is chat.screen.query_one(StepView)
    await chat.pilot.press("escape")
    assert not chat.screen.query_one(StepView).display
    assert chat.screen.focused is chat.prompt


async def test_nothing_to_look_at_is_said(launch: Launch) -> None:
    async with launch() as chat:
        await chat.pilot.press("f3")
        assert "There is no round to look at yet: ask something first." in chat.notices()
        assert not chat.screen.query_one(StepView).display


async def test_every_gauge_shows_its_value_at_the_round(chat: Driver) -> None:
    await chat.pilot.press("f3", "home", "full_stop", "full_stop")
    assert place(chat) == Position(1, 2)
    turn = chat.screen.chat.reducer.turns[-1]
    for gauge in (chat.screen.query_one(RateGauge), chat.screen.query_one(HistogramGauge)):
        assert gauge.facts.turn == turn.snapshot_at(2)
    assert sum(chat.screen.query_one(HistogramGauge).facts.turn.acceptance.histogram) == 2
    await chat.until(lambda: f"context {history(chat).context_length[2]}/" in shown(chat))
    await chat.pilot.press("end")
    assert place(chat) is None
    assert chat.screen.query_one(RateGauge).facts.turn == turn.snapshot


async def test_the_text_behind_the_scrubber_is_dimmed(chat: Driver) -> None:
    end = colours(chat, "swarm")
    await chat.pilot.press("f3", "comma")
    assert colours(chat, "swarm") != colours(chat, "turns")
    await chat.pilot.press("home")
    assert "Here" in chat.log.text
    dimmed = colours(chat, "doctype")
    assert len(dimmed) == 1 and not dimmed & end
    assert "End: live" in shown(chat)


async def test_keys_go_to_rejections_numbers_tokens_and_bars(chat: Driver) -> None:
    steps = list(history(chat))
    rejections = [step.index for step in steps if step.emitted[-1].verdict == "corrected"]
    await chat.pilot.press("f3", "home", "right_curly_bracket", "right_curly_bracket")
    assert place(chat) == Position(1, rejections[1])
    await chat.pilot.press("left_curly_bracket")
    assert place(chat) == Position(1, rejections[0])
    await chat.pilot.press("1", "2", "enter")
    assert place(chat) == Position(1, 12)
    await chat.pilot.press("right", "right")
    first = history(chat).tokens_before(12)
    here = place(chat)
    assert here is not None and here.token == first + 1
    kept = steps[here.step].num_accepted
    alike = [step.index for step in steps if step.draft and step.num_accepted == kept]
    visited = set()
    for _ in alike:
        chat.screen.viewer.visit_kept(kept)
        now = place(chat)
        assert now is not None
        visited.add(now.step)
    assert visited == set(alike)


async def test_a_round_below_what_is_seen_is_brought_into_view(chat: Driver) -> None:
    await chat.pilot.resize_terminal(80, 24)
    await chat.pilot.press("f3", "home")
    assert "it turns." not in shown(chat)
    chat.screen.viewer.visit(Position(1, len(history(chat)) - 1))
    await chat.pilot.pause()
    assert "it turns." in shown(chat)


async def test_a_click_on_a_token_puts_the_cursor_there(chat: Driver) -> None:
    row = next(y for y, line in enumerate(lines(chat)) if "Each drone moves" in line)
    column = lines(chat)[row].index("drone")
    await chat.pilot.click(offset=(column + 1, row))
    here = place(chat)
    assert here is not None and here.token is not None
    step = history(chat)[here.step]
    token = step.emitted[here.token - history(chat).tokens_before(here.step)]
    assert token.text == " drone"
    assert "“·drone”" in shown(chat)


async def test_a_bar_leads_to_its_rounds_and_the_scrubber_anywhere(chat: Driver) -> None:
    gauge = chat.screen.query_one(HistogramGauge)
    gauge.post_message(gauge.Picked(2))
    await chat.until(lambda: place(chat) is not None)
    here = place(chat)
    assert here is not None and history(chat)[here.step].num_accepted == 2
    scrubber = chat.screen.query_one(Scrubber)
    await chat.pilot.mouse_down(scrubber, offset=(1, 0))
    await chat.pilot.mouse_up(scrubber, offset=(1, 0))
    assert place(chat) == Position(1, 0)


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (60, 18)])
async def test_the_sentence_that_explains_a_rejection_is_read_at_every_size(
    chat: Driver, size: tuple[int, int]
) -> None:
    await chat.pilot.resize_terminal(*size)
    await chat.pilot.press("f3", "left_curly_bracket")
    await chat.pilot.pause()
    words = " ".join(shown(chat).split())
    assert "the guess falls, the target's token stands." in words
    assert "moon" in words and "62%" in words and "8%" in words
    assert "✗" in words and "⇒" in words
    assert "one at a time: not measured" in words, "so is what the round cost"
    assert "swarm" in words, "the transcript stays in view"
    assert "Esc close" in words, "so do the keys"
    scene = chat.screen.viewer.scene
    assert scene is not None
    assert str(scene_lines(scene, 60, 6)[-1]).endswith("stands."), "the odds leave the table before the words do"
    least = scene_lines(scene, 60, 5)
    assert str(least[-1]).endswith("…") and all(line.cell_length <= 60 for line in least)
    scrubber = chat.screen.query_one(Scrubber)
    assert f"of {len(history(chat)) - 1}" in lines(chat)[scrubber.region.y]


@pytest.mark.parametrize("width", [78, 58])
def test_what_a_round_cost_is_told_to_the_last_unit(width: int) -> None:
    step = replace(make_step(11, 15), verify_width=13, choice=WidthChoice(0.0004, 0.2, 700.0))
    scene = Scene(inspect_step(step, 7, 107, None, 1.5), keys=("Esc close",))
    *_, choice, cost, _ = map(str, scene_lines(scene, width, 9))
    assert "the 13th is kept in under 0.1" in choice and choice.endswith("0.20 ms")
    assert cost.endswith("one at a time: 12 × 1.5 = 18.0 ms")


@pytest.mark.parametrize("width", [1, 250])
def test_a_round_without_a_token_has_a_table(width: int) -> None:
    """A recording may hold one, and a screen may be as narrow as it likes."""
    step = replace(make_step(0, 0), draft=(), emitted=())
    assert scene_lines(Scene(inspect_step(step, 0, 0, None)), width, 9)


# Slow motion


async def test_teaching_shows_phase_by_phase_and_hides_what_comes(chat: Driver) -> None:
    await chat.pilot.press("f5", "space")
    viewer = chat.screen.viewer
    assert viewer.motion.teaching and not viewer.motion.playing
    await chat.pilot.press("1", "enter")
    step = history(chat)[1]
    assert "slowed for viewing 0.05×" in shown(chat)
    assert "░░░" in shown(chat) and step.emitted[0].text.strip() not in table(chat)
    assert "three drones" not in shown(chat), "what comes later is not to be read yet"
    seen = []
    for _ in range(4):
        await chat.pilot.press("right_square_bracket")
        seen.append(table(chat))
    draft, verify, judge, emit = seen
    assert step.draft[0].text.strip() in draft and "✓" not in draft and ".08" not in draft
    assert ".08" in verify and "kept" not in verify
    assert "✗" in judge and "⇒" not in judge
    assert "⇒" in emit
    assert "three drones" in shown(chat)
    await chat.pilot.press("f5")
    assert place(chat) is None and not viewer.motion.teaching


def table(chat: Driver) -> str:
    """The step view's part of the screen, without its explanation."""
    region = chat.screen.query_one(StepTable).region
    return "\n".join(lines(chat)[region.y : region.y + 8])


# Lenses


async def test_lenses_repaint_and_never_wrap_again(chat: Driver) -> None:
    rows = chat.log.rows
    await chat.pilot.press("f4")
    assert chat.screen.viewer.lenses.lens == "confidence" and "below 20" in shown(chat)
    sure = colours(chat, "swarm")
    await chat.pilot.press("f4")
    assert len(colours(chat, "swarm")) == 1, "plain text has one colour"
    await chat.pilot.press("f4")
    assert "accepted  corrected" in shown(chat)
    assert chat.log.rows is rows
    await chat.ask("/lens confidence")
    assert chat.screen.viewer.lenses.lens == "confidence" and colours(chat, "swarm") == sure
    await chat.ask("/lens x-ray")
    assert "Lenses: verdict, confidence, plain" in chat.notices()
