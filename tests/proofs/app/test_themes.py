"""Theme files: what they may say, how far apart their colours are, and what happens on the screen when they change."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import pytest
from textual.theme import Theme

from dflash_tui.app.screens.picker import ThemePicker
from dflash_tui.app.theming import (
    RAMP,
    VERDICTS,
    ThemeError,
    default_variables,
    defaults_for,
    ground_of,
    lightness,
    load_themes,
    read_theme,
)
from dflash_tui.core.files.places import bundled_themes_dir
from tests.app.colour_vision import VISIONS, Vision, closest, contrast, neighbours
from tests.app.conftest import Launch

BUNDLED = {path.stem: read_theme(path) for path in sorted(bundled_themes_dir().glob("*.toml"))}
COLOURED = sorted(BUNDLED.keys() - {"mono", "mono-light"})
ON_SCREEN = ("accepted", "corrected", "bonus", "rejected", "plain")
"""Verdicts that stand beside each other in the transcript and the strip."""
DISTANCE = 20.0
"""CIE76 between any two verdicts, for every type of colour vision. Some 2.3 is just noticeable side by side."""
STEP = 12.0
"""The same between neighbours of a ramp, where no colour may do all of it: L* too goes one way, by half of this."""
JUST_NOTICEABLE = 2.3
"""In L*, side by side."""
CONTRAST, ENHANCED = 4.5, 7.0
"""WCAG 2 AA and AAA for text."""


@pytest.fixture
def own_themes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder of themes, empty."""
    folder = tmp_path / "themes"
    folder.mkdir()
    monkeypatch.setattr("dflash_tui.app.theming.user_themes_dir", lambda: folder)
    return folder


def verdict_colours(theme: Theme) -> dict[str, str]:
    return {verdict: theme.variables[f"verdict-{verdict}"] for verdict in VERDICTS}


def styles(theme: Theme) -> dict[str, str]:
    variables = {**default_variables(), **theme.variables}
    return {verdict: variables[f"verdict-{verdict}-style"] for verdict in VERDICTS}


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_every_text_can_be_read_on_every_ground(name: str) -> None:
    theme = BUNDLED[name]
    texts = {**verdict_colours(theme), "foreground": theme.foreground, "primary": theme.primary, "error": theme.error}
    on_bars = {role: texts[role] for role in ("foreground", "primary", "error", "pending")}
    for ground, roles in (("background", texts), ("surface", texts), ("panel", on_bars)):
        behind = getattr(theme, ground)
        for role, colour in roles.items():
            ratio = contrast(colour, behind)
            assert ratio >= CONTRAST, f"{role} on {ground}: {ratio:.2f}"
            assert ratio >= ENHANCED or name != "high-contrast" or ground == "panel", f"{role} on {ground}: {ratio:.2f}"


