"""What answers at an address: found by asking, or said by the user."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dflash_tui.core.settings.servers import Dialect as DialectName
from dflash_tui.core.settings.servers import ServerAddress
from engine.events import EngineReady

from .complaints import error_in
from .connection import Connection
from .dialects import Facts
from .failures import Loading, ServerFailure, in_stream
from .reading import count, mapping, sequence, words
from .relayed import relayed

OWNERS: Mapping[str, DialectName] = {
    "dflash-chat": "dflash", "llamacpp": "llama.cpp", "vllm": "vllm", "sglang": "sglang",
}  # fmt: skip
"""Who owns a model, as its list says."""
_OTHERWISE = re.compile(
    r"embed|rerank|whisper|transcri|moderation|dall-e|diffusion|text-to-speech|speech-to-text|(?<![a-z])(?:bge|gte|e5|"
    r"tts|stt|asr|clip|siglip|colbert|minilm|gpt-image|parakeet|kokoro)(?![a-z])",
    re.IGNORECASE,
)
"""In the names and kinds of models that don't chat."""


async def ask_server(connection: Connection, address: ServerAddress) -> Facts:
    """Raises ``ServerFailure`` where nothing answers that can be asked questions."""
    listed, failure = await _models(connection, address.model)
    owner = words(mapping(next(iter(listed), None)).get("owned_by"))
    forced = address.dialect or OWNERS.get(owner)
    order: Sequence[DialectName] = [forced] if forced else ["dflash", "llama.cpp", "vllm", "sglang"]
    if failure is None or address.dialect or isinstance(failure, Loading):
        for dialect in order:
            facts = await _asked(connection, dialect, listed, forced is not None)
            if facts is not None:
                return facts
    if failure is not None:
        raise failure
    return Facts("openai", _family(owner), _names(listed), _context(listed))


async def _models(connection: Connection, wanted: str) -> tuple[Sequence[Any], ServerFailure | None]:
    """The list of models, the one to ask first, or why there is none."""
    try:
        body = await connection.get("/v1/models")
    except ServerFailure as failure:
        return (), failure
    said = mapping(body)
    if error := error_in(said):
        return (), in_stream(connection.where, connection.keys.blotted(error), False)
    listed = sequence(body) or sequence(said.get("data")) or sequence(said.get("models"))
    return sorted(map(_entry, listed), key=lambda entry: (entry["id"] != wanted, not _chats(entry))), None


def _entry(listed: Any) -> Mapping[str, Any]:
    """A model of a list, by the name under which it is asked."""
    entry = mapping(listed)
    names = (listed, entry.get("id"), entry.get("model"), entry.get("name"))
    return {**entry, "id": next((name for each in names if (name := words(each))), "")}


def _chats(entry: Mapping[str, Any]) -> bool:
    """As far as its name or its kind tells: models of one list may embed, rank, draw, speak or listen instead."""
    kinds = [entry.get(name) for name in ("type", "task", "object", "model_type")]
    return not any(_OTHERWISE.search(words(each)) for each in (entry["id"], *kinds))


async def _asked(connection: Connection, dialect: DialectName, listed: Sequence[Any], sure: bool) -> Facts | None:
    """What such a server says; None where this is none."""
    match dialect:
        case "dflash":
            return await _dflash(connection, listed)
        case "llama.cpp":
            return await _llama_cpp(connection, listed, sure)
        case "vllm":
            return await _vllm(connection, listed, sure)
        case "sglang":
            return await _sglang(connection, listed, sure)
        case _:
            return Facts("openai", "OpenAI-compatible", _names(listed), _context(listed)) if sure else None


async def _dflash(connection: Connection, listed: Sequence[Any]) -> Facts | None:
    said = mapping(await _maybe(connection, "/dflash"))
    ready = relayed(said, 0)
    if not isinstance(ready, EngineReady) or said.get("server") != "dflash-chat":
        return None
    shown = f"dflash-chat {words(said.get('version'))}".strip()
    return Facts("dflash", shown, _names(listed), ready.max_context, block_size=ready.max_block_size, ready=ready)


async def _llama_cpp(connection: Connection, listed: Sequence[Any], sure: bool) -> Facts | None:
    props = mapping(await _maybe(connection, "/props"))
    settings = mapping(props.get("default_generation_settings"))
    if not sure and not settings:
        return None
    build = words(props.get("build_info")).partition("-")[0]
    slots = [mapping(slot) for slot in sequence(await _maybe(connection, "/slots"))]
    speculates = any(slot.get("speculative") is True for slot in slots) if slots else None
    return Facts(
        "llama.cpp",
        "llama.cpp" if build in ("", "b0") else f"llama.cpp {build}",
        _names(listed) or tuple(filter(None, [words(props.get("model_alias"))])),
        count(settings.get("n_ctx")) or _context(listed),
        words(props.get("model_ftype")),
        speculates=speculates,
        template=words(props.get("chat_template")),
    )


async def _vllm(connection: Connection, listed: Sequence[Any], sure: bool) -> Facts | None:
    version = words(mapping(await _maybe(connection, "/version")).get("version"))
    if not sure and not version:
        return None
    try:
        metrics = await connection.get_text("/metrics")
    except ServerFailure:
        metrics = ""
    speculates = "vllm:spec_decode_num_drafts" in metrics if "vllm:" in metrics else None
    if not sure and speculates is None:
        return None
    places = set(re.findall(r'spec_decode_num_accepted_tokens_per_pos\S*position="(\d{1,4})"', metrics))
    return Facts(
        "vllm",
        f"vLLM {version}".strip(),
        _names(listed),
        _context(listed),
        block_size=len(places) + 1,
        version=tuple(int(part) for part in re.findall(r"\d{1,6}", version)[:2]),
        speculates=speculates,
    )


async def _sglang(connection: Connection, listed: Sequence[Any], sure: bool) -> Facts | None:
    info = mapping(await _maybe(connection, "/server_info")) or mapping(await _maybe(connection, "/get_server_info"))
    if not sure and "internal_states" not in info:
        return None
    algorithm = words(info.get("speculative_algorithm"))
    drafter = words(info.get("speculative_draft_model_path")) or algorithm
    width = count(info.get("speculative_num_draft_tokens")) or 1
    return Facts(
        "sglang",
        f"SGLang {words(info.get('version'))}".strip(),
        _names(listed) or tuple(filter(None, [words(info.get("served_model_name"))])),
        count(info.get("context_length")) or _context(listed),
        words(info.get("dtype")),
        drafter or None,
        max(width, 1),
        bool(algorithm) if info else None,
    )


async def _maybe(connection: Connection, path: str) -> Any:
    """What is there, or None."""
    try:
        return await connection.get(path)
    except Loading:
        raise
    except ServerFailure:
        return None


def _names(listed: Sequence[Any]) -> tuple[str, ...]:
    return tuple(name for each in listed if (name := words(mapping(each).get("id"))))


def _context(listed: Sequence[Any]) -> int:
    first = mapping(next(iter(listed), None))
    return count(first.get("max_model_len")) or count(mapping(first.get("meta")).get("n_ctx")) or 0


def _family(owner: str) -> str:
    return {"library": "Ollama", "organization_owner": "LM Studio"}.get(owner, "OpenAI-compatible")
