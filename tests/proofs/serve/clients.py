"""Programs of other people, each set on a server: ``clients.py NAME URL`` prints what it was told as JSON.

``chat`` is the answer to a question, ``tools`` what the model said once a function had been called for it. They run in
an environment of their own (``.ci/install-clients``), so nothing here is of this project."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODEL, KEY, QUESTION = "gemma4-tiny", "any", "What is the weather in Zürich?"
Told = dict[str, str]


def weather(city: str) -> str:
    """Says what the weather in a city is.

    Args:
        city: The city's name.
    """
    return f"Rain in {city}."


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "weather", "description": "Says what the weather in a city is.", "parameters": SCHEMA}
TOOLS: Any = [{"type": "function", "function": FUNCTION}]


def openai_chat(url: str) -> Told:
    from openai import OpenAI

    return _chat(OpenAI(base_url=f"{url}/v1", api_key=KEY))


def azure(url: str) -> Told:
    """OpenAI's package as it asks Azure: the model in the address, the key in ``api-key``."""
    from openai import AzureOpenAI

    return _chat(AzureOpenAI(azure_endpoint=url, api_key=KEY, api_version="2026-01-01"))


def _chat(client: Any) -> Told:
    said: Any = [{"role": "user", "content": QUESTION}]
    chat = "".join(
        chunk.choices[0].delta.content or ""
        for chunk in client.chat.completions.create(model=MODEL, messages=said, stream=True)
    )
    message = client.chat.completions.create(model=MODEL, messages=said, tools=TOOLS).choices[0].message
    said.append(message)
    for call in message.tool_calls:
        result = weather(**json.loads(call.function.arguments))
        said.append({"role": "tool", "tool_call_id": call.id, "content": result})
    with client.chat.completions.stream(model=MODEL, messages=said, tools=TOOLS) as stream:
        return {"chat": chat, "tools": stream.get_final_completion().choices[0].message.content}


def openai_responses(url: str) -> Told:
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key=KEY)
    tools: Any = [{"type": "function", **FUNCTION, "strict": False}]
    said: Any = [{"role": "user", "content": QUESTION}]
    with client.responses.stream(model=MODEL, input=said, tools=tools) as stream:
        items = stream.get_final_response().output
    said += [item for item in items if item.type == "function_call"]
    for call in said[1:]:
        result = weather(**json.loads(call.arguments))
        said.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    chat = client.responses.create(model=MODEL, input=QUESTION).output_text
    return {"chat": chat, "tools": client.responses.create(model=MODEL, input=said, tools=tools).output_text}


def anthropic(url: str) -> Told:
    from anthropic import Anthropic

    client = Anthropic(base_url=url, api_key=KEY)
    tools: Any = [{"name": "weather", "description": FUNCTION["description"], "input_schema": SCHEMA}]
    said: Any = [{"role": "user", "content": QUESTION}]
    chat = client.messages.create(model=MODEL, max_tokens=500, messages=said).content[0].text
    with client.messages.stream(model=MODEL, max_tokens=500, messages=said, tools=tools) as stream:
        message = stream.get_final_message()
    said.append({"role": "assistant", "content": message.content})
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": weather(**block.input)}
        for block in message.content
        if block.type == "tool_use"
    ]
    said.append({"role": "user", "content": results})
    assert client.messages.count_tokens(model=MODEL, messages=said, tools=tools).input_tokens > 0
    told = client.messages.create(model=MODEL, max_tokens=500, messages=said, tools=tools)
    return {"chat": chat, "tools": told.content[0].text}


def ollama(url: str) -> Told:
    from ollama import Client

    client = Client(host=url)
    assert client.list().models[0].model and client.show(MODEL).capabilities and client.ps().models
    generated = "".join(part.response for part in client.generate(MODEL, QUESTION, stream=True))
    said: Any = [{"role": "user", "content": QUESTION}]
    chat = "".join(part.message.content or "" for part in client.chat(MODEL, said, stream=True))
    assert chat == generated
    message = client.chat(MODEL, said, tools=[weather]).message
    said.append(message)
    for call in message.tool_calls or ():
        said.append({"role": "tool", "tool_name": call.function.name, "content": weather(**call.function.arguments)})
    return {"chat": chat, "tools": client.chat(MODEL, said, tools=[weather]).message.content or ""}


def llm(url: str) -> Told:
    folder = Path(os.environ["LLM_USER_PATH"])
    folder.mkdir(parents=True, exist_ok=True)
    about = [f"- model_id: here\n  model_name: {MODEL}\n  api_base: {url}/v1\n  supports_tools: true\n"]
    (folder / "extra-openai-models.yaml").write_text("".join(about))
    import llm as package

    model = package.get_model("here")
    model.key = KEY
    return {"chat": model.prompt(QUESTION).text(), "tools": model.chain(QUESTION, tools=[weather]).text()}


