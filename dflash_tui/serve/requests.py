"""Turns the JSON of a request into what is asked of the engine. What can't be done is refused in a sentence; ``API.md``
lists every parameter."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Literal, NoReturn, TypeVar

from dflash_tui.core.settings.decoding import SETTINGS, Setting, SettingName
from engine.commands import AUTO, Ask, CallSyntax, GenerationSettings, Message, Tool

from .conversation import read_messages, read_tools, wrong
from .failures import ApiFailure

T = TypeVar("T")
RequestKind = Literal["chat", "text"]
"""A conversation, or a text to write on."""

MAX_STOPS, MAX_STOP_CHARACTERS = 256, 1000
MAX_TOP_K = 2**31 - 1
SEEDS = 2**63
LEAST_TOP_P = 1e-9
"""The smallest ``top_p`` that is used: it leaves the likeliest token alone, as 0 does."""
ROUTERS = frozenset({"openai", "anthropic", "ollama", "ollama_chat", "hosted_vllm", "azure", "dflash-chat"})
"""What programs that ask many servers write before a model's name."""
_YES, _NO = ("true", "yes", "on", "1", "t", "y"), ("false", "no", "off", "0", "f", "n")

_COMMON = {
    "model", "stream", "stream_options", "max_tokens", "stop",
    "stop_token_ids", "logprobs", "user", "timings_per_token", "return_token_ids", "return_dflash_events", "n_predict",
    *({setting.name for setting in SETTINGS} - {"max_new_tokens", "thinking"}),
}  # fmt: skip
_KNOWN: dict[RequestKind, set[str]] = {
    "chat": _COMMON | {"messages", "max_completion_tokens", "chat_template_kwargs", "tools"},
    "text": _COMMON | {"prompt"},
}

IGNORED = frozenset({
    "store", "metadata", "service_tier", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention",
    "safety_identifier", "prediction", "reasoning_effort", "verbosity", "cache_prompt", "id_slot", "priority",
    "request_id", "skip_special_tokens", "spaces_between_special_tokens", "stream_interval", "reasoning_format",
    "return_progress", "samplers", "include_reasoning", "separate_reasoning", "reasoning", "include", "truncation",
    "keep_alive", "cache_control",
})  # fmt: skip
"""Parameters that have no effect here: the answer is the same with them and without."""

