"""Commands where something of a machine is broken or missing: each runs, or says in a sentence what is wrong and ends
with a code of its own. With every commit another third."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dflash_tui.core.exit_codes import ExitCode
from tests.pace import in_turn

COMMANDS = (
    ["doctor"],
    ["sessions", "list"],
    ["replay", "--list"],
    ["help"],
    ["org/none", "-p", "hi", "--draft", "none"],
    ["-p", "hi", "--max-new-tokens", "2"],
)
RUN = """
import sys
from dflash_tui.cli.main import main
for words in {commands!r}:
    print("\\n>>>", words, main(words), file=sys.stderr, flush=True)
"""
Surround = Callable[[Path, dict[str, str]], object]


def without(*names: str) -> Surround:
    return lambda folder, environment: [environment.pop(name, None) for name in names]


def said(**values: str) -> Surround:
    """Variables, in which ``{file}`` is a file, ``{empty}`` a folder and ``{nothing}`` a path to nothing."""

    def surround(folder: Path, environment: dict[str, str]) -> None:
        (folder / "file").write_text("x")
        (folder / "empty").mkdir()
        places = {name: str(folder / name) for name in ("file", "empty", "nothing")}
        environment.update({name: value.format(**places) for name, value in values.items()})

    return surround


def config(content: bytes) -> Surround:
    def surround(folder: Path, environment: dict[str, str]) -> None:
        (folder / "dflash-chat").mkdir()
        (folder / "dflash-chat" / "config.toml").write_bytes(content)
        environment["XDG_CONFIG_HOME"] = str(folder)

    return surround


SURROUNDINGS: dict[str, Surround] = {
    "no home": without("HOME"),
    "home is a file": said(HOME="{file}"),
    "folders are files": said(XDG_CONFIG_HOME="{file}", XDG_STATE_HOME="{file}", XDG_CACHE_HOME="{file}"),
    "another locale": said(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
    "output in ASCII": said(PYTHONIOENCODING="ascii"),
    "config in UTF-16": config("temperature = 0.5\n".encode("utf-16")),
    "token with an umlaut": said(HF_TOKEN="hf_\u00e4"),
    "address that is none": said(HF_ENDPOINT="http://[::1"),
    "seconds that are none": said(HF_HUB_DOWNLOAD_TIMEOUT="soon"),
    "cache is a file": said(HF_HOME="{file}"),
    "another user's folder": said(DFLASH_CHAT_CONFIG="~nobody9/x", DFLASH_CHAT_STATE="~nobody9/x"),
    "no temporary folder": said(TMPDIR="{nothing}"),
    "proxy that is none": said(HTTPS_PROXY="::::", ALL_PROXY="socks9://x"),
}


@pytest.mark.parametrize("name", in_turn([*SURROUNDINGS], 3))
def test_commands_run_or_say_what_is_wrong(tmp_path: Path, name: str) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir(), work.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm", "LANG": "C.UTF-8"}
    SURROUNDINGS[name](tmp_path, environment)
    environment["PYTHONPATH"] = str(Path(__file__).parents[3])
    if "HF_ENDPOINT" not in environment:
        environment["HF_ENDPOINT"] = "http://127.0.0.1:9"  # nobody is asked
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(commands=COMMANDS)],
        env=environment, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, timeout=170,
    )  # fmt: skip
    told = done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0 and "Traceback" not in told, told
    codes = [int(line.rsplit(None, 1)[1]) for line in told.splitlines() if line.startswith(">>>")]
    assert len(codes) == len(COMMANDS) and set(codes) <= set(ExitCode), told
    assert "failed:" not in told, f"a sentence of our own: {told}"
