"""Reads one event of a stream, whatever its dialect: its text, and what comes beside. Every shape of content that the
interface allows, or that servers send in its place, becomes text, a thought, or a named event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

from engine.events import Channel, FinishReason

from .thoughts import Thoughts
from .transport.keys import StreamRedactor
from .untrusted import count, counts, mapping, real, sequence, words

Piece = tuple[Channel, str]
"""A run of text of one channel."""


@dataclass(frozen=True, slots=True)
class Logprob:
    """A token's own text, as the server gives it where it is asked for probabilities."""

    text: str
    probability: float | None


@dataclass(frozen=True, slots=True)
class Chunk:
    """An event of a chat completion's stream."""

    time: float
    """Seconds since the question was sent."""
    pieces: tuple[Piece, ...]
    spoke: bool
    """Whether it stands for at least one token, even where its text is markup or is held back."""
    ids: tuple[int, ...]
    logprobs: tuple[Logprob, ...]
    finish: str
    """The finish reason; empty before the end of the answer."""
    data: Mapping[str, Any]
    """The whole event as it was sent."""

    @property
    def usage(self) -> Mapping[str, Any]:
        return mapping(self.data.get("usage"))

    @property
    def timings(self) -> Mapping[str, Any]:
        return mapping(self.data.get("timings"))

    @property
    def metrics(self) -> Mapping[str, Any]:
        return mapping(self.data.get("metrics"))


THINKING = ("reasoning_content", "reasoning", "thinking", "reasoning_text", "reasoning_details")
"""Fields in which a message holds its thought; the same thought may stand in two of them."""
WRITTEN = ("content", "refusal", "text", "output_text", "transcript")
"""Fields in which a message holds what is said."""
THOUGHT_PARTS = frozenset({"thinking", "reasoning", "thought", "redacted_thinking", "summary_text", "reasoning_text"})
TEXT_PARTS = frozenset({"", "text", "output_text", "refusal", "message", "input_text", "markdown"})
SILENT_PARTS = frozenset({"reference", "citation", "annotations", "signature", "step-start", "tool_reference"})
"""Kinds of parts that add nothing to what is said."""
_PLAIN = frozenset({"role", "content"})
TOOLS = ("tool_calls", "function_call", "tool_call")
DEEPEST = 8
"""How deep parts may be nested inside parts; what lies deeper is ignored."""
MOST_HAPPENINGS = 8


