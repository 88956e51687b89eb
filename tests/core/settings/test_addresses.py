"""From a URL or a name to a server: what is refused, and that secrets stay secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_tui.core.settings.addresses import (
    KEY_VARIABLE,
    ServerError,
    address_for,
    address_named,
    address_of,
    table_problems,
)
from dflash_tui.core.settings.config import Config, read_config
from dflash_tui.core.settings.servers import ServerAddress

SECRET = "sk-abc123"


def described(tmp_path: Path, text: str, name: str = "config.toml") -> Config:
    path = tmp_path / name
    path.write_text(text)
    return read_config(path)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("ftp://host", "begins with ftp://"),
        ("http://", "names no host"),
        ("http://host:99999", "can't be read"),
        ("http://[::1", "can't be read"),
        ("http://ho st:8000", "names no host"),
        (f"http://me:{SECRET}@host:8000", "holds a user or a password"),
        (f"http://host:8000/v1?key={SECRET}", "goes on behind its path"),
        ("http://host:8000/#top", "goes on behind its path"),
    ],
)
def test_a_url_that_is_none_is_told_without_its_secrets(url: str, complaint: str) -> None:
    with pytest.raises(ServerError, match=complaint) as caught:
        address_of(url)
    assert SECRET not in str(caught.value) + caught.value.hint


def test_a_url_takes_its_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, SECRET)
    address = address_of("https://[::1]:8000/", "vllm")
    assert address == ServerAddress("https://[::1]:8000", dialect="vllm", key=SECRET)
    assert SECRET not in repr(address)


def test_a_table_says_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = described(
        tmp_path,
        '[servers.team]\nurl = "https://example.org/v1"\nmodel = "gemma"\nkey_variable = "TEAM_KEY"\n'
        'dialect = "sglang"\nheaders = {X-Team = "speech"}\n',
    )
    monkeypatch.setenv("TEAM_KEY", f" {SECRET}\n")
    address = address_named("team", config)
    assert address == ServerAddress("https://example.org/v1", "gemma", "sglang", SECRET, {"X-Team": "speech"})
    assert SECRET not in repr(address) and "speech" not in repr(address)
    assert address_named("team", config, "openai").dialect == "openai"
    assert address_for("team", config) == address
    monkeypatch.delenv("TEAM_KEY")
    with pytest.raises(ServerError, match="should be in TEAM_KEY, which is not set"):
        address_named("team", config)
    with pytest.raises(ServerError, match="Did you mean team"):
        address_named("taem", config)
    with pytest.raises(ServerError, match="describes none"):
        address_named("team", Config())


@pytest.mark.parametrize(
    ("command", "key"), [(f'"echo {SECRET}"', SECRET), ('["printf", "%s", "a b"]', "a b"), ('"printf \\"%s\\" x"', "x")]
)
def test_a_keyrings_command_gives_the_key(tmp_path: Path, command: str, key: str) -> None:
    config = described(tmp_path, f'[servers.team]\nurl = "http://host"\nkey_command = {command}\n')
    assert address_named("team", config).key == key


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (["sh", "-c", f"echo {SECRET}; exit 3"], "ended with exit code 3"),
        (["true"], "printed nothing"),
        (["no-such-keyring"], "can't be run"),
        (["sh", "-c", f"echo {SECRET}; echo more"], "is no key"),
    ],
)
def test_a_command_that_gives_none_is_told_without_what_it_printed(
    tmp_path: Path, command: list[str], complaint: str
) -> None:
    config = described(tmp_path, f'[servers.team]\nurl = "http://host"\nkey_command = {command!r}\n')
    with pytest.raises(ServerError, match=complaint) as caught:
        address_named("team", config)
    assert SECRET not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('model = "x"', "line 2: servers.a has no url"),
        ('url = "host:8000"', "line 2: servers.a: the url begins with host://"),
        ('url = "http://h"\nmodle = "x"', "line 3: servers.a has no setting modle; do you mean model?"),
        ('url = "http://h"\ndialect = "ollama"', "line 3: servers.a: dialect must be one of"),
        ('url = "http://h"\nkey_command = []', "line 3: servers.a: key_command must be a command"),
        ('url = "http://h"\nheaders = {"X Y" = "z"}', "line 3: servers.a: headers must be a table"),
        ('url = "http://h"\nheaders = {X = "a\\r\\nHost: evil"}', "line 3: servers.a: headers must be a table"),
        ('url = "http://h"\nkey_variable = "K"\nkey_command = "k"', "line 4: servers.a has both"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path: Path, text: str, complaint: str) -> None:
    config = described(tmp_path, f"[servers.a]\n{text}\n")
    assert any(complaint in problem for problem in table_problems("a", config.servers["a"]))
    with pytest.raises(ServerError):
        address_named("a", config)
