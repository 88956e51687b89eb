"""What a server is is found by asking; what it can't do is known before the first question, and said where it helps."""

from __future__ import annotations

from dataclasses import replace
from queue import Queue
from typing import Any

import pytest

from dflash_tui.attach.optional import without
from dflash_tui.attach.reading import EventReader
from dflash_tui.core.settings.servers import Dialect
from dflash_tui.core.source import Feature
from engine.commands import Close
from engine.events import EngineError, EngineReady, Notice, Step, event_to_dict

from .conftest import CHAT, Attach, Serve, only_error, relayed_stream
from .servers import CAPTURES, Reply, content, finish, recorded, said, sse, streamed

LLAMA, VLLM = CAPTURES / "llamacpp", CAPTURES / "vllm"
READY = EngineReady("target", "drafter", "cpu", "float32", 16, 4096, 0.5, banner="hello", target_hash="abc")
SGLANG = {
    "version": "0.5.23", "internal_states": [{}], "context_length": 8192, "speculative_algorithm": "DFLASH",
    "speculative_draft_model_path": "some/drafter", "speculative_num_draft_tokens": 16, "dtype": "bfloat16",
}  # fmt: skip


def file(name: str, status: int = 200) -> Reply:
    return Reply(((CAPTURES / name).read_bytes(),), status)


def models(owner: str, name: str = "some-model", **more: Any) -> Reply:
    return said({"data": [{"id": name, "owned_by": owner, **more}]})