class ChunkReader:
    """Reads the events of one answer, in their order: a tag or a surrogate pair that one begins may end in another."""

    def __init__(self, keys: tuple[str, ...] = (), inside_thought: bool = False) -> None:
        self._keys = keys
        self._thoughts = Thoughts(inside_thought)
        self._channel: Channel = "answer"
        self._half = ""
        """Half of a surrogate pair, whose other half comes with the next piece."""
        self._redactor = StreamRedactor(keys)
        self.tools: dict[str, None] = {}
        """Names of tools that the model called, in their order."""
        self.unshown: dict[str, None] = {}
        """Kinds of content that can't be shown here."""

    def read(self, data: Mapping[str, Any], time: float) -> Chunk:
        """Reads one event of the answer. Only its first choice counts, since no more is ever asked for; llama.cpp's own
        completions have no choices, their fields stand at the top."""
        choices = [mapping(each) for each in sequence(data.get("choices"))]
        ours = [each for each in choices if each.get("index") in (None, 0, "0")]
        choice = ours[0] if ours else mapping(None)
        told = [piece for each in ours for piece in self._told_by(each)]
        ended = next((why for each in ours if (why := _reason(each.get("finish_reason")))), "")
        if "choices" not in data:
            told += self._told_by(data)
            if data.get("stop") is True or data.get("done") is True:
                ended = _reason(data.get("stop_type")) or _reason(data.get("done_reason")) or "stop"
        elif not ended and any(mapping(each.get("message")) and not mapping(each.get("delta")) for each in ours):
            ended = "stop"  # an answer that is no stream is whole
        return Chunk(
            time,
            tuple(piece for piece in self._settled(told) if piece[1]),
            any(text for _, text in told),
            counts(choice.get("token_ids")) or (),
            tuple(_logprobs(mapping(choice.get("logprobs")))),
            ended,
            data,
        )

    def rest(self, time: float, whole: bool) -> Chunk:
        """The text that was held back, when no more will come. ``whole``: the answer came to its end."""
        pieces = tuple(piece for piece in (*self._rest_of_channel(), *self._thoughts.rest(whole)) if piece[1])
        return Chunk(time, pieces, False, (), (), "", mapping(None))

    def _told_by(self, choice: Mapping[str, Any]) -> list[Piece]:
        """The pieces of text in a choice, before thoughts are told apart."""
        message = next((found for name in ("delta", "message") if (found := choice.get(name))), choice)
        if not isinstance(message, dict):
            return [*self._parts(message, "answer", DEEPEST)]
        content = message.get("content")
        if content and isinstance(content, str) and message.keys() <= _PLAIN:  # nearly every event
            return [("answer", content)]
        tools = [each for name in TOOLS if (each := message.get(name))]
        for each in tools:
            self._call(each)
        thought = next((told for name in THINKING if (told := self._field(message, name, "thought"))), [])
        said = next((told for name in WRITTEN if (told := self._field(message, name, "answer"))), [])
        if not said and (audio := message.get("audio")):
            said = [*self._parts(mapping(audio).get("transcript"), "answer", DEEPEST)]
            self._note("audio")
        if not said and message is not choice:
            said = self._field(choice, "text", "answer")
        if message.get("images"):
            self._note("an image")
        markup: list[Piece] = [("control", " ")] if tools else []
        return [*thought, *said, *markup]

    def _field(self, message: Mapping[str, Any], name: str, channel: Channel) -> list[Piece]:
        return [piece for piece in self._parts(message.get(name), channel, DEEPEST) if piece[1]]

    def _parts(self, value: Any, channel: Channel, deep: int) -> Iterator[Piece]:
        """The pieces of ``value``, which is a text, a part that holds one, or a list of parts."""
        if isinstance(value, str):
            yield channel, value
        elif isinstance(value, list) and deep:
            for each in value:
                yield from self._parts(each, channel, deep - 1)
        elif isinstance(value, dict) and deep:
            yield from self._part(value, channel, deep - 1)

    def _part(self, part: Mapping[str, Any], channel: Channel, deep: int) -> Iterator[Piece]:
        kind = words(part.get("type")).lower()
        if "tool" in kind or "function" in kind:
            self._call(part)
            yield "control", " "
            return
        plain = kind in TEXT_PARTS or channel == "thought"
        if kind in THOUGHT_PARTS or kind.startswith(("thinking", "reasoning")):
            channel, plain = "thought", True
        if kind in SILENT_PARTS or kind.startswith("reasoning.encrypted"):
            return
        places = ("text", "thinking", "reasoning", "refusal", "content", "value", "summary", "output_text", "parts")
        told = next((found for name in places if (found := part.get(name))), None)
        if told is not None:
            yield from self._parts(told, channel, deep)
        elif not plain:
            self._note(kind.replace("_", " "))

    def _call(self, value: Any) -> None:
        for each in value if isinstance(value, list) else [value]:
            call = mapping(each)
            name = words(mapping(call.get("function")).get("name")) or words(call.get("name"))
            if name and len(self.tools) < MOST_HAPPENINGS:
                self.tools.pop("", None)
                self.tools[name] = None
            elif not self.tools:
                self.tools[""] = None

    def _note(self, kind: str) -> None:
        if len(self.unshown) < MOST_HAPPENINGS:
            self.unshown["an image" if "image" in kind else kind] = None

    def _settled(self, told: Iterable[Piece]) -> Iterator[Piece]:
        """Makes texts fit to be stored and shown: characters are whole, keys are redacted, thoughts are told
        apart."""
        for channel, text in told:
            if channel == "control":
                continue
            if channel != self._channel:
                yield from self._rest_of_channel()
                self._channel = channel
                if channel == "thought":
                    self._thoughts.outside()
            text = self._half + text
            self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
            yield from self._sorted(self._redactor.feed(_joined(text[: len(text) - len(self._half)])))

    def _sorted(self, text: str) -> Iterator[Piece]:
        if self._channel == "thought":
            yield "thought", text
        else:
            yield from self._thoughts.feed(text)

    def _rest_of_channel(self) -> Iterator[Piece]:
        text, self._half = _joined(self._half), ""
        yield from self._sorted(self._redactor.feed(text) + self._redactor.rest())
        self._redactor = StreamRedactor(self._keys)


def _joined(text: str) -> str:
    """Joins the halves of surrogate pairs; a half that stands alone is replaced."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _reason(value: Any) -> str:
    """Why an answer ends, by its ``finish_reason``; empty for what is no reason."""
    said = words(mapping(value).get("type")) or words(value)
    return "" if said.lower() in ("null", "none", "unspecified", "finish_reason_unspecified") else said.lower()


def _logprobs(logprobs: Mapping[str, Any]) -> Iterator[Logprob]:
    for each in sequence(logprobs.get("content")):
        entry = mapping(each)
        given = entry.get("logprob")
        below = real(-given) if isinstance(given, int | float) and not isinstance(given, bool) else None
        yield Logprob(words(entry.get("token")), None if below is None else round(exp(-below), 3))


CUT = frozenset({"length", "max_tokens", "model_length", "limit", "max_output_tokens", "max_new_tokens"})
FILTERED = frozenset({
    "content_filter", "safety", "recitation", "blocklist", "prohibited_content", "sensitive", "refusal", "spii",
})  # fmt: skip
BROKEN = frozenset({
    "error", "abort", "aborted", "failed", "cancelled", "canceled", "insufficient_system_resource", "timeout",
    "network_error", "malformed_function_call", "engine_error", "unknown_error",
})  # fmt: skip


def finish_reason(said: str, num_tokens: int | None, most: int) -> FinishReason:
    """The finish reason behind what a server says, which is ``length`` also where its context was full before ``most``
    tokens."""
    if said not in CUT:
        return "error" if said in BROKEN else "stop"
    return "context" if num_tokens is not None and num_tokens < most else "length"


@dataclass(frozen=True, slots=True)
class PromptUsage:
    """How many tokens a question had, and how many of them were cached, as far as the stream has told."""

    tokens: int = 0
    reused: int = 0


def usage_prompt(chunk: Chunk) -> PromptUsage | None:
    """The prompt's length as ``usage`` gives it; None where it doesn't."""
    tokens = count(chunk.usage.get("prompt_tokens"))
    if tokens is None:
        return None
    details = mapping(chunk.usage.get("prompt_tokens_details"))
    return PromptUsage(tokens, min(count(details.get("cached_tokens")) or 0, tokens))
