"""Themes from TOML files: those that come with the program and the user's own, in one format."""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from textual.color import Color, ColorParseError
from textual.theme import Theme

from dflash_tui.core.files.places import bundled_themes_dir
from dflash_tui.core.settings.config import config_directory, line_of, syntax_place

DARK_THEME, LIGHT_THEME = "dflash-dark", "dflash-light"
DEFAULT_THEME = DARK_THEME
VERDICTS = ("accepted", "corrected", "bonus", "rejected", "pending", "plain")
ATTRIBUTES = ("bold", "dim", "italic", "underline", "strike", "reverse", "none")
_COLORS = {
    "primary", "secondary", "accent", "foreground", "background", "surface", "panel", "boost", "success", "warning",
    "error",
}  # fmt: skip
RAMP = ("1", "2", "3", "4")
"""Names of the four background colours of a lens that shows an amount, the weakest first."""
_TABLES = {"colors": _COLORS, "verdict": set(VERDICTS), "style": set(VERDICTS), "ramp": set(RAMP)}
READABLE, NEARLY = 4.5, 1.04
"""WCAG's contrast ratio for text, and how much more is sure to be enough of it once colours are in whole steps."""
MONO_DARK, MONO_LIGHT = "mono", "mono-light"
"""Themes for users who want no colour; the other themes' colours would turn into greys too near to each other."""


class ThemeError(Exception):
    """A theme file that can't be used: which one, which line, and what is wrong with it."""


def user_themes_dir() -> Path:
    return config_directory() / "themes"


def load_themes() -> tuple[list[Theme], list[ThemeError]]:
    """Every readable theme, the user's last to replace bundled ones, and what is wrong with the others."""
    themes: list[Theme] = []
    errors: list[ThemeError] = []
    for path in theme_files():
        try:
            themes.append(read_theme(path))
        except ThemeError as error:
            errors.append(error)
    return themes, errors


def theme_names() -> list[str]:
    """Every theme there is to choose: the program's and the user's."""
    return sorted(theme.name for theme in load_themes()[0])


def theme_files() -> Iterator[Path]:
    for directory in (bundled_themes_dir(), user_themes_dir()):
        if directory.is_dir():
            yield from sorted(directory.glob("*.toml"))


def read_theme(path: Path) -> Theme:
    """Read a theme from a TOML file. Raises :class:`ThemeError` when the file can't be read or holds no theme."""
    return _ThemeFile.read(path).theme()