_ONE = "this server gives one answer to a request"
_FREE = "this server gives free text alone"
_ANEW = "this server begins answers anew"
_TOOLS = "tools go with a chat"
_CHOICE = "the model chooses whether it calls a tool: auto, or none"
_KEPT = "this server keeps no answers"
_SAMPLING = "this server samples by temperature, top_p and top_k alone"
REFUSED: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "n": ((1,), _ONE),
    "best_of": ((1,), _ONE),
    "tools": (([],), _TOOLS),
    "tool_choice": (("none", "auto"), _CHOICE),
    "functions": (([],), "functions are called tools now"),
    "function_call": (("none", "auto"), _CHOICE),
    "previous_response_id": ((), _KEPT),
    "conversation": ((), _KEPT),
    "background": ((False,), _KEPT),
    "context": (([],), _KEPT),
    "template": (("",), "the model's own template is used"),
    "images": (([],), "this server reads text alone"),
    "response_format": (({"type": "text"},), _FREE),
    "modalities": ((["text"],), _FREE),
    "audio": ((), _FREE),
    "grammar": (("",), _FREE),
    "json_schema": (({},), _FREE),
    "structured_outputs": (({},), _FREE),
    "guided_json": ((), _FREE),
    "guided_regex": ((), _FREE),
    "guided_choice": ((), _FREE),
    "guided_grammar": ((), _FREE),
    "bad_words": (([],), _FREE),
    "allowed_token_ids": ((), _FREE),
    "continue_final_message": ((False,), _ANEW),
    "add_generation_prompt": ((True,), _ANEW),
    "web_search_options": ((), "this server searches nothing"),
    "logit_bias": (({},), _SAMPLING),
    "presence_penalty": ((0,), _SAMPLING),
    "frequency_penalty": ((0,), _SAMPLING),
    "repetition_penalty": ((1,), _SAMPLING),
    "repeat_penalty": ((1,), _SAMPLING),
    "min_p": ((0,), _SAMPLING),
    "typical_p": ((1,), _SAMPLING),
    "mirostat": ((0,), _SAMPLING),
    "dry_multiplier": ((0,), _SAMPLING),
    "xtc_probability": ((0,), _SAMPLING),
    "dynatemp_range": ((0,), _SAMPLING),
    "use_beam_search": ((False,), _SAMPLING),
    "top_logprobs": ((0,), "this server knows the probability of the emitted token alone"),
    "prompt_logprobs": ((0,), "this server knows the probability of the emitted token alone"),
    "echo": ((False,), "this server returns no prompts"),
    "suffix": (("",), "this server writes on from the prompt alone"),
    "min_tokens": ((0,), "the model decides when its answer ends"),
    "ignore_eos": ((False,), "the model decides when its answer ends"),
}
"""Parameters that would change the answer and can't be had: the values at which they change nothing, and why others are
refused."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    kind: RequestKind
    settings: GenerationSettings
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    calls: CallSyntax | None = None
    """How the model writes calls of these tools; None where there are none."""
    prompt: str | tuple[int, ...] = ()
    stream: bool = False
    stops: tuple[str, ...] = ()
    """Texts that end the answer, and are left out of it."""
    stop_ids: frozenset[int] = frozenset()
    logprobs: bool = False
    usage: bool = False
    """Whether a last chunk with usage, timings and metrics is wanted."""
    usage_always: bool = False
    timings: bool = False
    """Whether every chunk shall carry llama.cpp's timings."""
    token_ids: bool = False
    events: bool = False
    """Whether the engine's own events are wanted beside the chunks."""
    user: str = ""
    unknown: tuple[str, ...] = ()
    """Names of parameters that this server doesn't know, and ignored."""

    def ask(self, turn: int) -> Ask:
        """The command that asks it, as this turn."""
        return Ask(turn, self.messages, self.settings, self.prompt, self.tools)


@dataclass(frozen=True, slots=True)
class Offer:
    """The model, its limits and the defaults that this server offers."""

    model: str
    max_context: int
    settings: GenerationSettings = field(default_factory=GenerationSettings)
    """Settings for what a request doesn't say."""
    calls: CallSyntax | None = None
    """How the model writes calls of tools; None where it knows no tools."""

    def has(self, name: str) -> bool:
        """Whether a request may call the model so: by its name or the last part of it, in capitals or not, as routers
        and Ollama write it, by ``default`` or not at all."""
        model, name = self.model.lower(), name.lower().removesuffix(":latest")
        names = (model, model.rstrip("/").rpartition("/")[2], "default", "")
        router, _, behind = name.partition("/")
        return name in names or (router in ROUTERS and behind in names)


