"""The user's optional TOML file. Keys are flags with underscores (``block_size = 8``); ``[servers.NAME]`` describes a
server. The caller knows what values mean."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_config_path

Gauges = Literal["full", "narrow", "off"]
"""How much room the gauges take beside the conversation."""
CONFIG_VARIABLE = "DFLASH_CHAT_CONFIG"
"""The environment variable that names another user file; empty means none."""
SERVERS_TABLE = "servers"
MAX_BYTES = 1024 * 1024


class ConfigError(Exception):
    """A file that can't be used as it is: which one, which line, and what is wrong there."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One value and where it stands."""

    value: Any
    path: Path
    line: int | None = None

    @property
    def location(self) -> str:
        return f"{self.path}, line {self.line}" if self.line else str(self.path)


@dataclass(frozen=True, slots=True)
class Config:
    """What the file says."""

    settings: Mapping[str, Entry] = field(default_factory=dict)
    """Values of flags, by the flag's name."""
    servers: Mapping[str, Mapping[str, Entry]] = field(default_factory=dict)
    """Tables of servers, by the server's name."""


def config_directory() -> Path:
    return user_config_path("dflash-chat")


def user_file() -> Path | None:
    """``$DFLASH_CHAT_CONFIG``, else config.toml in the platform's place for such things. It need not exist."""
    named = os.environ.get(CONFIG_VARIABLE)
    if named is None:
        return config_directory() / "config.toml"
    return Path(os.path.expanduser(named)) if named else None


def read_user() -> Config:
    """What the user's file says. One that the environment names must exist. Raises :class:`ConfigError`."""
    own = user_file()
    return read_config(own) if own is not None and (own.exists() or os.environ.get(CONFIG_VARIABLE)) else Config()


def read_config(path: Path) -> Config:
    """Read one file. Raises :class:`ConfigError` when it can't be read, or is not TOML of the expected shape."""
    text = _read(path)
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        message, line = syntax_place(str(error), text)
        raise ConfigError(f"{Entry(None, path, line).location}: {message}") from error
    servers = _tables(data.pop(SERVERS_TABLE, {}), path, text, SERVERS_TABLE, "server")
    return Config(_entries(data, path, text), servers)


def _tables(data: Any, path: Path, text: str, kind: str, what: str) -> dict[str, dict[str, Entry]]:
    """A table of tables, by their names."""
    if not isinstance(data, dict):
        raise ConfigError(
            f"{Entry(None, path, line_of(text, kind)).location}: a {what} is a table of its own, [{kind}.NAME]"
        )
    for name, table in data.items():
        if not isinstance(table, dict):
            where = Entry(None, path, line_of(text, name, kind)).location
            raise ConfigError(f"{where}: a {what} is a table of its own, [{kind}.NAME]")
    return {name: _entries(table, path, text, f"{kind}.{name}") for name, table in data.items()}


def _entries(data: Mapping[str, Any], path: Path, text: str, table: str = "") -> dict[str, Entry]:
    return {key: Entry(value, path, line_of(text, key, table)) for key, value in data.items()}


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ConfigError(f"{path}: larger than {MAX_BYTES // 1024} KiB; this is no configuration")
        return content.decode("utf-8-sig")  # some editors begin a file with a mark
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from error


_TABLE = re.compile(r"\s*\[\s*+([^\]]*[^\]\s])\s*\]")
_BARE = re.compile(r"\s*([\w-]+)\s*=\s*([A-Za-z](?:[\w./:@ -]*[\w./:@-])?)\s*(?:#.*)?$")
"""A text without its quotes."""
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w-]+)\s*=""")


def line_of(text: str, key: str, table: str = "") -> int | None:
    """The line, from 1, on which ``key`` of ``table`` gets its value; the table's own line when the key isn't found
    there, and None when neither is. A key of the top level may itself be a table."""
    current, header = "", None
    for number, line in enumerate(text.splitlines(), 1):
        if match := _TABLE.match(line):
            current = match[1].strip("\"'")
            if current == (table or key) or (header is None and not table and current.startswith(f"{key}.")):
                header = number
        elif current == table and (match := _KEY.match(line)) and match[1].strip("\"'") == key:
            return number
    return header


def syntax_place(message: str, text: str) -> tuple[str, int | None]:
    """``tomllib``'s complaint, such as ``Invalid value (at line 3, column 8)``, and its line in ``text``."""
    match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
    if match is None:
        return message, None
    says, line = message[: match.start()], int(match[1] or len(text.splitlines()))
    if says == "Invalid value" and (bare := _BARE.match((text.splitlines() or [""])[line - 1])):
        says = f'A text stands in quotes: {bare[1]} = "{bare[2]}"'
    return says, line


def no_such(kind: str, table: str, name: str, known: Collection[str], example: str) -> tuple[str, str]:
    """A message that the files describe no ``kind`` of this name, and a hint what to do. ``table``: where they
    would."""
    near = get_close_matches(name, known, 1)
    if near:
        return f"There is no {kind} {name!r}. Did you mean {near[0]}?", f"It is [{table}.{near[0]}]."
    if known:
        return f"There is no {kind} {name!r}.", f"There are: {', '.join(sorted(known))}."
    written = f"[{table}.{name if name.isidentifier() else 'NAME'}]\n{example}"
    return f"There is no {kind} {name!r}: config.toml describes none.", f"Write into it:\n{written}"


@dataclass(frozen=True, slots=True)
class ScreenOptions:
    """What the user asked of the screen."""

    ascii: bool = False
    """Whether to draw with the 95 characters that every terminal has."""
    reduced_motion: bool = False
    """Whether nothing is to blink, glide or play by itself."""
    mouse: bool = True
    """Whether the program takes clicks and the wheel; else the terminal selects text with them."""
    rendered: bool = False
    """Whether a finished answer is drawn as its Markdown means it."""
    gauges: Gauges = "full"
