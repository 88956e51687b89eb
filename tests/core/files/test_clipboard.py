"""Tools of the machine: which one is asked, and that none is needed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dflash_tui.core.files.desktop import OpeningError, copy_locally, local_tool, open_file


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("variable", "tool"), [("WAYLAND_DISPLAY", "wl-copy"), ("DISPLAY", "xclip"), ("TMUX", "tmux"), ("LANG", None)]
)
def test_a_tool_needs_its_display(tmp_path: Path, variable: str, tool: str | None) -> None:
    for name in ("wl-copy", "xclip", "tmux"):
        program(tmp_path, name, "exit 0")
    found = local_tool({"PATH": str(tmp_path), variable: "x"})
    assert (found[0] if found else None) == tool


def test_the_tool_gets_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "pbcopy", f"cat > {tmp_path}/copied")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert copy_locally("é😀\n") == "pbcopy"
    assert (tmp_path / "copied").read_text() == "é😀\n"


def test_a_tool_that_fails_is_as_good_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "pbcopy", "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert copy_locally("text") is None


@pytest.mark.parametrize("name", ["run.py", "run.sh", "run.js", "run.desktop", "run.exe", "run"])
def test_nothing_is_opened_that_a_desktop_might_run(tmp_path: Path, name: str) -> None:
    with pytest.raises(OpeningError, match="isn't opened") as caught:
        open_file(tmp_path / name)
    assert str(tmp_path / name) in caught.value.hint


def test_a_page_is_opened_with_the_desktop_s_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "opened")
    program(tmp_path, "xdg-open", f'echo "$1" > {tmp_path}/opened')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    open_file(tmp_path / "index.HTML")
    with open(tmp_path / "opened") as pipe:  # waits for the program
        assert pipe.read().strip() == str(tmp_path / "index.HTML")


def test_no_desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("SSH_CONNECTION", "SSH_TTY", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(OpeningError, match="There is no screen here"):
        open_file(tmp_path / "index.html")
    monkeypatch.setenv("DISPLAY", ":0")
    with pytest.raises(OpeningError, match="There is no xdg-open"):
        open_file(tmp_path / "index.html")
    program(tmp_path, "xdg-open", "exit 3")
    with pytest.raises(OpeningError, match="exit code 3"):
        open_file(tmp_path / "index.html")
    monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
    with pytest.raises(OpeningError, match="SSH"):
        open_file(tmp_path / "index.html")