def parse_json(body: bytes) -> dict[str, Any]:
    """The object in a request's body. Raises :class:`ApiFailure`."""
    try:
        data = json.loads(body, parse_constant=_no_number)
        json.dumps(data, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except RecursionError:
        raise ApiFailure(400, "The body is nested too deeply.") from None
    except ValueError as error:
        raise ApiFailure(400, f"The body is not JSON: {error}.") from None
    if not isinstance(data, dict):
        raise ApiFailure(400, "The body must be a JSON object.")
    return data


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def parse(kind: RequestKind, data: Mapping[str, Any], offer: Offer) -> CompletionRequest:
    """What a request asks for. Raises :class:`ApiFailure` for what this server can't do as asked."""
    fields = _Fields(data)
    unknown = _unknown(kind, data)
    if not offer.has(fields.text("model")):
        raise no_such_model(fields.text("model"), offer.model)
    offered = data.get("tools") if kind == "chat" and data.get("tool_choice") != "none" else None
    if offered and offer.calls is None:
        raise refusal("tools", "this model's chat template knows no tools")
    tools = read_tools(offered)
    options = fields.mapping("stream_options")
    return CompletionRequest(
        kind=kind,
        settings=_settings(fields, offer),
        messages=read_messages(data.get("messages")) if kind == "chat" else (),
        tools=tools,
        calls=offer.calls if tools else None,
        prompt=_prompt(data.get("prompt")) if kind == "text" else (),
        stream=fields.flag("stream"),
        stops=_stops(data.get("stop")),
        stop_ids=frozenset(_ids(data.get("stop_token_ids") or [], "stop_token_ids")),
        logprobs=_logprobs(kind, data.get("logprobs")),
        usage=options.flag("include_usage"),
        usage_always=options.flag("continuous_usage_stats"),
        timings=fields.flag("timings_per_token"),
        token_ids=fields.flag("return_token_ids"),
        events=fields.flag("return_dflash_events"),
        user=str(fields.raw("user") or ""),
        unknown=unknown,
    )


def no_such_model(name: str, ours: str) -> ApiFailure:
    message = f"There is no model {name!r} here; this server has {ours!r}."
    return ApiFailure(404, message, param="model", code="model_not_found")


def refusal(name: str, why: str) -> ApiFailure:
    """For a parameter that would change the answer, and can't be had."""
    return ApiFailure(400, f"{name} can't be had: {why}. Leave it out.", param=name, code="unsupported_parameter")


class _Fields:
    """Reads the fields of an object; null is the same as absent."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    def flag(self, name: str, otherwise: bool = False) -> bool:
        value = self._data.get(name)
        word = str(value).lower() if isinstance(value, bool | int | str) else ""
        if value is None:
            return otherwise
        if word not in _YES + _NO:
            raise wrong(name, "true or false")
        return word in _YES

    def text(self, name: str) -> str:
        return self._read(name, str, "", "a text")

    def mapping(self, name: str) -> _Fields:
        nothing: dict[str, Any] = {}
        return _Fields(self._read(name, dict, nothing, "an object"))

    def whole(self, name: str) -> int | None:
        value = self._data.get(name)
        if isinstance(value, str | float) and (number := _as_number(value)) is not None and number.is_integer():
            value = int(value) if _is_digits(value) else int(number)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise wrong(name, "a whole number")

    def number(self, name: str) -> float | None:
        value = self._data.get(name)
        if isinstance(value, str):
            value = value if (number := _as_number(value)) is None else number
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        raise wrong(name, "a number")

    def raw(self, name: str) -> Any:
        return self._data.get(name)

    def _read(self, name: str, kind: type[T], otherwise: T, words: str) -> T:
        value = self._data.get(name)
        if value is None:
            return otherwise
        if not isinstance(value, kind):
            raise wrong(name, words)
        return value


def _as_number(value: str | float) -> float | None:
    """The value as a finite number, also where it stands in quotes; None for anything else."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _is_digits(value: str | float) -> bool:
    """Whether the value is a whole number in quotes, perhaps with too many digits for a float."""
    return isinstance(value, str) and value.strip().removeprefix("-").isdecimal()


def _unknown(kind: RequestKind, data: Mapping[str, Any]) -> tuple[str, ...]:
    """The parameters that nobody here knows. Raises :class:`ApiFailure` for one that is known and can't be had."""
    others = [name for name, value in data.items() if not (value is None or name in _KNOWN[kind] or name in IGNORED)]
    for name in others:
        neutral, why = REFUSED.get(name, ((data[name],), ""))
        if not any(data[name] == each for each in neutral):
            raise refusal(name, why)
    return tuple(name for name in others if name not in REFUSED)


def _settings(fields: _Fields, offer: Offer) -> GenerationSettings:
    settings = replace(offer.settings, max_new_tokens=offer.max_context)
    for setting in SETTINGS:
        name, value = _SPECIAL[setting.name](fields) if setting.name in _SPECIAL else _plain(fields, setting)
        if setting.name == "max_new_tokens" and value is not None:
            value = min(value, offer.max_context)
        if value is not None:
            settings = _changed(settings, name, setting.name, value)
    if _seed(fields)[1] is None and settings.temperature > 0:
        settings = replace(settings, seed=random.getrandbits(32))  # who names no seed wants another answer each time
    return settings


def _changed(settings: GenerationSettings, name: str, setting: str, value: Any) -> GenerationSettings:
    change: dict[str, Any] = {setting: value}
    try:
        return replace(settings, **change)
    except ValueError as error:
        rule = str(error).partition(" must be ")[2]
        raise ApiFailure(400, f"{name} must be {rule}.", param=name) from None


_Told = tuple[str, Any]
"""A request's field and the value that it gives to a setting; None where it gives none."""


def _longest(fields: _Fields) -> _Told:
    """The field and value of the limit on tokens: OpenAI's new name beats the old one, and that llama.cpp's own. -1 is
    how some clients ask for no limit."""
    names = ("max_completion_tokens", "max_tokens", "n_predict")
    name = next((name for name in names if fields.raw(name) is not None), "max_tokens")
    value = fields.whole(name)
    return name, None if value == -1 else value


def _seed(fields: _Fields) -> _Told:
    """The seed; -1 stands for any, and another number below zero is a seed like others."""
    value = fields.whole("seed")
    return "seed", None if value is None or value == -1 else value % SEEDS


def _top_p(fields: _Fields) -> _Told:
    value = fields.number("top_p")
    return "top_p", LEAST_TOP_P if value == 0 else value


def _top_k(fields: _Fields) -> _Told:
    """``top_k``; -1 is how some clients say that all tokens stay."""
    value = fields.whole("top_k")
    return "top_k", None if value is None else min(max(value, 0), MAX_TOP_K)


def _thinking(fields: _Fields) -> _Told:
    options = fields.mapping("chat_template_kwargs")
    return "chat_template_kwargs", None if options.raw("enable_thinking") is None else options.flag("enable_thinking")


_SPECIAL: Mapping[SettingName, Callable[[_Fields], _Told]] = {
    "seed": _seed, "top_p": _top_p, "top_k": _top_k, "max_new_tokens": _longest, "thinking": _thinking,
}  # fmt: skip
"""Settings that clients call otherwise, or of which they say some values in their own way."""


def _plain(fields: _Fields, setting: Setting) -> _Told:
    if setting.kind == "block size" and fields.raw(setting.name) == AUTO:
        return setting.name, AUTO
    readers: dict[str, Callable[[str], Any]] = {"switch": fields.flag, "number": fields.number, "choice": fields.text}
    value = readers.get(setting.kind, fields.whole)(setting.name) if fields.raw(setting.name) is not None else None
    return setting.name, None if value == "" else value


def _prompt(value: Any) -> str | tuple[int, ...]:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str | list):
        value = value[0]
    if isinstance(value, list) and any(isinstance(each, str | list) for each in value):
        raise ApiFailure(400, "prompt holds several prompts: this server takes one in a request.", param="prompt")
    if not value:
        raise wrong("prompt", "a text or a list of token ids, and not empty")
    return value if isinstance(value, str) else _ids(value, "prompt")


