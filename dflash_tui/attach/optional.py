"""Finds the fields of a question that a server refuses, by its words: all but the conversation can be left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

NEEDED = frozenset({"model", "messages", "prompt", "stream"})
STANDARD = frozenset({"temperature", "top_p", "max_tokens", "max_completion_tokens", "seed"})
"""Fields that change the answer and that nearly every server has: where a refusal names none, they are the last to be
left out."""
CALLED: Mapping[str, str] = {
    "chat_template_kwargs": r"chat[ _-]?template\w*|(?:enable[ _-]?)?thinking|reasoning",
    "max_tokens": r"max[ _-]?tokens",
    "max_completion_tokens": r"max[ _-]?(?:completion[ _-]?)?tokens",
    "logprobs": r"(?:top[ _-]?)?log[ _-]?prob(?:s|abilit(?:y|ies))?",
    "stream_options": r"stream[ _-]?options|(?:include|continuous)[ _-]?usage(?:[ _-]?stats)?",
}
"""Patterns by which servers name some fields; they call the others by their own names."""


def named(error: str, fields: Iterable[str]) -> set[str]:
    """The fields that a refusal names; ``stream`` where it names only streaming, so that the answer is asked for
    whole."""
    fields_named = {name for name in fields if name not in NEEDED and _calls(error, name)}
    streams = re.search(r"\bstream(?:ing|ed)?\b", error, re.IGNORECASE)
    return fields_named or ({"stream"} if streams else set())


def unnamed(fields: Iterable[str]) -> set[str]:
    """The fields to leave out next, where a refusal names none."""
    optional = set(fields) - NEEDED
    return optional - STANDARD or optional


def without(body: Mapping[str, Any], left_out: Iterable[str]) -> dict[str, Any]:
    """The question without some fields. The limit on tokens has two names: where the older one is refused, the newer is
    tried in its place."""
    gone = set(left_out)
    asked = {name: value for name, value in body.items() if name not in gone}
    if "max_tokens" in gone and "max_completion_tokens" not in gone and "max_tokens" in body:
        asked["max_completion_tokens"] = body["max_tokens"]
    if "stream" in gone:
        asked["stream"] = False
        asked.pop("stream_options", None)
    return asked


def _calls(error: str, name: str) -> bool:
    pattern = CALLED.get(name) or name.replace("_", "[ _-]?")
    return re.search(rf"(?<![a-z0-9])(?:{pattern})(?![a-z0-9])", error, re.IGNORECASE) is not None
