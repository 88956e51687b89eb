"""Reads one event of a stream: text, thought, tool calls, end, and an error's words. An answer's stands in ``choices``,
in whatever fields and parts; what each name means stands in tables, and what holds words and is in none of them is told
as not understood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Any

from engine.events import Channel, FinishReason

from .error_texts import SAYING, error_in, words_in
from .names import (
    BROKEN,
    CUT,
    ENDS,
    FLAGS,
    FULL,
    KINDS,
    SILENT_KINDS,
    TEXT_KINDS,
    THINKING,
    THOUGHT_KINDS,
    TOOLS,
    WRITTEN,
    named,
)
from .thoughts import PAIRS, Thoughts
from .transport.keys import StreamRedactor
from .untrusted import count, counts, mapping, real, sequence, words

ChannelText = tuple[Channel, str]
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
    pieces: tuple[ChannelText, ...]
    spoke: bool
    """Whether it stands for at least one token, even where its text is markup or is held back."""
    ids: tuple[int, ...] = ()
    logprobs: tuple[Logprob, ...] = ()
    finish: str = ""
    """The finish reason; empty before the end of the answer."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The event as it was sent, without an envelope."""
    error: Any = None
    """The part of it that is an error; None where there is none."""

    def figures(self, name: str) -> Mapping[str, Any]:
        """The object of this name that comes with the event, such as ``usage`` or ``timings``."""
        return mapping(self.data.get(name))


_PLAIN = frozenset({"role", "content"})
DEEPEST = 8
"""How deep parts may be nested inside parts; what lies deeper is ignored."""
MOST_HAPPENINGS = 8