def litellm(url: str) -> Told:
    import litellm as package

    package.suppress_debug_info = True
    asked: Any = {"model": f"openai/{MODEL}", "api_base": f"{url}/v1", "api_key": KEY}
    said: Any = [{"role": "user", "content": QUESTION}]
    chat = "".join(
        part.choices[0].delta.content or "" for part in package.completion(messages=said, stream=True, **asked)
    )
    other = package.completion(messages=said, model=f"ollama_chat/{MODEL}", api_base=url).choices[0].message.content
    assert chat == other, other
    message = package.completion(messages=said, tools=TOOLS, **asked).choices[0].message
    said.append(message)
    for call in message.tool_calls:
        result = weather(**json.loads(call.function.arguments))
        said.append({"role": "tool", "tool_call_id": call.id, "content": result})
    told = package.completion(messages=said, tools=TOOLS, **asked).choices[0].message.content
    return {"chat": chat, "tools": told}


def langchain(url: str) -> Told:
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=MODEL, base_url=f"{url}/v1", api_key=KEY)
    said: Any = [HumanMessage(QUESTION)]
    chat = "".join(str(part.content) for part in model.stream(said))
    bound = model.bind_tools([weather])
    said.append(bound.invoke(said))
    said += [ToolMessage(weather(**call["args"]), tool_call_id=call["id"]) for call in said[-1].tool_calls]
    return {"chat": chat, "tools": str(bound.invoke(said).content)}


def pydantic_ai(url: str) -> Told:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=f"{url}/v1", api_key=KEY))
    chat = Agent(model).run_sync(QUESTION).output
    return {"chat": chat, "tools": Agent(model, tools=[weather]).run_sync(QUESTION).output}


def openai_agents(url: str) -> Told:
    """As it comes: it asks ``/v1/responses``."""
    return _agents(url, "responses")


def openai_agents_chat(url: str) -> Told:
    return _agents(url, "chat_completions")


def _agents(url: str, api: Any) -> Told:
    from agents import (
        Agent,
        Runner,
        function_tool,
        set_default_openai_api,
        set_default_openai_client,
        set_tracing_disabled,
    )
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    set_default_openai_api(api)
    set_default_openai_client(AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY))
    plain, armed = (Agent("one", model=MODEL, tools=tools) for tools in ([], [function_tool(weather)]))
    chat, tools = (Runner.run_sync(each, QUESTION).final_output for each in (plain, armed))
    return {"chat": chat, "tools": tools}


def instructor(url: str) -> Told:
    """Its mode that lets the model choose. The one that requires a call is refused, and works where whoever uses it
    leaves the choice to the model."""
    from collections.abc import Iterable

    import instructor as package
    from openai import OpenAI
    from pydantic import BaseModel

    class weather(BaseModel):
        """Says what the weather in a city is."""

        city: str

    said: Any = [{"role": "user", "content": QUESTION}]
    client = package.from_openai(OpenAI(base_url=f"{url}/v1", api_key=KEY), mode=package.Mode.PARALLEL_TOOLS)
    found = list(client.chat.completions.create(model=MODEL, messages=said, response_model=Iterable[weather]))
    forcing = package.from_openai(OpenAI(base_url=f"{url}/v1", api_key=KEY), mode=package.Mode.TOOLS)
    try:
        forcing.chat.completions.create(model=MODEL, messages=said, response_model=weather, max_retries=1)
        refused = ""
    except Exception as error:
        refused = str(error)
    assert "tool_choice can't be had" in refused, refused
    plain = OpenAI(base_url=f"{url}/v1", api_key=KEY).chat.completions.create
    choosing = package.patch(create=lambda **asked: plain(**{**asked, "tool_choice": "auto"}), mode=package.Mode.TOOLS)
    assert choosing(model=MODEL, messages=said, response_model=weather, max_retries=1).city == found[0].city
    chat = client.client.chat.completions.create(model=MODEL, messages=said).choices[0].message.content
    return {"chat": chat, "tools": f"It says: Rain in {found[0].city}."}


CLIENTS: dict[str, Callable[[str], Told]] = {
    each.__name__: each
    for each in (openai_chat, azure, openai_responses, anthropic, ollama, llm, litellm, langchain, pydantic_ai,
                 openai_agents, openai_agents_chat, instructor)
}  # fmt: skip

if __name__ == "__main__":
    print(json.dumps(CLIENTS[sys.argv[1]](sys.argv[2])))