def looks_of(theme: Theme) -> dict[str, str]:
    return {**defaults_for(theme), **theme.variables}


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_a_ramp_has_five_steps_that_everybody_tells_apart(name: str) -> None:
    """The background is the first. Text can be read on each."""
    theme = BUNDLED[name]
    looks = looks_of(theme)
    grounds = [str(theme.background), *(looks[f"ramp-{step}"] for step in RAMP)]
    least = ENHANCED if name == "high-contrast" else CONTRAST
    assert all(contrast(looks[f"ramp-{step}-text"], looks[f"ramp-{step}"]) >= least for step in RAMP)
    for vision in VISIONS:
        for apart, lighter in neighbours(grounds, vision):
            assert apart >= STEP, f"{vision}: {apart:.1f}"
            assert (lighter if theme.dark else -lighter) >= STEP / 2, f"{vision}: {lighter:.1f}"


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("name", COLOURED)
def test_verdicts_differ_for_every_type_of_colour_vision(name: str, vision: Vision) -> None:
    distance, one, other = closest(verdict_colours(BUNDLED[name]), vision)
    assert distance >= DISTANCE, f"{one} and {other}: {distance:.1f}"


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_verdicts_differ_without_colour(name: str) -> None:
    for one, other in combinations(ON_SCREEN, 2):
        assert styles(BUNDLED[name])[one] != styles(BUNDLED[name])[other], (one, other)


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_success_is_seen_on_a_washed_out_projector(name: str) -> None:
    """In grey and at a quarter of the contrast: what was guessed right, what was corrected, and what nobody guessed."""
    theme = BUNDLED[name]
    looks = looks_of(theme)
    grounds = [looks["landed-accepted"], looks["landed-corrected"], ground_of(theme)]
    greys = [lightness(ground) / 4 for ground in grounds]
    for one, other in combinations(greys, 2):
        assert abs(one - other) >= 2 * JUST_NOTICEABLE, greys
    assert abs(lightness(looks["landed-bonus"]) / 4 - greys[2]) >= 2 * JUST_NOTICEABLE
    texts = [lightness(looks[f"shown-{verdict}"]) / 4 for verdict in ("accepted", "corrected", "plain")]
    for one, other in combinations(texts, 2):
        assert abs(one - other) >= 2 * JUST_NOTICEABLE, texts
    for verdict in ("accepted", "corrected", "bonus", "plain"):
        assert contrast(looks[f"shown-{verdict}"], ground_of(theme)) >= CONTRAST
    for verdict in ("accepted", "corrected", "bonus"):
        assert contrast(looks[f"landed-{verdict}-text"], looks[f"landed-{verdict}"]) >= CONTRAST


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name = ", "line 1: Invalid value"),
        ("dark = true\n[colors]\nforeground = '#fff'", "line 2: .*primary"),
        ("[colors]\nprimary = 'bluish'", "line 2: .*no colour"),
        ("[colors]\nprimary = '#fff'\n[verdict]\naccept = '#fff'", "line 4: .*'accept'"),
        ("[colors]\nprimary = '#fff'\n[style]\nbonus = 'bold shiny'", "line 4: .*no style"),
        ("[colors]\nprimary = '#fff'\n[colours]\nbonus = '#fff'", "line 3: .*'colours'"),
    ],
)
def test_a_broken_theme_says_what_is_wrong_and_where(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "user.toml"
    path.write_text(text)
    with pytest.raises(ThemeError, match=complaint) as failure:
        read_theme(path)
    assert str(failure.value).startswith(f"{path}, line ")


def test_a_users_theme_joins_the_bundled_ones(own_themes: Path) -> None:
    (own_themes / "mine.toml").write_text("[colors]\nprimary = '#ff0000'")
    (own_themes / "broken.toml").write_text("[colors]")
    themes, errors = load_themes()
    assert {"dflash-dark", "dflash-light", "mine"} <= {theme.name for theme in themes}
    assert len(errors) == 1 and "broken.toml" in str(errors[0])


async def test_a_theme_of_ones_own_shows_and_the_errors_of_others_are_told(launch: Launch, own_themes: Path) -> None:
    (own_themes / "mine.toml").write_text("[colors]\nprimary = '#ff0000'\n[verdict]\naccepted = '#ff0000'")
    (own_themes / "other.toml").write_text("[colors]\nprimary = 'nonsense'")
    async with launch(theme="mine") as chat:
        await chat.until(lambda: "line 2" in chat.notices())
        assert chat.log.get_component_styles("token-log--accepted").color.hex == "#FF0000"


async def test_themes_are_seen_before_they_are_chosen(launch: Launch) -> None:
    async with launch() as chat:
        await chat.ask("/theme")
        await chat.until(lambda: isinstance(chat.app.screen, ThemePicker))
        await chat.pilot.press("down")
        await chat.until(lambda: chat.app.theme != "dflash-dark")
        await chat.pilot.press("escape")
        await chat.until(lambda: chat.app.theme == "dflash-dark")
        chat.app.search_themes()
        await chat.until(lambda: isinstance(chat.app.screen, ThemePicker))
        await chat.pilot.press(*"okabe")
        await chat.until(lambda: chat.app.theme == "okabe-ito")
        await chat.pilot.press("enter")
        await chat.until(lambda: chat.app.screen is chat.screen)
        assert chat.app.theme == "okabe-ito" and "config.toml" in chat.notices()


@pytest.mark.parametrize(("theme", "mono"), [(None, "mono"), ("dflash-light", "mono-light")])
async def test_who_wants_no_colour_gets_a_palette_for_it(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, theme: str | None, mono: str
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with launch(theme=theme, ready=False) as chat:
        assert chat.app.theme == mono


def test_a_theme_of_colours_alone_gets_verdicts_that_can_be_read(tmp_path: Path) -> None:
    """They are made for other grounds, and lifted where that is not enough."""
    for dark, ground in product((True, False), ("#000000", "#444444", "#bbbbbb", "#ffffff")):
        path = tmp_path / "mine.toml"
        colours = f"primary = '#336699'\nbackground = '{ground}'\nsurface = '{ground}'"
        path.write_text(f"dark = {str(dark).lower()}\n[colors]\n{colours}\n")
        looks = looks_of(read_theme(path))
        assert all(contrast(looks[f"verdict-{verdict}"], ground) >= CONTRAST for verdict in VERDICTS), (dark, ground)


async def test_an_unknown_theme_falls_back_and_says_so(launch: Launch) -> None:
    async with launch(theme="mauve") as chat:
        assert chat.app.theme == "dflash-dark" and "mauve" in chat.notices()