class EventReader:
    """Reads the events of one answer, in their order: a mark or a surrogate pair that one begins may end in another,
    and a text that comes whole behind its pieces is not said twice."""

    def __init__(self, keys: tuple[str, ...] = (), inside_thought: bool = False, hold: bool = False) -> None:
        """``hold``: the answer's beginning may wait for a mark that makes a thought of it."""
        self._keys = keys
        self.thoughts = Thoughts(inside_thought, hold)
        self._channel: Channel = "answer"
        self._half = ""
        """Half of a surrogate pair, whose other half comes with the next piece."""
        self._redactor = StreamRedactor(keys)
        self._texts: dict[Channel, list[str]] = {"answer": [], "thought": []}
        """What was read so far, as it came."""
        self.tools: dict[str, None] = {}
        """Names of tools that the model called, in their order."""
        self.unshown: dict[str, None] = {}
        """Kinds of content that can't be shown here."""
        self._by_delta = False
        """Whether pieces came as ``delta``: a ``message`` then is all of the answer."""
        self._repeated = 0
        """Texts that were said before, piece by piece."""
        self.unread: list[str] = []
        """What was not understood, in words."""

    def read(self, event: Mapping[str, Any], time: float) -> Chunk:
        """Reads one event of the answer. Only its first choice counts, since no more is ever asked for."""
        data = _unwrapped(event)
        choices = (data,) if "stop" in data else ()  # as llama.cpp's own interface has it
        every = [mapping(each) for each in sequence(data.get("choices")) or choices]
        ours = [each for each in every if each.get("index") in (None, 0, "0")]
        error = error_in(data, ours)
        pieces, finish = [], ""
        happened = self._happened
        for each in ours:
            whole = mapping(each.get("message")) and not each.get("delta")  # an answer that is no stream
            finish = finish or _finish(each) or ("stop" if whole else "")
            pieces += self._told_by(each, bool(finish))
        if finish in BROKEN and error is None:
            other_reasons = (words(each.get(name)) for each in ours for name in ("message", "native_finish_reason"))
            error = next(filter(None, other_reasons), None)
            pieces = [] if error is not None and error == "".join(text for _, text in pieces) else pieces
        spoke = any(text for _, text in pieces)
        understood = spoke or finish or error is not None or self._happened > happened or len(every) > len(ours)
        if not understood:
            error = self._not_understood(data, ours)
        choice = ours[0] if ours else mapping(None)
        return Chunk(
            time,
            tuple(piece for piece in self._settled(pieces) if piece[1]),
            spoke,
            counts(choice.get("token_ids")) or (),
            tuple(_logprobs(mapping(choice.get("logprobs")))),
            finish,
            data,
            error,
        )

    def released(self, time: float) -> Chunk:
        """The answer's beginning, which need not wait any longer for a mark."""
        return Chunk(time, tuple(self.thoughts.release()), False)

    def rest(self, time: float, whole: bool) -> Chunk:
        """The text that was held back, when no more will come. ``whole``: the answer came to its end."""
        pieces = (*self._rest_of_channel(), *self.thoughts.rest(whole))
        return Chunk(time, tuple(piece for piece in pieces if piece[1]), False)

    @property
    def _happened(self) -> int:
        """How much came that is no text, and was understood."""
        return len(self.tools) + len(self.unshown) + self._repeated

    def _not_understood(self, data: Mapping[str, Any], ours: Sequence[Mapping[str, Any]]) -> Any:
        """Notes words that were understood as nothing. Returns the event where those can only be an error's: an object
        without choices and usage that says nothing else of itself."""
        other_fields = {name: value for name, value in data.items() if name != "choices"}
        text = "; ".join(words_in([*ours, other_fields], DEEPEST))
        if not text:
            return None
        says = any(name in SAYING for name in named(other_fields))
        typed = isinstance(data.get("type"), str) and not isinstance(data.get("message"), str)
        if (says or data.get("choices") is None) and not data.get("usage") and "dflash" not in data and not typed:
            return data
        self.unread.append(text)
        return None

    def _told_by(self, choice: Mapping[str, Any], last: bool) -> list[ChannelText]:
        """The pieces of text in a choice, before thoughts are told apart."""
        delta = choice.get("delta")
        if not last and isinstance(delta, dict) and delta.keys() <= _PLAIN and "message" not in choice:
            content = delta.get("content")  # nearly every event
            if content and isinstance(content, str) and delta.get("role", "assistant") in ("assistant", None):
                self._texts["answer"].append(content)
                self._by_delta = True
                return [("answer", content)]
        fields = named(choice)
        pieces, repeated = list[ChannelText](), self._repeated
        places = [name for name in ("delta", "message") if name in fields]
        for name in places:
            if isinstance(message := fields[name], dict):
                whole = last or len(places) > 1 or (self._by_delta and name == "message")
                pieces += self._new(self._message(message), whole)
                self._by_delta |= name == "delta"
            elif not pieces:
                pieces += self._new([*self._parts(message, "answer", DEEPEST)], last)
        if not any(text for _, text in pieces) and self._repeated == repeated:
            pieces = self._new(self._message(choice), last)
        return pieces

    def _message(self, message: Mapping[str, Any]) -> list[ChannelText]:
        fields = named(message)
        tools = [fields[name] for name in TOOLS if name in fields]
        for each in tools:
            self._call(each)
        channel = _channel_of(fields)
        thought = next((pieces for name in THINKING if (pieces := self._field(fields, name, "thought"))), [])
        written = next((pieces for name in WRITTEN if (pieces := self._field(fields, name, channel))), [])
        if not written and isinstance(inner := fields.get("message"), dict):
            return [*thought, *self._message(inner)]
        if not written and "audio" in fields:
            written = [*self._parts(mapping(fields["audio"]).get("transcript"), "answer", DEEPEST)]
            self._note("audio")
        if "images" in fields:
            self._note("an image")
        markup: list[ChannelText] = [("control", " ")] if tools else []
        return [*thought, *written, *markup]

    def _new(self, pieces: Iterable[ChannelText], last: bool) -> list[ChannelText]:
        """What of these pieces was not said yet. ``last``: they may be all of the text, behind its pieces."""
        new: list[ChannelText] = []
        for channel, text in _in_runs(pieces) if last else pieces:
            before = self._texts.get(channel, [])
            begun, bare = "".join(before).strip() if last else "", text.strip()
            marked = len(begun) > 8 and any(mark in bare.lower() for mark in PAIRS.values()) and bare.endswith(begun)
            if (
                begun
                and bare
                and (marked or (len(bare) > 8 and begun.endswith(bare)) or (before[1:] and begun == bare))
            ):
                self._repeated += 1
                continue
            begun = "".join(before)
            text = text[len(begun) :] if last and len(begun) > 8 and text.startswith(begun) else text
            before.append(text)
            new.append((channel, text))
        return new

    def _field(self, message: Mapping[str, Any], name: str, channel: Channel) -> list[ChannelText]:
        return [piece for piece in self._parts(message.get(name), channel, DEEPEST) if piece[1]]

    def _parts(self, value: Any, channel: Channel, deep: int) -> Iterator[ChannelText]:
        """The pieces of ``value``, which is a text, a part that holds one, or a list of parts."""
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            yield channel, str(value)
        elif isinstance(value, list) and deep:
            for each in value:
                yield from self._parts(each, channel, deep - 1)
        elif isinstance(value, dict) and deep:
            yield from self._pieces_of_part(value, channel, deep - 1)

    def _pieces_of_part(self, content_part: Mapping[str, Any], channel: Channel, deep: int) -> Iterator[ChannelText]:
        fields = named(content_part)
        kind = words(fields.get("type")).lower()
        if "tool" in kind or "function" in kind or fields.keys() & set(TOOLS):
            self._call(next((fields[name] for name in TOOLS if name in fields), content_part))
            yield "control", " "
            return
        if kind in SILENT_KINDS or kind.startswith("reasoning.encrypted"):
            return
        own = _channel_of(fields)
        plain = kind in TEXT_KINDS or channel == "thought" or own == "thought"
        channel = own if own == "thought" else channel
        thought = next((fields[name] for name in THINKING if not isinstance(fields.get(name, True), bool)), None)
        written = next((fields[name] for name in WRITTEN if name in fields), None)
        if written is None and thought is not None:
            channel, written = "thought", thought
        if written is not None:
            yield from self._parts(written, channel, deep)
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

    def _settled(self, pieces: Iterable[ChannelText]) -> Iterator[ChannelText]:
        """Makes texts fit to be stored and shown: characters are whole, keys are redacted, thoughts are told
        apart."""
        for channel, text in pieces:
            if channel == "control":
                continue
            if channel != self._channel:
                yield from self._rest_of_channel()
                self._channel = channel
                if channel == "thought":
                    yield from self.thoughts.outside()
            text = self._half + text
            self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
            yield from self._sorted(self._redactor.feed(_joined(text[: len(text) - len(self._half)])))

    def _sorted(self, text: str) -> Iterator[ChannelText]:
        if self._channel == "thought":
            yield "thought", text
        else:
            yield from self.thoughts.feed(text)

    def _rest_of_channel(self) -> Iterator[ChannelText]:
        text, self._half = _joined(self._half), ""
        yield from self._sorted(self._redactor.feed(text) + self._redactor.rest())
        self._redactor = StreamRedactor(self._keys)