@dataclass(frozen=True, slots=True)
class _ThemeFile:
    path: Path
    text: str
    data: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> _ThemeFile:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ThemeError(f"{path}: {error}") from error
        try:
            return cls(path, text, tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            message, line = syntax_place(str(error), text)
            raise ThemeError(f"{path}{_at(line)}: {message}") from error

    def theme(self) -> Theme:
        for key in self.data.keys() - _TABLES.keys() - {"name", "dark"}:
            raise self.wrong(key, "", f"a theme has name, dark, [{'], ['.join(_TABLES)}] and no {key!r}")
        colors, verdicts = self._table("colors", _is_color), self._table("verdict", _is_color)
        styles, ramp = self._table("style", _is_style), self._table("ramp", _is_color)
        name, dark = self.data.get("name", self.path.stem), self.data.get("dark", True)
        if not isinstance(name, str) or not name:
            raise self.wrong("name", "", f"name = {name!r} is no name")
        if not isinstance(dark, bool):
            raise self.wrong("dark", "", f"dark = {dark!r} is neither true nor false")
        if "primary" not in colors:
            raise self.wrong("", "colors", "[colors] needs at least primary")
        return Theme(
            name=name,
            dark=dark,
            variables={
                **{f"verdict-{verdict}": color for verdict, color in verdicts.items()},
                **{f"verdict-{verdict}-text": text_on(color) for verdict, color in verdicts.items()},
                **landed(verdicts, dark),
                **shown(verdicts, [colors.get(name) or _ground(dark) for name in ("background", "surface")], dark),
                **{f"verdict-{verdict}-style": style for verdict, style in styles.items()},
                **{f"verdict-{verdict}-mark": _in_content(style) for verdict, style in styles.items()},
                **{f"ramp-{step}": color for step, color in ramp.items()},
                **{f"ramp-{step}-text": text_on(color) for step, color in ramp.items()},
            },
            primary=colors.pop("primary"),
            **colors,  # type: ignore[arg-type]  # the keys were checked against _COLORS, whose fields are all colours
        )

    def _table(self, table: str, complaint: Callable[[Any], str]) -> dict[str, str]:
        entries, allowed = self.data.get(table, {}), _TABLES[table]
        if not isinstance(entries, dict):
            raise self.wrong(table, "", f"[{table}] must be a table")
        for key, value in entries.items():
            if key not in allowed:
                raise self.wrong(key, table, f"[{table}] knows no {key!r}, only {', '.join(sorted(allowed))}")
            if problem := complaint(value):
                raise self.wrong(key, table, f"{table}.{key} = {value!r} {problem}")
        return dict(entries)

    def wrong(self, key: str, table: str, what: str) -> ThemeError:
        return ThemeError(f"{self.path}{_at(line_of(self.text, key, table))}: {what}")


def _at(line: int | None) -> str:
    return f", line {line}" if line else ""


def _is_color(value: Any) -> str:
    """A sentence that says why ``value`` is no colour; empty when it is one."""
    try:
        Color.parse(value)
    except (ColorParseError, TypeError, AttributeError):
        return "is no colour; write one like #2881F4"
    return ""


def _in_content(style: str) -> str:
    """A text style as content markup takes it, which has no word for “none”."""
    return "not blink" if style == "none" else style


def _is_style(value: Any) -> str:
    """A sentence that says why ``value`` names no text attributes; empty when it does."""
    words = value.split() if isinstance(value, str) else []
    if words and all(word in ATTRIBUTES for word in words) and (len(words) == 1 or "none" not in words):
        return ""
    return f"is no style; write some of {', '.join(ATTRIBUTES)}"


def contrast(one: str, other: str) -> float:
    """WCAG 2's ratio of two colours, from 1 to 21."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (channel / 255 for channel in Color.parse(color).rgb)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def text_on(ground: str) -> str:
    """The colour of text on ``ground``: black or white, whichever stands out more."""
    return max(("#000000", "#FFFFFF"), key=lambda text: contrast(text, ground))


def readable(color: str, grounds: Iterable[str]) -> str:
    """A colour as text on any of these grounds: itself where it stands out, else lighter or darker until it does."""
    behind = list(grounds)
    towards = Color.parse(text_on(behind[0]))
    steps = (Color.parse(color).blend(towards, step / 20).hex for step in range(21))
    return next((each for each in steps if all(contrast(each, ground) >= READABLE for ground in behind)), towards.hex)


LANDED = {"accepted": (78.0, 30.0), "bonus": (78.0, 30.0), "corrected": (50.0, 62.0)}
"""How light the grounds of a block that just landed are, in L* of a dark theme and of a light one: success, a mistake,
and what nobody guessed, which stands on the background, are three greys that a bad projector leaves apart."""


def landed(verdicts: Mapping[str, str], dark: bool) -> dict[str, str]:
    """Variables for a block that just landed: ``landed-X``, a ground in verdict X's hue, and ``landed-X-text``."""
    grounds = {
        verdict: with_lightness(verdicts[verdict], steps[not dark])
        for verdict, steps in LANDED.items()
        if verdict in verdicts
    }
    return {
        **{f"landed-{verdict}": ground for verdict, ground in grounds.items()},
        **{f"landed-{verdict}-text": text_on(ground) for verdict, ground in grounds.items()},
    }


SHOWN: dict[str, float] = {"plain": 1.0, "accepted": 0.5, "bonus": 0.5, "corrected": 0.0}
"""How much a verdict's colour stands out in a hall: from 0, just readable, to 1, nearly black or white."""


def shown(verdicts: Mapping[str, str], grounds: Iterable[str], dark: bool) -> dict[str, str]:
    """The verdicts in three lightnesses that a bad projector leaves apart, all of them readable on the grounds."""
    behind = [_luminance(ground) + 0.05 for ground in grounds]
    nearest = READABLE * NEARLY * max(behind) if dark else min(behind) / (READABLE * NEARLY)
    near, far = _lightness(nearest - 0.05), 98.0 if dark else 2.0
    return {
        f"shown-{verdict}": with_lightness(verdicts[verdict], near + (far - near) * step)
        for verdict, step in SHOWN.items()
        if verdict in verdicts
    }


MIXTURES = 50
"""In how many steps a colour is mixed with black or white to find the nearest mixture wanted."""


def lightness(color: str) -> float:
    """How light a colour is: L* of CIELAB, from 0 (black) to 100 (white)."""
    return _lightness(_luminance(color))


def _lightness(luminance: float) -> float:
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance


def with_lightness(color: str, wanted: float) -> str:
    """The hue of a colour in another lightness: mixed with black or white until it is near."""
    sign, given = (-1 if lightness(color) > wanted else 1), Color.parse(color)
    towards = Color.parse("#000000" if sign < 0 else "#FFFFFF")

    def mixed(step: int) -> str:
        return given.blend(towards, step / MIXTURES).hex

    # They go one way: the first that is beyond it, or the one before.
    beyond = bisect_left(range(MIXTURES + 1), sign * wanted, key=lambda step: sign * lightness(mixed(step)))
    near = range(max(beyond - 1, 0), min(beyond, MIXTURES) + 1)
    return min(map(mixed, near), key=lambda each: abs(lightness(each) - wanted))


@lru_cache(8)
def default_variables(dark: bool = True, grounds: tuple[str, ...] = ()) -> dict[str, str]:
    """What a theme without its own [verdict], [style] and [ramp] gets, by the ``grounds`` that text stands on there."""
    variables = read_theme(bundled_themes_dir() / f"{DARK_THEME}.toml").variables
    if not dark:
        variables = {**variables, **read_theme(bundled_themes_dir() / f"{LIGHT_THEME}.toml").variables}
    if not grounds:
        return variables
    lifted = {verdict: readable(variables[f"verdict-{verdict}"], grounds) for verdict in VERDICTS}
    return {
        **variables,
        **{f"verdict-{verdict}": color for verdict, color in lifted.items()},
        **{f"verdict-{verdict}-text": text_on(color) for verdict, color in lifted.items()},
        **landed(lifted, dark),
        **shown(lifted, grounds, dark),
    }


def ground_of(theme: Theme) -> str:
    """The background colour of a theme; what Textual would take where the theme names none, or the terminal's own."""
    named = theme.background or ""
    return named if named.startswith("#") else _ground(theme.dark)


def _ground(dark: bool) -> str:
    return "#121212" if dark else "#EFEFEF"


def defaults_for(theme: Theme) -> dict[str, str]:
    """The variables of ``default_variables`` for this theme's own backgrounds."""
    grounds = (ground_of(theme), *((theme.surface,) if (theme.surface or "").startswith("#") else ()))
    return default_variables(theme.dark, grounds)
