"""OpenAI's own client on our server."""

from __future__ import annotations

from support.scripted_engine import PAGE, tokenise
from tests.serve.conftest import Json, Served


def test_openai_s_client_reads_a_stream_and_an_object(served: Served) -> None:
    client = served.client()
    asked: Json = {"model": "gemma4-tiny", "messages": [{"role": "user", "content": "hello"}], "seed": 1}
    whole = client.chat.completions.create(**asked)
    parts = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert whole.choices[0].message.content == PAGE and whole.choices[0].finish_reason == "stop"
    assert "".join(part.choices[0].delta.content or "" for part in parts if part.choices) == PAGE
    assert parts[0].choices[0].delta.role == "assistant" and parts[-2].choices[0].finish_reason == "stop"
    assert parts[-1].usage == whole.usage and len({part.id for part in parts}) == 1
    assert whole.usage is not None and whole.usage.completion_tokens == len(tokenise(PAGE))
    assert whole.usage.prompt_tokens_details is not None and whole.usage.prompt_tokens_details.cached_tokens == 12
    text = client.completions.create(model="default", prompt="Once", logprobs=0)
    assert text.choices[0].text == PAGE == "".join(text.choices[0].logprobs.tokens)  # type: ignore[union-attr, arg-type]
    assert [model.id for model in client.models.list()] == ["demo/gemma4-tiny"]
    assert client.models.retrieve("demo/gemma4-tiny").owned_by == "dflash-chat"
