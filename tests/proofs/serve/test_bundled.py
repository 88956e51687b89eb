"""The installed program on the bundled pair, asked with curl: the same answer as without a server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
    assert process.wait(20) == 143


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


def test_texts_token_ids_and_what_the_engine_refuses(url: str) -> None:
    raw = json.loads(curl(f"{url}/completions", prompt="def add(a, b):", max_tokens=12, return_token_ids=True))
    assert raw["usage"]["completion_tokens"] == 12 == len(raw["choices"][0]["token_ids"])
    too_long = json.loads(curl(f"{url}/completions", prompt=[5] * 9000))["error"]
    assert too_long["code"] == "context_length_exceeded" and "8192" in too_long["message"]
    no_token = json.loads(curl(f"{url}/completions", prompt=[10**6]))["error"]
    assert no_token["type"] == "invalid_request_error" and "1000000" in no_token["message"]
    for said in ((" ",), ("hello", "Hi!")):  # nothing was said, or the model said it last: as elsewhere
        assert chat(url, *said, max_tokens=2)["usage"]["completion_tokens"] == 2


def test_8_at_once_get_what_each_would_get_alone(url: str) -> None:
    """Seeds decide, whoever was before in the caches."""
    asked = [(seed, temperature) for seed in (1, 2) for temperature in (0.0, 0.8)] * 2

    def one(seed: int, temperature: float) -> str:
        told = chat(url, "What is 12 * 7?", seed=seed, temperature=temperature, max_tokens=30)
        return str(told["choices"][0]["message"]["content"])

    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda each: one(*each), asked))
    assert texts[:4] == texts[4:] and texts[0] == texts[2]