def _ids(value: Any, name: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(isinstance(each, int) and not isinstance(each, bool) for each in value):
        raise wrong(name, "a list of token ids")
    return tuple(value)


def _stops(value: Any) -> tuple[str, ...]:
    """The texts that end the answer; empty ones are dropped."""
    stops = [value] if isinstance(value, str) else value or []
    if not isinstance(stops, list) or not all(isinstance(each, str) for each in stops):
        raise wrong("stop", "a text or a list of texts")
    stops = [each for each in stops if each]
    if len(stops) > MAX_STOPS or any(len(each) > MAX_STOP_CHARACTERS for each in stops):
        raise wrong("stop", f"at most {MAX_STOPS} texts of at most {MAX_STOP_CHARACTERS} characters")
    return tuple(stops)


def _logprobs(kind: RequestKind, value: Any) -> bool:
    """Whether the emitted tokens' probabilities are wanted. A chat says so with true, a completion with a number of
    alternatives, of which none can be had."""
    if kind == "text" and isinstance(value, int) and not isinstance(value, bool):
        if value != 0:
            raise ApiFailure(400, f"logprobs must be 0: {REFUSED['top_logprobs'][1]}.", param="logprobs")
        return True
    if value is not None and not isinstance(value, bool):
        raise wrong("logprobs", "true or false" if kind == "chat" else "0")
    return bool(value)
