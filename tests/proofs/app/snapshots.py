"""``python -m tests.proofs.app.snapshots [SCREEN ...]``: what every screen looks like, written down again.

A picture is a text file: the characters of the screen, then for every row its styles in runs, each a letter and its
length, then what the letters mean in the dark theme and in the light one. It depends on nothing but the program: the
scripted engine's clock is a counter.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache, partial
from itertools import count, groupby
from pathlib import Path
from string import ascii_letters
from typing import Any

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static

from dflash_tui.app.course import CourseApp
from dflash_tui.app.screens.asking import AskScreen
from dflash_tui.app.screens.race import RaceScreen
from dflash_tui.app.widgets.attached import Attached
from dflash_tui.core.files.places import sessions_directory
from dflash_tui.core.lesson.lesson import open_lesson
from dflash_tui.core.replay.bundled import find_recording
from dflash_tui.core.settings.config import ScreenOptions
from engine.events import accepted_in
from tests.app.conftest import Driver, running
from tests.app.replaying import replaying
from tests.core.sessions.test_archive import write
from tests.scripted_server import ScriptedServer

FOLDER = Path(__file__).parent / "snapshots"
SIZES = ((120, 36), (80, 24), (60, 18))
THEMES = ("dflash-dark", "dflash-light")
ROUND_SECONDS = 0.05
STEADY_SECONDS = 0.15
"""What does not change for so long is there to stay: a screen at rest looks at its figures every tenth of a second."""
STILL = ScreenOptions(reduced_motion=True)
STORY = "Once upon a time there was a drafter that guessed."

Size = tuple[int, int]
Cell = tuple[str, Style]
Play = Callable[[Driver], Awaitable[None]]


# What is played before the picture is taken


async def answered(chat: Driver) -> None:
    await chat.ask_and_wait("Write a page with drones")


async def with_keys(chat: Driver, keys: Iterable[str]) -> None:
    """After an answer."""
    await answered(chat)
    for key in keys:
        await chat.pilot.press(key)
        await chat.pilot.pause()


async def tree(chat: Driver) -> None:
    """A round that kept four tokens of a tree, one of them a second choice, and the cursor there."""
    await with_keys(chat, ("f3", "home"))
    kept: list[int] = []
    while len(kept) < 4 or not any(kept):
        await chat.pilot.press("full_stop")
        step = chat.screen.viewer.step
        assert step is not None
        kept = [step.tree[row - 1].choice for row in accepted_in(step)]
    for _ in range(kept.index(1) + 1):
        await chat.pilot.press("right")


async def sessions(chat: Driver) -> None:
    write(sessions_directory(), "Write a quicksort in Python", "and now in C", at=1)
    write(sessions_directory(), "What is 12 * 13?", at=86_400)
    await chat.pilot.press("ctrl+o")
    # They are looked for beside the screen, which until then stands still.
    await chat.until(lambda: all(asked in words(chat.app) for asked in ("What is 12 * 13?", "Write a quicksort in")))


async def race(chat: Driver) -> None:
    await chat.ask("/race Tell me a story")
    await chat.until(lambda: isinstance(chat.app.screen, RaceScreen))
    screen = chat.app.screen
    assert isinstance(screen, RaceScreen)
    heads = list(screen.query(".lane-head").results(Static))
    await chat.until(lambda: all(str(head.render()).startswith("✓") for head in heads))  # replayed to the end
    await chat.until(lambda: "medians" in words(chat.app))


async def files(chat: Driver) -> None:
    """A question with a file, and one that is being written: a file is attached, and a path completed."""
    await chat.ask_and_wait("Whose is @LICENSE?")
    chat.prompt.focus()
    await chat.pilot.press(*"May I sell @LICENSE and @them")
    await chat.until(lambda: bool(chat.screen.query_one(Attached).display))


async def full(chat: Driver) -> None:
    """The choice when a question no longer fits."""
    await answered(chat)
    ready = chat.screen.chat.reducer.ready
    assert ready is not None
    chat.screen.chat.reducer.ready = replace(ready, max_context=600)
    chat.screen.draw_gauges()
    await chat.ask("And once more, in blue? " * 12)
    await chat.until(lambda: isinstance(chat.app.screen, AskScreen))


async def nothing(chat: Driver) -> None:
    """The screen as it comes up."""


PLAYS: dict[str, Play] = {
    "start": nothing,
    "chat": answered,
    "steps": partial(with_keys, keys=("f3", "left_curly_bracket")),
    "tree": tree,
    "slow-motion": partial(with_keys, keys=("f5", "right_square_bracket", "right_square_bracket")),
    "presenter": partial(with_keys, keys=("f8", *["right_square_bracket"] * 4)),
    "help": partial(with_keys, keys=("f1",)),
    "statistics": partial(with_keys, keys=(*"/stats", "enter")),
    "sessions": sessions,
    "files": files,
    "full": full,
    "race": race,
    "server": answered,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "tree": {"trees": True},
    "race": {"answer": STORY},
    "files": {"answer": STORY},
    "server": {"engine": ScriptedServer, "notice": True, "answer": STORY},
}
SCREENS = (*PLAYS, "replay", "lesson")


# Taking it


@asynccontextmanager
async def playing(screen: str, folder: Path) -> AsyncIterator[tuple[App[None], Pilot[None]]]:
    """A screen of the first size, before its picture is taken. ``folder`` is for what is written meanwhile."""
    if screen == "lesson":
        lesson = CourseApp(open_lesson(), folder, screen_options=STILL)
        async with lesson.run_test(size=SIZES[0]) as pilot:
            await pilot.press("right", "right")
            yield lesson, pilot
    elif screen == "replay":
        async with replaying(find_recording("code"), SIZES[0], screen_options=STILL) as replay:
            await replay.ended()
            await replay.pilot.press("comma")
            yield replay.app, replay.pilot
    else:
        clock = count(0.0, ROUND_SECONDS)
        options = OPTIONS.get(screen, {})
        async with running(folder, SIZES[0], screen_options=STILL, clock=clock.__next__, **options) as chat:
            await PLAYS[screen](chat)
            yield chat.app, chat.pilot


async def in_themes(app: App[None], pilot: Pilot[None]) -> list[list[list[Cell]]]:
    rows = []
    for theme in THEMES:
        app.theme = theme
        rows.append(await drawn(app, pilot))
    return rows


def words(app: App[None]) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def drawn(app: App[None], pilot: Pilot[None]) -> list[list[Cell]]:
    """As soon as nothing changes any more. A screen that was just pushed is blank, on a busy machine for a while."""
    before: list[list[Cell]] = []
    while True:
        await pilot.pause(STEADY_SECONDS)
        rows = [list(split(row)) for row in app.screen._compositor.render_strips()]
        if rows == before and any(character.strip() for row in rows for character, _ in row):
            return rows
        before = rows


def split(row: Iterable[Segment]) -> Iterator[Cell]:
    for text, style, _ in row:
        for character in text:
            yield character, style or Style()


# Writing it down


@cache
def described(style: Style) -> str:
    """Attributes and colours, without what only the program knows (links, offsets)."""
    names = ("bold", "dim", "italic", "underline", "strike", "reverse")
    attributes = [name for name in names if getattr(style, name)]
    return " ".join([*attributes, colour(style.color), "on", colour(style.bgcolor)])


def colour(value: Color | None) -> str:
    return "default" if value is None else value.triplet.hex if value.triplet else value.name


def picture(dark: list[list[Cell]], light: list[list[Cell]]) -> str:
    """The text of a screen and its styles in both themes, which must show the same characters."""
    texts, others = (["".join(character for character, _ in row) for row in rows] for rows in (dark, light))
    assert "\n".join(texts) == "\n".join(others), "the themes show different characters"
    letters: dict[tuple[str, str], str] = {}
    runs = []
    for row, other in zip(dark, light, strict=True):
        pairs = [(described(one), described(two)) for (_, one), (_, two) in zip(row, other, strict=True)]
        for pair in pairs:
            letters.setdefault(pair, ascii_letters[len(letters)])
        runs.append(" ".join(f"{letters[pair]}{len(list(same))}" for pair, same in groupby(pairs)))
    legend = [f"{letter} {one} | {two}" for (one, two), letter in letters.items()]
    return "\n".join([*(text.rstrip() for text in texts), "", *runs, "", *legend, ""])


async def pictures(app: App[None], pilot: Pilot[None]) -> AsyncIterator[tuple[Size, str]]:
    """The picture of each size, one after the other: a terminal that becomes smaller."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    for size in SIZES:
        if app.size != size:
            await pilot.resize_terminal(*size)
        yield size, picture(*await in_themes(app, pilot))


def path_of(screen: str, size: Size) -> Path:
    return FOLDER / f"{screen}-{size[0]}x{size[1]}.txt"


async def write_down(screen: str, folder: Path) -> None:
    async with playing(screen, folder) as (app, pilot):
        async for size, taken in pictures(app, pilot):
            path_of(screen, size).write_text(taken, "utf-8")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    os.environ["DFLASH_CHAT_CONFIG"] = ""
    for screen in sys.argv[1:] or SCREENS:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["DFLASH_CHAT_STATE"] = folder
            asyncio.run(write_down(screen, Path(folder)))
        print(screen, flush=True)


if __name__ == "__main__":
    main()
