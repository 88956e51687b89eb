"""Themes from TOML files: those that come with the program and the user's own, in one format."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from platformdirs import user_config_path
from textual.color import Color, ColorParseError
from textual.theme import Theme

DEFAULT_THEME = "dflash-dark"
VERDICTS = ("accepted", "corrected", "bonus", "rejected", "pending", "plain")
_COLORS = {
    "primary", "secondary", "accent", "foreground", "background", "surface", "panel", "boost", "success", "warning",
    "error",
}  # fmt: skip


class ThemeError(Exception):
    """A theme file that can't be used: which one, and what is wrong with it."""


def bundled_themes_dir() -> Path:
    """Beside the package in a checkout, inside it once installed."""
    package = Path(__file__).parents[1]
    installed = package / "themes"
    return installed if installed.is_dir() else package.parent / "themes"


def user_themes_dir() -> Path:
    return user_config_path("dflash-chat") / "themes"


def load_themes() -> tuple[list[Theme], list[ThemeError]]:
    """Every theme that can be read, the user's last so that they may replace a bundled one, and what is wrong with
    the others."""
    themes: list[Theme] = []
    errors: list[ThemeError] = []
    for path in _theme_files():
        try:
            themes.append(read_theme(path))
        except ThemeError as error:
            errors.append(error)
    return themes, errors


def _theme_files() -> Iterator[Path]:
    for directory in (bundled_themes_dir(), user_themes_dir()):
        if directory.is_dir():
            yield from sorted(directory.glob("*.toml"))


def read_theme(path: Path) -> Theme:
    """Raises :class:`ThemeError` when the file can't be read, is not TOML, or names something that is no colour."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ThemeError(f"{path}: {error}") from error
    colors = _colors(path, data, "colors", _COLORS)
    if "primary" not in colors:
        raise ThemeError(f"{path}: [colors] needs at least primary")
    verdicts = _colors(path, data, "verdict", set(VERDICTS))
    return Theme(
        name=str(data.get("name", path.stem)),
        dark=bool(data.get("dark", True)),
        variables={f"verdict-{verdict}": color for verdict, color in verdicts.items()},
        primary=colors.pop("primary"),
        **colors,  # type: ignore[arg-type]  # the keys were checked against _COLORS, whose fields are all colours
    )


def _colors(path: Path, data: dict[str, Any], table: str, allowed: set[str]) -> dict[str, str]:
    entries = data.get(table, {})
    if not isinstance(entries, dict):
        raise ThemeError(f"{path}: [{table}] must be a table")
    for key, value in entries.items():
        if key not in allowed:
            raise ThemeError(f"{path}: [{table}] knows no {key!r}, only {', '.join(sorted(allowed))}")
        try:
            Color.parse(value)
        except (ColorParseError, TypeError, AttributeError):
            raise ThemeError(f"{path}: {table}.{key} = {value!r} is no colour; write one like #2881F4") from None
    return dict(entries)


def default_verdicts() -> dict[str, str]:
    """What a theme without a [verdict] table gets."""
    return read_theme(bundled_themes_dir() / f"{DEFAULT_THEME}.toml").variables
