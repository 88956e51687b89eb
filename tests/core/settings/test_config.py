"""Configuration files: where they are found, and errors that name file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.core.settings.config import (
    CONFIG_VARIABLE,
    MAX_BYTES,
    ConfigError,
    line_of,
    read_config,
    read_user,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with another below it, which is the current one."""
    project = tmp_path / "home" / "work" / "project"
    project.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)
    monkeypatch.chdir(project)
    return tmp_path / "home"


def user_config(home: Path, text: str) -> Path:
    path = home / ".config" / "dflash-chat" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_without_files_there_is_nothing(home: Path) -> None:
    assert read_user().settings == {}


def test_the_environment_names_another_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user_config(home, "seed = 1")
    other = home / "other.toml"
    other.write_text("seed = 9")
    monkeypatch.setenv(CONFIG_VARIABLE, str(other))
    assert read_user().settings["seed"].value == 9
    monkeypatch.setenv(CONFIG_VARIABLE, "")
    assert read_user().settings == {}
    monkeypatch.setenv(CONFIG_VARIABLE, str(home / "missing.toml"))
    with pytest.raises(ConfigError, match=r"missing\.toml: No such file"):
        read_user()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"seed = 1\nseed = ", r"config\.toml, line 2: "),
        (b"seed = 1\n\ntheme = mono\n", r'config\.toml, line 3: A text stands in quotes: theme = "mono"'),
        (b"[keys", r"config\.toml, line 1: "),
        (b"theme = '\xff'", r"config\.toml: not UTF-8 text \(byte 9\)"),
        (b"#" * (MAX_BYTES + 1), r"config\.toml: larger than"),
        (b"a = " + b"[" * 5000, r"config\.toml"),
    ],
)
def test_what_can_not_be_read_is_said_with_its_place(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=complaint):
        read_config(path)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "config.toml"
    path.write_bytes(content)
    try:
        read_config(path)
    except ConfigError as error:
        assert str(error).startswith(str(path))


TEXT = """\
# a comment with seed = 5
name = "x"

[colors]
primary = "#fff"
"odd key" = 1
[ style ]
primary = "bold"
"""


@pytest.mark.parametrize(
    ("key", "table", "line"),
    [
        ("name", "", 2), ("seed", "", None), ("primary", "colors", 5), ("odd key", "colors", 6),
        ("primary", "style", 8), ("missing", "style", 7), ("colors", "", 4), ("x", "nowhere", None),
    ],
)  # fmt: skip
def test_lines_are_found(key: str, table: str, line: int | None) -> None:
    assert line_of(TEXT, key, table) == line