SERVERS: dict[str, tuple[dict[str, Reply], Dialect, str]] = {
    "llama.cpp": (
        {"/v1/models": file("llamacpp/b11434-ngram_v1_models.json"),
         "/props": file("llamacpp/b11434-ngram_props.json")},
        "llama.cpp", "llama.cpp b11434",
    ),
    "llama.cpp behind another name": (
        {"/v1/models": models("a gateway"), "/props": file("llamacpp/dflash_props.json")}, "llama.cpp", "llama.cpp",
    ),
    "vLLM": (
        {"/v1/models": file("vllm/ngram_v1_models.json"), "/version": file("vllm/ngram_version.json"),
         "/metrics": file("vllm/dflash_metrics.txt")},
        "vllm", "vLLM 0.32.0",
    ),
    "vLLM behind another name": (
        {"/v1/models": models("a gateway"), "/version": said({"version": "0.33.0"}),
         "/metrics": file("vllm/ngram_metrics.txt")},
        "vllm", "vLLM 0.33.0",
    ),
    "SGLang": ({"/v1/models": models("sglang"), "/server_info": said(SGLANG)}, "sglang", "SGLang 0.5.23"),
    "an older SGLang": ({"/v1/models": models("x"), "/get_server_info": said(SGLANG)}, "sglang", "SGLang 0.5.23"),
    "Ollama": ({"/v1/models": models("library", "gemma4:26b")}, "openai", "Ollama"),
    "LM Studio": ({"/v1/models": models("organization_owner")}, "openai", "LM Studio"),
    "something with a version": ({"/version": said({"version": "1.0"})}, "openai", "OpenAI-compatible"),
    "ourselves": (
        {"/dflash": said(event_to_dict(READY) | {"server": "dflash-chat", "version": "1.2"})},
        "dflash", "dflash-chat 1.2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_is_found_out(name: str, serve: Serve, attach: Attach) -> None:
    replies, dialect, shown = SERVERS[name]
    server = serve(streamed(sse(content("Hello"), finish(), "[DONE]")))
    server.replies |= replies
    attached = attach(server.url + "/v1/")
    ready = attached.ready()
    assert (ready.dialect, ready.server) == (shown, server.url)
    refused = attached.source.capabilities.refused
    assert attached.source.capabilities.local is False
    fields = {"llama.cpp": "timings_per_token", "vllm": "return_token_ids", "sglang": "return_spec_tokens_details"}
    attached.ask(temperature=0.5, top_k=7, seed=3, max_new_tokens=9, thinking=True)
    (asked,) = server.asked()
    assert {field for field in (*fields.values(), "return_dflash_events") if field in asked} <= {
        fields.get(dialect, "return_dflash_events")
    }
    assert asked["model"] == ready.target or dialect == "dflash"
    assert (asked["temperature"], asked["max_tokens"], asked["seed"], asked["stream"]) == (0.5, 9, 3, True)
    assert ("top_k" in refused) == ("top_k" not in asked) and ("thinking" in refused) == (
        "chat_template_kwargs" not in asked
    )
    unchangeable: set[Feature] = {"block_size", "speculation", "draft_probabilities"}
    assert dialect == "dflash" or unchangeable <= set(refused)
    assert all(reason.endswith(".") for reason in refused.values())


def test_what_a_server_says_of_itself_is_shown(serve: Serve, attach: Attach) -> None:
    server = serve()
    for name, expected in {
        "llama.cpp": EngineReady("smollm2-135m", None, "", "Q4_1", 1, 4096, 0.0, times="server"),
        "vLLM": EngineReady("smollm2-135m", None, "", "", 16, 4096, 0.0, times="arrival"),
        "SGLang": EngineReady("some-model", "some/drafter", "", "bfloat16", 16, 8192, 0.0, times="arrival"),
        "ourselves": READY,
    }.items():
        server.replies = {"/v1/models": models("x"), **SERVERS[name][0]}
        ready = attach(server.url).ready()
        own = {"server": "", "dialect": "", "load_seconds": 0.0, "device": expected.device}
        assert replace(ready, **own) == replace(expected, load_seconds=0.0), name  # type: ignore[arg-type]


@pytest.mark.parametrize("dialect", ["llama.cpp", "vllm", "sglang", "openai"])
def test_a_dialect_can_be_forced(dialect: Dialect, serve: Serve, attach: Attach) -> None:
    """Also where a server tells nothing of itself, not even which models it has."""
    server = serve(recorded(LLAMA / "dflash_chat_short_t0.sse"))
    del server.replies["/v1/models"]
    attached = attach(server.url, dialect=dialect, model="mine")
    assert attached.ready().target == "mine"
    assert attached.ask()[-1].text and server.asked()[-1]["model"] == "mine"


def test_a_server_that_has_nothing_to_ask_is_none(serve: Serve, attach: Attach) -> None:
    server = serve()
    server.replies = {}
    (error,) = attach(server.url).until(EngineReady)
    assert error.fatal and "nothing at this place" in error.message
    server.replies = {"/v1/models": Reply((b"<html>hello",), headers={"Content-Type": "text/html"})}
    (error,) = attach(server.url).until(EngineReady)
    assert error.fatal and "web page" in error.message
    server.replies = {"/v1/models": file("llamacpp/b11434-life_models_without_key.json", 401)}
    (error,) = attach(server.url).until(EngineReady)
    assert error.fatal and "another key" in error.message


def test_a_field_that_only_tells_more_is_left_out_where_it_is_refused(serve: Serve, attach: Attach) -> None:
    refusal = said({"error": {"message": "Requested sample logprobs of 1, which is greater than max allowed: 0"}}, 400)
    server = serve([refusal, recorded(VLLM / "dflash_chat_short_t0.sse")])
    server.replies |= SERVERS["vLLM"][0]
    attached = attach(server.url)
    attached.ready()
    assert attached.ask()[-1].reason == "stop" and attached.ask()[-1].reason == "stop"
    assert ["logprobs" in asked for asked in server.asked()] == [True, False, False]
    server.replies[CHAT] = refusal
    only_error(attached.ask())


def test_a_model_that_chats_is_chosen_and_all_are_listed(serve: Serve, attach: Attach) -> None:
    names = ["text-embedding-3-small", "bge-m3", "whisper-1", "nomic-embed-text:latest", "chat-a", "chat-b"]
    server = serve(streamed(sse(content("Hello"), finish(), "[DONE]")))
    listed = [{"id": name, "max_model_len": 1000 + place} for place, name in enumerate(names)]
    for body in ({"data": listed}, listed, {"models": [{"name": name} for name in names]}, {"data": names}):
        server.replies["/v1/models"] = said(body)
        attached = attach(server.url)
        assert attached.ready().target == "chat-a"
        assert set(attached.source.capabilities.models) == set(names)
    server.replies["/v1/models"] = said({"data": listed})
    assert attach(server.url, model="chat-b").ready().max_context == 1005
    assert attach(server.url).ready().max_context == 1004
    told: Queue[Any] = Queue()
    other = attached.source.capabilities.models["chat-b"](told.put)
    other.start()
    assert told.get(timeout=60).target == "chat-b"
    other.send(Close())
    other.join(60)


TEMPLATE = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}{% endif %}"


def test_a_thought_that_the_template_begins_is_one(serve: Serve, attach: Attach) -> None:
    raw = streamed(sse(content("Let me"), content(" see.\n</th"), content("ink>\n\nHello"), finish(), "[DONE]"))
    thought = {"choices": [{"index": 0, "delta": {"reasoning_content": "Let me see."}}]}
    apart = streamed(sse(thought, content("Hello"), finish(), "[DONE]"))
    unthinking = streamed(sse(content("Hello"), finish(), "[DONE]"))
    server = serve([raw, apart, unthinking])
    server.replies["/props"] = said({"default_generation_settings": {"n_ctx": 4096}, "chat_template": TEMPLATE})
    attached = attach(server.url)
    attached.ready()
    for thoughts in ("Let me see.\n", "Let me see.", "Hello"):
        finished = attached.ask()[-1]
        assert (finished.text, finished.thought, finished.reason) == ("Hello", thoughts, "stop")


def notices(stream: Reply, replies: dict[str, Reply], serve: Serve, attach: Attach, **address: Any) -> list[Notice]:
    server = serve(stream)
    server.replies |= replies
    attached = attach(server.url, **address)
    attached.ready()
    events = [*attached.ask(max_new_tokens=500), *attached.ask(max_new_tokens=500)]
    assert not any(isinstance(event, EngineError) for event in events)
    return [event for event in events if isinstance(event, Notice)]


def test_speculation_that_is_off_is_said_once(serve: Serve, attach: Attach) -> None:
    off = recorded(LLAMA / "b11434-ngram_chat_sampler_topk1.sse")
    assert notices(off, SERVERS["llama.cpp"][0], serve, attach) == []
    plain = [content(f" {n}", timings={"predicted_n": n, "predicted_ms": n * 1.5}) for n in range(1, 30)]
    (notice,) = notices(streamed(sse(*plain, finish(), "[DONE]")), SERVERS["llama.cpp"][0], serve, attach)
    assert "Speculation is off" in notice.message and "--spec-type" in notice.advice
    idle = {**SERVERS["llama.cpp"][0], "/slots": file("llamacpp/ngram_slots.json")}
    (notice,) = notices(streamed(sse(*plain, finish(), "[DONE]")), idle, serve, attach)
    assert "drafted nothing for this answer" in notice.message
    quiet = {**SERVERS["vLLM"][0], "/metrics": Reply((b"vllm:num_requests_running 0.0\n",))}
    (notice,) = notices(recorded(VLLM / "nospec_chat_copy_t0.sse"), quiet, serve, attach)
    assert "Speculation is off" in notice.message and "--speculative-config" in notice.advice


def test_drafts_of_which_none_is_accepted_are_said(serve: Serve, attach: Attach) -> None:
    vain = [
        content(f" {n}", timings={"predicted_n": n, "predicted_ms": n * 1.5, "draft_n": 15 * n, "draft_n_accepted": 0})
        for n in range(1, 30)
    ]
    (notice,) = notices(streamed(sse(*vain, finish(), "[DONE]")), SERVERS["llama.cpp"][0], serve, attach)
    assert "accepted none" in notice.message


def test_the_flag_that_would_help_is_named_in_words_to_copy(serve: Serve, attach: Attach) -> None:
    flag = "--per-request-spec-decode-metrics detailed"
    (notice,) = notices(recorded(VLLM / "ngram_chat_no_usage.sse"), SERVERS["vLLM"][0], serve, attach)
    assert flag in notice.advice
    assert notices(recorded(VLLM / "dflash_chat_code_t0.sse"), SERVERS["vLLM"][0], serve, attach) == []


def test_our_own_events_come_as_they_were(serve: Serve, attach: Attach) -> None:
    server = serve(Reply((relayed_stream(),), headers={"Content-Type": "text/event-stream"}))
    server.replies |= SERVERS["ourselves"][0]
    attached = attach(server.url)
    assert attached.ready().times == "engine" and attached.source.capabilities.refused == {}
    events = attached.ask(block_size=8, speculation=True)
    steps = [event for event in events if isinstance(event, Step)]
    assert len(steps) == 12 and any(step.tree for step in steps) and all(step.turn == 1 for step in steps)
    assert [type(event).__name__ for event in events[:2]] == ["TurnStarted", "PrefillDone"]
    assert events[-1].statistics.num_tokens > 12, "the engine's own figures, also of what was left out here"
    assert server.asked()[0]["block_size"] == 8


def test_a_limit_that_is_refused_by_its_older_name_is_tried_by_its_newer() -> None:
    body = {"model": "m", "max_tokens": 5, "seed": 3}
    assert without(body, ["max_tokens"]) == {"model": "m", "seed": 3, "max_completion_tokens": 5}
    assert without(body, ["max_tokens", "max_completion_tokens"]) == {"model": "m", "seed": 3}


def test_a_fault_of_ours_keeps_what_stood_there(serve: Serve, attach: Attach, monkeypatch: pytest.MonkeyPatch) -> None:
    read = EventReader.read

    def fails(reader: EventReader, event: dict[str, Any], time: float) -> Any:
        if "fault" in event:
            raise RuntimeError("a fault")
        return read(reader, event, time)

    monkeypatch.setattr(EventReader, "read", fails)
    attached = attach(serve(streamed(sse(content("Hello"), content(" there"), {"fault": 1}))).url)
    attached.ready()
    events = attached.ask()
    told = [token.text for event in events if isinstance(event, Step) for token in event.emitted]
    assert events[-1].reason == "error" and events[-1].text == "".join(told) == "Hello there"
    assert "could not be understood: RuntimeError" in only_error(events).message