def several(event: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The events in an event: itself, or those of a list that it is an envelope of."""
    for inner in event.values() if "choices" not in event else ():
        if isinstance(inner, list) and inner and all("choices" in mapping(each) for each in inner):
            return inner
    return (event,)


def _unwrapped(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The event itself, where it lies in another object."""
    if "choices" in data or "dflash" in data:
        return data
    inner = next((value for value in data.values() if isinstance(value, dict) and "choices" in value), data)
    return {**inner, "usage": data["usage"]} if "usage" in data else inner


def _channel_of(fields: Mapping[str, Any]) -> Channel:
    """Which channel a message's text is of, as far as it says so; the answer's otherwise."""
    google = named(mapping(mapping(fields.get("extra_content")).get("google")))
    flagged = any(each.get(name) in (True, "true") for each in (fields, google) for name in FLAGS)
    kinds = [words(fields.get(name)).lower() for name in KINDS]
    is_thought = any(kind in THOUGHT_KINDS or kind.startswith(("thinking", "reasoning")) for kind in kinds)
    return "thought" if flagged or is_thought else "answer"


def _in_runs(pieces: Iterable[ChannelText]) -> list[ChannelText]:
    joined: list[ChannelText] = []
    for channel, text in pieces:
        if joined and joined[-1][0] == channel:
            joined[-1] = (channel, joined[-1][1] + text)
        else:
            joined.append((channel, text))
    return joined


def _joined(text: str) -> str:
    """Joins the halves of surrogate pairs; a half that stands alone is replaced."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _finish(choice: Mapping[str, Any]) -> str:
    """Why the answer ends with a choice; empty where it goes on."""
    places = (named(choice), *(named(choice.get(name)) for name in ("delta", "message")))
    return next((why for each in places for name in ENDS if (why := _reason(each.get(name)))), "")


def _reason(value: Any) -> str:
    """Why an answer ends, by its ``finish_reason``; empty for what is no reason."""
    text = words(mapping(value).get("type")) or words(value)
    return "" if text.lower() in ("null", "none", "unspecified", "finish_reason_unspecified") else text.lower()


def _logprobs(logprobs: Mapping[str, Any]) -> Iterator[Logprob]:
    for each in sequence(logprobs.get("content")):
        entry = mapping(each)
        given = entry.get("logprob")
        below = real(-given) if isinstance(given, int | float) and not isinstance(given, bool) else None
        yield Logprob(words(entry.get("token")), None if below is None else round(exp(-below), 3))


def finish_reason(reason: str, full: bool) -> FinishReason:
    """The finish reason behind what a server says. ``full``: prompt and answer take all of its context."""
    if reason in FULL or (reason in CUT and full):
        return "context"
    return "length" if reason in CUT else "error" if reason in BROKEN else "stop"


@dataclass(frozen=True, slots=True)
class PromptUsage:
    """How many tokens a question had, and how many of them were cached, as far as the stream has told."""

    tokens: int = 0
    reused: int = 0


def usage_prompt(chunk: Chunk) -> PromptUsage | None:
    """The prompt's length as ``usage`` gives it; None where it doesn't."""
    tokens = count(chunk.figures("usage").get("prompt_tokens"))
    if tokens is None:
        return None
    details = mapping(chunk.figures("usage").get("prompt_tokens_details"))
    return PromptUsage(tokens, min(count(details.get("cached_tokens")) or 0, tokens))
