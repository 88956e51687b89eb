"""The installed program on the bundled pair, asked with curl: the same answer as without a server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(sys.executable).with_name("dflash-chat")
QUESTION = "Write a quicksort in Python"
BLOCK = ("--block-size", "16")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [PROGRAM, "serve", "--device", "cpu", "--port", "0", *BLOCK]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    yield next(found[1] for line in process.stdout if (found := re.search(r"(http://\S+/v1)", line)))
    process.terminate()
    assert process.wait(60) == 143


def curl(url: str, **body: Any) -> str:
    return subprocess.run(["curl", "-sN", url, "-d", json.dumps(body)], capture_output=True, text=True).stdout


def chat(url: str, *said: str, **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": text} for place, text in enumerate(said)]
    told: dict[str, Any] = json.loads(curl(f"{url}/chat/completions", messages=messages, **more))
    return told


def test_a_server_says_what_headless_mode_says(url: str) -> None:
    """Text, rounds and events: those of ``--stream-json``, but for their times."""
    result = subprocess.run([PROGRAM, "-p", QUESTION, *BLOCK, "--stream-json"], capture_output=True, text=True)
    alone = [json.loads(line) for line in result.stdout.splitlines()]
    answer = chat(url, QUESTION, return_dflash_events=True)
    finished = alone[-1]
    assert answer["choices"][0]["message"]["content"] == finished["text"] and "def quicksort" in finished["text"]
    assert answer["usage"]["completion_tokens"] == finished["statistics"]["num_tokens"]
    wanted, got = (
        [{key: value for key, value in event.items() if key != "time" and not key.endswith("_ms")} for event in events]
        for events in ([each for each in alone if each["event"] == "Step"],
                       [each for each in answer["dflash"] if each["event"] == "Step"])
    )  # fmt: skip
    assert [event | {"turn": 0} for event in got] == [event | {"turn": 0} for event in wanted]


def test_a_conversation_is_read_once(url: str) -> None:
    first = chat(url, QUESTION, max_tokens=30)
    said = first["choices"][0]["message"]["content"]
    second = chat(url, QUESTION, said, "And a bubble sort?", max_tokens=8)
    reused = second["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert reused == second["timings"]["cache_n"] >= first["usage"]["prompt_tokens"] - 5
    assert second["timings"]["prompt_n"] == second["usage"]["prompt_tokens"] - reused
