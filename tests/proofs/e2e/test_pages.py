"""Exported pages in a real browser: quiet, alone, readable on a telephone, and usable with keys and mouse."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dflash_tui.core.export.document import Origin
from dflash_tui.core.export.formats import render
from dflash_tui.core.race.clock import RaceClock
from dflash_tui.core.race.race import RaceResult, as_race
from dflash_tui.core.race.report import race_document
from dflash_tui.core.replay.bundled import find_recording
from dflash_tui.core.replay.recording import read_recording
from tests.core.answers_for_tests import hostile_document

from .browser import Browser, missing_browser
from .chatting import PROGRAM

pytestmark = [pytest.mark.browser, pytest.mark.skipif(missing_browser() is not None, reason=str(missing_browser()))]

RIGHT, END, ENTER = "\ue014", "\ue010", "\ue007"
WIDER_THAN_THE_WINDOW = "return document.documentElement.scrollWidth > window.innerWidth"
CONTRAST = """
const channel = (value) => { value /= 255; return value <= .03928 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4; };
const light = (color) => {
  const [red, green, blue] = color.match(/[\\d.]+/g).map(Number).map(channel);
  return .2126 * red + .7152 * green + .0722 * blue;
};
const behind = getComputedStyle(document.querySelector('article')).backgroundColor;
return [...document.querySelectorAll('article .t:not(.later)')].map((token) => {
  const style = getComputedStyle(token), ink = light(style.color);
  const ground = light(style.backgroundColor.endsWith(', 0)') ? behind : style.backgroundColor);
  return (Math.max(ink, ground) + .05) / (Math.min(ink, ground) + .05);
});
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser.started() as started:
        yield started


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled lesson's trace, exported by the program."""
    path = tmp_path_factory.mktemp("pages") / "trace.html"
    subprocess.run([PROGRAM, "export", "lesson", "-o", path], check=True, capture_output=True, timeout=60)
    return path


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "lesson.html"
    subprocess.run([PROGRAM, "lesson", "-o", path], check=True, capture_output=True, timeout=60)
    return path


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "tour.html"
    subprocess.run([PROGRAM, "tour", "-o", path], check=True, capture_output=True, timeout=60)
    return path


@pytest.fixture(scope="module")
def race() -> RaceResult:
    """The first two answers of the lesson: one token at a time, and with drafts."""
    alone, drafted, *_ = read_recording(find_recording("lesson")).turns
    alone.name, drafted.name = "alone", "DFlash"
    return as_race(alone.question, [("alone", alone), ("DFlash", drafted)])


@pytest.fixture(scope="module")
def race_page(tmp_path_factory: pytest.TempPathFactory, race: RaceResult) -> Path:
    path = tmp_path_factory.mktemp("pages") / "race.html"
    path.write_text(render(race_document(race, Origin()), "html"), encoding="utf-8")
    return path


@pytest.mark.parametrize(("width", "scheme"), [(375, "dark"), (1440, "light")])
@pytest.mark.parametrize("name", ["page", "lesson", "race_page"])
def test_a_page_is_quiet_and_readable(
    browser: Browser, request: pytest.FixtureRequest, name: str, width: int, scheme: str
) -> None:
    path: Path = request.getfixturevalue(name)
    browser.visit(path, width, scheme)
    assert browser.console_errors() == []
    assert browser.requests() == [path.resolve().as_uri()]
    assert browser.run("return window.innerWidth") == width
    assert not browser.run(WIDER_THAN_THE_WINDOW)
    assert min(browser.run(CONTRAST)) >= 4.5
    assert browser.run("return parseFloat(getComputedStyle(document.querySelector('.text')).fontSize)") >= 14


def test_the_scrubber_moves_by_keys(browser: Browser, page: Path) -> None:
    browser.visit(page)
    browser.run("document.querySelectorAll('article')[1].querySelector('input').focus()")
    shown = "return document.querySelectorAll('article')[1].querySelector('output').textContent"
    later = "return document.querySelectorAll('article')[1].querySelectorAll('.later').length"
    assert browser.run(later) == 0
    browser.press("\ue011")  # Home
    assert "round 0" in browser.run(shown)
    hidden = browser.run(later)
    assert hidden > 0
    browser.press(RIGHT)
    assert "round 1" in browser.run(shown)
    assert 0 < browser.run(later) < hidden
    browser.press("}")
    assert "then corrected" in browser.run(shown)
    browser.press(END)
    assert browser.run(later) == 0


