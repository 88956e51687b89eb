"""From what a user types to a :class:`ServerAddress`: a URL, or the name of a ``[servers.NAME]`` table."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from ..failures import Failure
from .config import SERVERS_TABLE, Config, Entry, no_such
from .servers import DIALECTS, Dialect, ServerAddress

KEY_VARIABLE = "DFLASH_CHAT_KEY"
"""The environment variable with the key of a server that is named by its URL."""
FIELDS: Mapping[str, str] = {
    "url": 'text in quotes, such as "http://gpu-box:8000"',
    "model": "text in quotes, the model's name on that server",
    "dialect": f"one of {', '.join(DIALECTS)}",
    "key_variable": "text in quotes, the name of an environment variable",
    "key_command": "a command in quotes, or a list of its words",
    "headers": 'a table of texts, such as {X-Team = "speech"}',
}
"""What a ``[servers.NAME]`` table may say, and in which form."""
COMMAND_SECONDS = 60.0
"""Seconds that a command that prints a key may take: a keyring may ask its owner for a password."""
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_HOST_AND_PORT = re.compile(r"(localhost|\[[0-9a-f:]+\]|[\w.-]+):\d{1,5}(/\S*)?", re.IGNORECASE)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class ServerError(Failure):
    """Raised when there is no such server to attach to, or its description can't be used."""


def is_address(text: str | None) -> bool:
    """Whether ``text`` stands for a server and not for a model: it has a scheme, as URLs have."""
    return text is not None and _SCHEME.match(text) is not None


def looks_like_host(text: str) -> bool:
    """Whether ``text`` is a host with a port, and no scheme before it."""
    return _HOST_AND_PORT.fullmatch(text) is not None


def address_of(url: str, dialect: Dialect | None = None) -> ServerAddress:
    """The server at a URL, with the key in ``KEY_VARIABLE`` if there is one. Raises :class:`ServerError`."""
    if complaint := url_complaint(url):
        raise ServerError(
            f"{_without_secrets(url)} {complaint}.", "Write it like this: dflash-chat http://localhost:8000"
        )
    return ServerAddress(url.rstrip("/"), dialect=dialect, key=os.environ.get(KEY_VARIABLE, ""))


def address_named(name: str, config: Config, dialect: Dialect | None = None) -> ServerAddress:
    """The server of ``[servers.NAME]``, with its key. Raises :class:`ServerError`."""
    table = config.servers.get(name)
    if table is None:
        raise ServerError(*no_such("server", SERVERS_TABLE, name, config.servers, 'url = "http://localhost:8000"'))
    for complaint in table_problems(name, table):
        raise ServerError(f"{complaint}.", "Correct the file.")
    values = {key: entry.value for key, entry in table.items()}
    address = ServerAddress(
        values["url"].rstrip("/"),
        values.get("model", ""),
        dialect or values.get("dialect"),
        headers=values.get("headers", {}),
    )
    return replace(address, key=_key(name, table))


def address_for(target: str, config: Config) -> ServerAddress:
    """The server that ``target`` stands for: a URL, or a name of ``[servers]``. Raises :class:`ServerError`."""
    return address_of(target) if is_address(target) else address_named(target, config)


def url_complaint(url: str) -> str:
    """What is wrong with a server's URL; empty when nothing is."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is no URL: its host or its port can't be read"
    if parts.scheme.lower() not in ("http", "https"):
        return f"begins with {parts.scheme}://, and a server is asked over http:// or https://"
    if not parts.hostname or any(character.isspace() or not character.isprintable() for character in url) or port == 0:
        return "names no host"
    if parts.username is not None or parts.password is not None:
        return f"holds a user or a password, which logs would keep: {KEY_VARIABLE} or key_variable names a key"
    if parts.query or parts.fragment:
        return "goes on behind its path: the URL of a server is what stands before /v1"
    return ""


def table_problems(name: str, table: Mapping[str, Entry]) -> Iterator[str]:
    """What is wrong with a ``[servers.NAME]`` table, in words that begin with file and line."""
    for key, entry in table.items():
        where = f"{entry.location}: {SERVERS_TABLE}.{name}"
        if key not in FIELDS:
            near = get_close_matches(key, FIELDS, 1)
            hint = f"do you mean {near[0]}?" if near else f"it has {', '.join(FIELDS)}"
            yield f"{where} has no setting {key}; {hint}"
        elif not _fits(key, entry.value):
            yield f"{where}: {key} must be {FIELDS[key]}"
        elif key == "url" and (complaint := url_complaint(entry.value)):
            yield f"{where}: the url {complaint}"
    if "url" not in table:
        location = next(iter(table.values())).location if table else "the configuration"
        yield f"{location}: {SERVERS_TABLE}.{name} has no url"
    if "key_variable" in table and "key_command" in table:
        location = table["key_command"].location
        yield f"{location}: {SERVERS_TABLE}.{name} has both key_variable and key_command; one is enough"


def _fits(key: str, value: Any) -> bool:
    match key:
        case "headers":
            return isinstance(value, dict) and all(_is_header(name, text) for name, text in value.items())
        case "key_command":
            words = value if isinstance(value, list) else [value]
            return bool(words) and all(isinstance(word, str) and word for word in words)
        case "dialect":
            return value in DIALECTS
    return isinstance(value, str) and bool(value)


def _is_header(name: str, text: Any) -> bool:
    return isinstance(text, str) and _HEADER.fullmatch(name) is not None and text.isprintable() and text.isascii()


def _key(name: str, table: Mapping[str, Entry]) -> str:
    """The key of the server ``name``, as its table says where it is; empty where it wants none."""
    if "key_variable" in table:
        variable = table["key_variable"].value
        key = os.environ.get(variable, "").strip()
        if not key:
            hint = f"Set it before: export {variable}=... (or name a key_command in {table['key_variable'].location})."
            raise ServerError(f"The key of the server {name} should be in {variable}, which is not set.", hint)
        return _checked(key, name, variable)
    if "key_command" in table:
        command = table["key_command"].value
        return _checked(
            _asked(shlex.split(command) if isinstance(command, str) else command, name), name, "its command"
        )
    return ""


def _asked(command: list[str], name: str) -> str:
    """What a keyring's command prints. Its output never stands in a message."""
    what = f"The command for the key of the server {name}, {command[0]},"
    try:
        completed = subprocess.run(command, stdout=subprocess.PIPE, timeout=COMMAND_SECONDS, check=False)
    except OSError as error:
        raise ServerError(f"{what} can't be run: {error.strerror or error}.", "Correct key_command.") from None
    except subprocess.TimeoutExpired:
        raise ServerError(f"{what} took more than {COMMAND_SECONDS:.0f} seconds.", "Run it by hand once.") from None
    key = completed.stdout.decode("utf-8", "replace").strip()
    if completed.returncode or not key:
        how = f"ended with exit code {completed.returncode}" if completed.returncode else "printed nothing"
        raise ServerError(f"{what} {how}.", "Run it by hand: it should print the key, and nothing else.")
    return key


def _checked(key: str, name: str, origin: str) -> str:
    if not (key.isascii() and key.isprintable()):
        raise ServerError(f"What {origin} holds for the server {name} is no key.", "A key is one line of ASCII.")
    return key


def _without_secrets(url: str) -> str:
    """The URL for a message: without user, password and query."""
    return re.sub(r"//[^/?#]*@", "//", url).partition("?")[0].partition("#")[0]
