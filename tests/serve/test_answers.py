"""Answers as clients read them: OpenAI's shapes, the figures of llama.cpp and vLLM, and the engine's own events."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from engine.commands import EngineOptions
from engine.events import EngineError, Step, TurnFinished, event_to_dict
from support.scripted_engine import PAGE, tokenise

from .conftest import Json, Serve, Served

ALL: Json = {
    "timings_per_token": True,
    "return_token_ids": True,
    "logprobs": True,
    "stream_options": {"include_usage": True},
}
TEXT: Json = {**ALL, "prompt": "Once", "logprobs": 0}


def texts(chunks: list[Json], name: str = "content") -> str:
    return "".join(choice["delta"].get(name, "") for chunk in chunks for choice in chunk["choices"])


def test_what_a_request_says_in_vain_is_named_in_a_header(served: Served) -> None:
    for stream in (False, True):
        answer = served.post(tempature=1, **{"härte\n": 2}, stream=stream)
        assert json.loads(answer.headers["x-ignored-parameters"]) == ["tempature", "härte\n"]
    assert "x-ignored-parameters" not in served.post().headers


def rounds_of(served: Served) -> list[Step]:
    """Of the newest answer."""
    turn = served.finished()[-1].turn
    return [event for event in served.events if isinstance(event, Step) and event.turn == turn]


@pytest.mark.parametrize(("path", "body"), [("chat/completions", ALL), ("completions", TEXT)])
def test_a_chunk_is_a_round_with_its_ids_and_probabilities(served: Served, path: str, body: Json) -> None:
    chunks = served.chunks(path, **body)
    steps = rounds_of(served)
    rounds = [chunk for chunk in chunks if "timings" in chunk and chunk["choices"]]
    assert len(rounds) == len(steps)
    for chunk, step in zip(rounds, steps, strict=True):
        choice, said = chunk["choices"][0], "".join(token.text for token in step.emitted)
        assert choice["token_ids"] == [token.id for token in step.emitted]
        assert (choice["delta"]["content"] if "delta" in choice else choice["text"]) == said
        logprobs = choice["logprobs"]
        told = [each["logprob"] for each in logprobs["content"]] if "delta" in choice else logprobs["token_logprobs"]
        assert [round(math.exp(each), 3) for each in told] == [token.probability for token in step.emitted]
        if "delta" in choice:
            assert "".join(bytes(each["bytes"]).decode() for each in logprobs["content"]) == said
        else:
            offsets = logprobs["text_offset"]
            assert [PAGE[place:].startswith(token) for place, token in zip(offsets, logprobs["tokens"], strict=True)]


def test_timings_are_llama_cpp_s_and_metrics_vllm_s(served: Served) -> None:
    *chunks, last = served.chunks(**ALL)
    steps = rounds_of(served)
    drafted, kept, written = 0, 0, 0
    for chunk, step in zip([each for each in chunks if "timings" in each], steps, strict=True):
        drafted, kept, written = drafted + len(step.draft), kept + step.num_accepted, written + len(step.emitted)
        timings = chunk["timings"]
        assert timings["predicted_n"] == written and (timings["cache_n"], timings["prompt_n"]) == (12, 28)
        assert (timings.get("draft_n", 0), timings.get("draft_n_accepted", 0)) == (drafted, kept)
        assert timings["predicted_ms"] == (pytest.approx(1000 * (step.time - steps[0].time)) if step.index else 0.001)
    speculative = [step for step in steps if step.draft]
    metrics = last["metrics"]["speculative_decoding"]
    assert metrics["per_step_accepted"] == [step.num_accepted for step in speculative]
    assert metrics["per_step_drafted"] == [step.verify_width - 1 for step in speculative]
    histogram = metrics["acceptance_histogram"]
    assert len(histogram) == metrics["num_spec_tokens"] + 1 == 16 and sum(histogram) == metrics["num_spec_steps"]
    assert sum(n * count for n, count in enumerate(histogram)) == metrics["num_accepted_draft_tokens"] == kept
    assert metrics["num_draft_tokens"] == drafted and metrics["draft_acceptance_rate"] == pytest.approx(kept / drafted)
    assert metrics["mean_acceptance_length"] == pytest.approx(1 + kept / len(speculative))
    assert 1 + sum(each + 1 for each in metrics["per_step_accepted"]) == written == last["usage"]["completion_tokens"]


@pytest.mark.parametrize(("path", "body"), [("chat/completions", {}), ("completions", {"prompt": "Once"})])
def test_events_are_those_of_the_engine(served: Served, path: str, body: Json) -> None:
    """Also where a stop text ends the answer for the client, and when they come with the whole answer."""
    for more in ({}, {"stop": "canvas"}):
        chunks = served.chunks(path, **body, **more, return_dflash_events=True)
        told = [event for chunk in chunks for event in chunk.get("dflash", ())]
        assert told == served.told(told[0]["turn"])
        assert [told[0]["event"], told[-1]["event"]] == ["TurnStarted", "TurnFinished"]
    whole = served.post(path, **body, return_dflash_events=True).json()["dflash"]
    assert whole == served.told(whole[0]["turn"])
    assert served.http().get("/dflash").json().items() >= {
        **event_to_dict(served.serving.scheduler.ready), "server": "dflash-chat"  # type: ignore[arg-type]
    }.items()  # fmt: skip


def test_stop_texts_and_tokens_end_an_answer_and_the_engine_s_work(serve: Serve) -> None:
    with serve(round_seconds=0.01) as served:
        chunks = served.chunks(stop=["requestAnim", "</script>"], stream_options={"include_usage": True})
        cut = PAGE[: PAGE.index("requestAnim")]
        assert texts(chunks) == cut
        ending = chunks[-2]["choices"][0]
        assert (ending["finish_reason"], ending["stop_reason"]) == ("stop", "requestAnim")
        assert chunks[-1]["usage"]["completion_tokens"] < len(tokenise(PAGE)) - 10
        assert served.finished()[-1].reason == "stopped" and len(served.finished()[-1].text) < len(PAGE)
        message = served.post(stop=["requestAnim"]).json()["choices"][0]
        assert (message["message"]["content"], message["stop_reason"]) == (cut, "requestAnim")
        by_token = served.post(stop_token_ids=[7]).json()["choices"][0]  # the script's first token
        assert (by_token["message"]["content"], by_token["stop_reason"]) == ("", 7)
        first = tokenise(PAGE)[0]  # held back until the next token says that it begins no stop text
        before = served.post(stop=[f"{first}no such"], stop_token_ids=[8]).json()["choices"][0]
        assert (before["message"]["content"], before["stop_reason"]) == (first, 8)
        assert texts(served.chunks(stop=["> no such text", "\n\nEach drone mov?"])) == PAGE


def test_thoughts_are_no_content(serve: Serve) -> None:
    from support.scripted import Script, ScriptPlayer

    def player(emit: Any, **_: Any) -> ScriptPlayer:
        return ScriptPlayer(Script(pieces=("a", "b")), EngineOptions(), emit)

    with serve(make=player) as served:
        chunks = served.chunks(stop="thought", logprobs=True)
        assert texts(chunks) == "ab" and texts(chunks, "reasoning_content") == "a thought" * 2
        whole = served.post(chat_template_kwargs={"enable_thinking": True}).json()
        message = whole["choices"][0]["message"]
        assert (message["content"], message["reasoning_content"]) == ("ab", "a thought" * 2)
        assert whole["usage"]["completion_tokens_details"]["reasoning_tokens"] == 2
        assert served.engine.asked[-1].settings.thinking
        assert served.post("completions", prompt="x").json()["choices"][0]["text"] == "a thoughtaa thoughtb"


def test_an_answer_that_breaks_off_says_so_in_the_stream(serve: Serve) -> None:
    from support.scripted import Script, ScriptPlayer

    def player(emit: Any, **_: Any) -> ScriptPlayer:
        return ScriptPlayer(
            Script(error=EngineError("device", "The GPU ran out of memory.", "")), EngineOptions(), emit
        )

    with serve(make=player) as served:
        chunks = served.chunks(return_dflash_events=True)
        assert chunks[-1]["error"]["message"] == "The GPU ran out of memory."
        assert [each["event"] for each in chunks[-1]["dflash"]] == ["EngineError", "TurnFinished"]
        assert served.post().status_code == 500
        assert isinstance(served.events[-1], TurnFinished) and served.serving.scheduler.waiting == 0
