"""Every screen at every size looks as it was when somebody last looked at it and wrote it down."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.style import Style

from tests.proofs.app import snapshots
from tests.proofs.app.snapshots import SCREENS, SIZES, drawn, path_of, pictures, playing

from .test_contrast import read_in_themes, unread

REWRITE = "python -m tests.proofs.app.snapshots"
OF_EVERY_KIND = ("start", "chat", "steps", "presenter", "help", "sessions", "lesson")
"""Screens whose words between them have every colour there is."""
GREYED = ("full", "server", "replay")
"""Screens with parts that are greyed: what a server or a recording has set, and the chat behind a question."""


@pytest.fixture(autouse=True)
def _local_time_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


@pytest.mark.parametrize("screen", SCREENS)
async def test_a_screen_looks_as_it_did_and_every_word_can_be_read(screen: str, tmp_path: Path) -> None:
    async with playing(screen, tmp_path) as (app, pilot):
        async for size, taken in pictures(app, pilot):
            expected = path_of(screen, size).read_text("utf-8")
            assert taken == expected, f"if this is how it should look: {REWRITE} {screen}"
            assert screen in GREYED or not unread(app), size
            if size == SIZES[0] and screen in OF_EVERY_KIND:
                await read_in_themes(app, pilot.pause)


async def test_verdicts_differ_without_colour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of the legend are drawn in the looks that they explain."""
    monkeypatch.setenv("NO_COLOR", "1")
    async with playing("chat", tmp_path) as (app, pilot):
        rows = await drawn(app, pilot)
    legend = next(row for row in rows if "corrected" in "".join(character for character, _ in row))
    text = "".join(character for character, _ in legend)
    looks = {word: attributes(legend[text.index(word)][1]) for word in ("accepted", "corrected", "bonus", "rejected")}
    assert len(set(looks.values())) == len(looks), looks
    answer = {attributes(style) for row in rows[1:24] for character, style in row[:79] if character.isalnum()}
    assert {looks["corrected"], looks["bonus"], looks["accepted"]} <= answer
    assert all(is_grey(style) for row in rows for _, style in row)


def attributes(style: Style) -> tuple[bool, ...]:
    names = ("bold", "italic", "underline", "strike")
    return tuple(bool(getattr(style, name)) for name in names)


def is_grey(style: Style) -> bool:
    colours = [colour.triplet for colour in (style.color, style.bgcolor) if colour is not None and colour.triplet]
    return all(len(set(triplet)) == 1 for triplet in colours)


def test_nothing_is_kept_of_screens_that_are_gone() -> None:
    kept = {path.name for path in snapshots.FOLDER.iterdir()}
    assert kept == {path_of(screen, size).name for screen in SCREENS for size in SIZES}