def test_a_token_tells_its_facts_on_hover(browser: Browser, page: Path) -> None:
    browser.visit(page, 375)
    # One with ink: a line break can't be pointed at.
    tokens = "[...document.querySelectorAll('article')[1].querySelectorAll('.corrected')]"
    token = f"{tokens}.find((token) => /\\w/.test(token.innerText))"
    browser.run(f"{token}.scrollIntoView({{block: 'center'}})")
    box = browser.run(f"const box = {token}.getClientRects()[0]; return [box.x, box.y, box.width, box.height]")
    assert browser.run("return document.getElementById('card').hidden")
    browser.hover(round(box[0] + box[2] / 2), round(box[1] + box[3] / 2))
    card = browser.run("return document.getElementById('card').innerText")
    assert "corrected" in card and "target's probability" in card and "round" in card
    inside = browser.run(
        "const box = document.getElementById('card').getBoundingClientRect();"
        "const room = document.documentElement;"
        "return box.left >= 0 && box.top >= 0 && box.right <= room.clientWidth && box.bottom <= room.clientHeight"
    )
    assert inside


SLIDE = "const slider = document.querySelector('section > .scrub input');"
MOVED = "slider.dispatchEvent(new Event('input'));"
BARS = "return [...document.querySelectorAll('.tracks progress')].map((bar) => bar.value)"


def test_the_lanes_of_a_race_share_a_clock(browser: Browser, race_page: Path, race: RaceResult) -> None:
    """Wherever it stands, each lane shows the rounds that had ended by then; at the end bars are the lanes' times."""
    browser.visit(race_page)
    shown = "return [...document.querySelectorAll('article input')].map((slider) => Number(slider.value))"
    clock = RaceClock(race)
    ended = [0, 0]
    for part in (0.1, 0.25, 0.5, 0.9):
        now = part * clock.length
        browser.run(f"{SLIDE} slider.value = {part} * slider.max; {MOVED}")
        ended = [before + len(steps) for before, steps in zip(ended, clock.advance(now), strict=True)]
        assert browser.run(shown) == [count - 1 for count in ended]
        assert browser.run(BARS) == [lane.tokens for lane in clock.lanes]
    browser.run(f"{SLIDE} slider.value = slider.max; {MOVED}")
    assert browser.run(BARS) == pytest.approx([lane.shown.decode_seconds for lane in race.lanes])
    told = browser.run("return [...document.querySelectorAll('.tracks output')].map((each) => each.textContent)")
    assert told == [f"took {lane.shown.decode_seconds:.2f} s" for lane in race.lanes]
    assert browser.run("return getComputedStyle(document.querySelector('.winner')).visibility") == "visible"


def test_a_race_is_seen_at_every_width(browser: Browser, race_page: Path) -> None:
    """Texts stand side by side where there is room; its bars are on the first screen everywhere."""
    browser.visit(race_page, width=1440)
    tops = "return [...document.querySelectorAll('.lanes article')].map((lane) => lane.getBoundingClientRect().top)"
    assert len(set(browser.run(tops))) == 1
    browser.visit(race_page, width=390)
    assert len(set(browser.run(tops))) == 2, "one below the other"
    assert not browser.run("return document.getElementById('legend').open")
    seen = (
        "return [...document.querySelectorAll('.tracks progress, [data-go=race]')].every("
        "(each) => each.getBoundingClientRect().bottom <= innerHeight && each.getBoundingClientRect().width > 40)"
    )
    assert browser.run(seen)


def test_a_race_plays_from_the_beginning(browser: Browser, race_page: Path) -> None:
    browser.visit(race_page)
    button = "document.querySelector('[data-go=race]')"
    now = "Number(document.querySelector('section > .scrub input').value)"
    assert "pause" in browser.run(f"return {button}.textContent"), "by itself"
    assert browser.run(f"return {now}") < 500
    assert "slowed 20 times" in browser.run("return document.querySelector('.race').innerText")
    browser.run(f"{button}.click()")
    browser.run(f"{SLIDE} slider.value = 900; {MOVED}")
    browser.run(f"{button}.click()")
    browser.wait_for(f"return {button}.textContent.includes('play the race')")
    assert browser.run(f"return {now}") == 1000
    assert browser.run("return document.querySelectorAll('.later').length") == 0
    browser.run(f"{button}.click()")
    browser.run("document.querySelector('article .t').click()")
    assert "play the race" in browser.run(f"return {button}.textContent"), "who moves a lane stops the clock"


def test_a_hostile_answer_does_nothing(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(render(hostile_document(), "html"), encoding="utf-8")
    browser.visit(path)
    assert browser.console_errors() == []
    assert browser.requests() == [path.resolve().as_uri()]
    assert browser.run("return document.images.length") == 0
    assert browser.run("return document.querySelectorAll('.t').length") > 0
    assert browser.run("return document.documentElement.classList.contains('js')"), "the page's own script runs"
