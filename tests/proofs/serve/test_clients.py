"""Other people's programs on our server, as they come from the package indexes: they chat, and call tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import NoReturn

import pytest

from dflash_tui.core.source import Capabilities
from engine.commands import Ask
from support.scripted_engine import ScriptedEngine, tokenise
from tests.serve.conftest import Served, serving

from .clients import CLIENTS

INSTALLED = Path(sys.prefix) / "clients"
PACKAGES = {
    "azure": "openai", "langchain": "langchain_openai", "openai_agents": "agents", "openai_agents_chat": "agents",
    "openai_chat": "openai", "openai_responses": "openai",
}  # fmt: skip
"""Where a client is not called like the package that it imports."""


class Caller(ScriptedEngine):
    """Calls the tools that it knows of, and says what they gave."""

    capabilities = Capabilities(count=lambda ask: len(ask.messages))
    file = ""
    """What it writes where it may."""

    def answer_turn(self, ask: Ask) -> bool:
        last, offered = ask.messages[-1], {tool.name for tool in ask.tools}
        call = {"name": "weather", "arguments": {"city": "Zürich"}}
        if "write" in offered:
            call = {"name": "write", "arguments": {"filePath": self.file, "content": "print(1)\n"}}
        said = f"It says: {last.content}" if last.role == "tool" else "Nobody knows."
        if call["name"] in offered and last.role != "tool":
            said = f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
        self.answer = tokenise(said)
        return super().answer_turn(ask)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(make=Caller, calls="qwen", round_seconds=0.0) as running:
        yield running


def environment(folder: Path) -> dict[str, str]:
    """One in which programs find and leave nothing."""
    apart = {name: str(folder / name) for name in ("HOME", "LLM_USER_PATH")}
    apart |= {f"XDG_{name}_HOME": str(folder / name) for name in ("DATA", "CONFIG", "CACHE", "STATE")}
    theirs = ("OPENAI", "ANTHROPIC", "OLLAMA", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    return {**kept, **apart, "PWD": str(folder)}


def lacking(program: str) -> NoReturn:
    """Ends a test for which this program isn't here: in CI it fails, since nothing else would tell."""
    end = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
    end(f"{program} isn't in {INSTALLED}: .ci/install-clients puts it there")


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIENTS)
def test_it_chats_and_calls_tools(name: str, served: Served, tmp_path: Path) -> None:
    python = INSTALLED / "bin" / "python"
    package = PACKAGES.get(name, name)
    if not list(INSTALLED.glob(f"lib/*/site-packages/{package}/__init__.py")):
        lacking(package)
    command = [python, Path(__file__).with_name("clients.py"), name, served.url]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {"chat": "Nobody knows.", "tools": "It says: Rain in Zürich."}


@pytest.mark.slow
def test_a_coding_program_writes_a_file(served: Served, tmp_path: Path) -> None:
    programs = list(INSTALLED.glob("node_modules/opencode-*/bin/opencode"))
    if not programs and which("npm") is None:
        pytest.skip("opencode comes by npm, which isn't here")
    if not programs:
        lacking("opencode")
    made = tmp_path / "hello.py"
    Caller.file = str(made)
    options = {"baseURL": f"{served.url}/v1", "apiKey": "any"}
    ours = {"npm": "@ai-sdk/openai-compatible", "name": "ours", "options": options, "models": {"default": {}}}
    about = {"provider": {"ours": ours}, "autoupdate": False, "share": "disabled"}
    (tmp_path / "opencode.json").write_text(json.dumps(about))
    off = {f"OPENCODE_DISABLE_{name}": "1" for name in ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD")}
    command = [programs[0], "run", "-m", "ours/default", "Write hello.py"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(tmp_path) | off, cwd=tmp_path, stdin=subprocess.DEVNULL
    )
    assert "It says: Wrote file" in done.stdout, done.stderr[-3000:]
    assert made.read_text() == "print(1)\n"
