"""A hub with models of the published layout, and the program as a process that knows no other hub."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dflash_tui.cli.main import program
from support.forked import Piped
from tests.hub.server import FakeHub, Repo

TARGET, DRAFTER = "google/gemma-4-26B-A4B-it", "z-lab/gemma-4-26B-A4B-it-DFlash"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
NOT_WANTED = {
    "README.md": b"# words",
    "model.gguf": b"g" * 50,
    "original/params.json": b"{}",
    "extra.safetensors": b"x",
}


def noise(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


def target_repo(hidden_size: int = 2816, num_layers: int = 30) -> Repo:
    """The 26B model's layout. Weights are noise: nothing here loads them."""
    text = {"model_type": "gemma4_text", "hidden_size": hidden_size, "num_hidden_layers": num_layers}
    index = {"weight_map": {"a": SHARDS[0], "b": SHARDS[1], "c": SHARDS[0]}}
    return Repo(
        {
            "config.json": json.dumps({"text_config": text}).encode(),
            "generation_config.json": b"{}",
            "tokenizer.json": noise(150_000, 1),
            "chat_template.jinja": b"{{ messages }}",
            "model.safetensors.index.json": json.dumps(index).encode(),
            SHARDS[0]: noise(2_000_000, 2),
            SHARDS[1]: noise(600_000, 3),
            **NOT_WANTED,
        }
    )


def drafter_repo() -> Repo:
    return Repo({"config.json": b'{"architectures": ["DFlashDraftModel"]}', "model.safetensors": noise(400_000, 4)})


def repo_of(folder: Path) -> Repo:
    return Repo({path.name: path.read_bytes() for path in folder.iterdir()})


def run_program(*arguments: str) -> None:
    sys.argv = ["dflash-chat", *arguments]
    program()


def ended(process: Piped) -> subprocess.CompletedProcess[str]:
    """What a program said, once it has ended."""
    out, err = process.communicate(timeout=60)
    assert process.returncode is not None
    return subprocess.CompletedProcess([], process.returncode, out.decode(), err.decode())


@dataclass
class Computer:
    """Runs the program with a cache of its own."""

    home: Path
    endpoint: str
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def cache(self) -> Path:
        return self.home / "hub"

    def start(self, *arguments: str, runs: Callable[..., None] = run_program) -> Piped:
        """The program, in a process of its own."""
        inherited = {key: None for key in os.environ if key.startswith(("HF_", "HUGGING"))}
        return Piped(
            runs,
            *arguments,
            environment={
                **inherited,
                "HF_HOME": str(self.home),
                "HF_ENDPOINT": self.endpoint,
                "HF_HUB_DISABLE_XET": "1",
                "HF_HUB_DISABLE_TELEMETRY": "1",
                "NO_PROXY": "*",
                **self.environment,
            },
        )

    def run(self, *arguments: str, runs: Callable[..., None] = run_program) -> subprocess.CompletedProcess[str]:
        return ended(self.start(*arguments, runs=runs))

    def interrupted(self, until: Callable[[], bool], number: signal.Signals, *arguments: str) -> tuple[int, str]:
        """Signals the program once ``until`` holds; returns its exit code and its stderr."""
        process = self.start(*arguments)
        deadline = time.monotonic() + 60
        while not until():
            assert process.poll() is None, process.communicate(30)
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        done = ended(process)
        return done.returncode, done.stderr

    def snapshot(self, name: str) -> Path:
        storage = self.cache / f"models--{name.replace('/', '--')}"
        return storage / "snapshots" / (storage / "refs" / "main").read_text()

    def partial_bytes(self, content: bytes = b"") -> int:
        """What the unfinished file of this content holds, or all of them. One that is finished meanwhile holds 0."""
        sha256 = hashlib.sha256(content).hexdigest() if content else "*"
        sizes = []
        for path in self.cache.glob(f"models--*/blobs/{sha256}.incomplete"):
            with suppress(FileNotFoundError):
                sizes.append(path.stat().st_size)
        return sum(sizes)


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    hub.repos = {TARGET: target_repo(), DRAFTER: drafter_repo()}
    yield hub
    hub.close()


@pytest.fixture
def computer(tmp_path: Path, hub: FakeHub) -> Computer:
    return Computer(tmp_path / "hf", hub.endpoint)
