"""Reads the calls of tools that a model writes into its answer, each family in a syntax of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from dflash_tui.core.text.overlap import overlap
from engine.commands import CallSyntax, Tool, ToolCall

AnswerPart = str | ToolCall
"""What an answer is made of."""

MOST_ENDS = 8
"""How many marks at a call's end are tried: more don't stand in one call's texts."""
QUOTE = '<|"|>'
"""What Gemma 4 writes around a string."""
_PLAIN = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?|true|false|null|[\s{}\[\],:].*|\".*", re.DOTALL)
"""What is in Gemma's syntax what it is in JSON. Other words are keys, and want quotes."""
_WORDS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|$)|[{}\[\],:]|\s+|[^\s{}\[\],:"]+|"', re.DOTALL)
_GEMMA = re.compile(r"\s*call:\s*([^\s{}]+)\s*(\{.*\})\s*", re.DOTALL)
_FUNCTION = re.compile(r"\s*<function=([^>\s]+)>(.*)</function>\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*<parameter=([^>]+)>\n?(.*?)\n?", re.DOTALL)
_HARMONY = re.compile(
    r"(?:(?<!\s)\s*to=functions\.(?P<before>[\w.-]+)\s*)?<\|channel\|>commentary(?:\s+to=functions\.(?P<behind>[\w.-]+))?"
    r"(?:\s*<\|constrain\|>)?\s*+(?:json\s*+)?<\|message\|>"
)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


_JSON = json.JSONDecoder(strict=False, parse_constant=_no_number)
"""Takes line breaks inside strings, which models write."""


def _called(name: Any, arguments: Any) -> ToolCall:
    """The call. Raises ``ValueError`` for what is none."""
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        raise ValueError("a call has a name and arguments")
    json.dumps([name, arguments], ensure_ascii=False).encode()  # half a surrogate pair is no text
    return ToolCall(name, arguments)


def _gemma(text: str, _: Sequence[Tool]) -> list[AnswerPart]:
    """``call:NAME{key:value}``: keys are bare; strings stand between marks, as they are."""
    if (match := _GEMMA.fullmatch(text)) is None:
        raise ValueError("no call")
    pieces = match[2].split(QUOTE)
    for index, piece in enumerate(pieces):
        words = [piece] if index % 2 else _WORDS.findall(piece)
        pieces[index] = "".join(w if index % 2 == 0 and _PLAIN.fullmatch(w) else json.dumps(w) for w in words)
    return [_called(match[1], _JSON.decode("".join(pieces)))]


def _qwen(text: str, tools: Sequence[Tool]) -> list[AnswerPart]:
    """JSON, as Qwen3 has it, or a tag for each parameter, as Qwen3-Coder and Qwen3.5 do."""
    if (match := _FUNCTION.fullmatch(text)) is None:
        data = _JSON.decode(text.strip())
        return [_called(data["name"], data.get("arguments", {}))]
    *given, rest = match[2].split("</parameter>")
    parameters = [_PARAMETER.fullmatch(each) for each in given]
    if rest.strip() or None in parameters:
        raise ValueError("something else stands between the parameters")
    declared = next((each.parameters.get("properties") for each in tools if each.name == match[1]), None)
    shapes = declared if isinstance(declared, dict) else {}
    return [_called(match[1], {each[1]: _typed(each[2], shapes.get(each[1])) for each in filter(None, parameters)})]


def _typed(value: str, shape: Any) -> Any:
    """A parameter that was written as text, as its tool declares it."""
    kinds = _kinds(shape)
    if not kinds or ("string" in kinds and not ("null" in kinds and value == "null")):
        return value
    try:
        return _JSON.decode({"True": "true", "False": "false", "None": "null"}.get(value.strip(), value.strip()))
    except ValueError:
        return value


def _kinds(shape: Any) -> set[str]:
    """The types that a JSON schema allows; none where it doesn't say."""
    if not isinstance(shape, dict):
        return set()
    declared, choices = shape.get("type", []), [shape.get("anyOf"), shape.get("oneOf")]
    kinds = {each for each in ([declared] if isinstance(declared, str) else declared) if isinstance(each, str)}
    return kinds.union(*(_kinds(each) for listed in choices if isinstance(listed, list) for each in listed))


def _llama(text: str, tools: Sequence[Tool]) -> list[AnswerPart]:
    """Objects and nothing else, with names of tools: other JSON begins as they do."""
    calls: list[AnswerPart] = []
    text = text.strip()
    while text:
        data, end = _JSON.raw_decode(text)
        if data["name"] not in [tool.name for tool in tools]:
            raise ValueError("no tool of the request")
        calls.append(_called(data["name"], data.get("parameters", data.get("arguments"))))
        text = text[end:].lstrip(" \n;")
    return calls


def _harmony(text: str, _: Sequence[Tool]) -> list[AnswerPart]:
    """Messages to functions, and others of their channel, in which the model says what it is about to do."""
    parts: list[AnswerPart] = []
    while (match := _HARMONY.search(text)) is not None:
        parts.append(text[: match.start()])
        text = text[match.end() :].lstrip()
        if name := match["before"] or match["behind"]:
            data, end = _JSON.raw_decode(text or "{}")
            parts.append(_called(name, data))
            text = text[end:]
    return [*parts, text]


@dataclass(frozen=True, slots=True)
class _Syntax:
    marks: Mapping[str, str]
    """What a call begins with, and what ends it; "" is the answer's end."""
    read: Callable[[str, Sequence[Tool]], list[AnswerPart]]
    """Reads what stands between the marks. Raises what it likes for what is no call."""
    keeps: tuple[str, ...] = ()
    """Marks that are read, too."""
    first: tuple[str, ...] = ()
    """Marks that count where the answer begins, and nowhere else."""


_TO, _COMMENTARY = "to=functions.", "<|channel|>commentary"
_SYNTAXES: Mapping[CallSyntax, _Syntax] = {
    "gemma": _Syntax({"<|tool_call>": "<tool_call|>"}, _gemma),
    "qwen": _Syntax({"<tool_call>": "</tool_call>"}, _qwen),
    "llama": _Syntax({"<|python_tag|>": "", "{": ""}, _llama, ("{",), ("{",)),
    "harmony": _Syntax({_COMMENTARY: "", _TO: "", f" {_TO}": ""}, _harmony, (_COMMENTARY, _TO, f" {_TO}")),
}


class CallReader:
    """Parts text from calls in an answer that comes piece by piece. However it is cut, what comes out is the same; what
    is no call stays the text that it was. Blanks around calls are dropped."""

    def __init__(self, syntax: CallSyntax, tools: Sequence[Tool]) -> None:
        self._syntax = _SYNTAXES[syntax]
        self._tools = tools
        self._held = ""
        """What may be a call, or the beginning of a mark."""
        self._mark = ""
        """The mark with which ``held`` begins; "" for none."""
        self._looked = 0
        """How much of ``held`` was searched for the mark that ends it."""
        self._ends = 0
        """How many such marks were found that left no call."""
        self._blanks = ""
        """Blanks that are text where text follows."""
        self._before: AnswerPart = ""
        """What came last; "" where nothing came yet."""

    def push(self, text: str) -> list[AnswerPart]:
        """Takes a piece of the answer; returns what is certain now."""
        self._held += text
        return self._sort(last=False)

    def rest(self) -> list[AnswerPart]:
        """Gives what was held back, at the end of an answer."""
        parts = self._sort(last=True)
        return parts if isinstance(self._before, ToolCall) or not self._blanks else [*parts, self._blanks]

    def _sort(self, last: bool) -> list[AnswerPart]:
        parts: list[AnswerPart] = []
        while self._held:
            if not self._mark:
                start, self._mark = self._next_mark(last)
                parts += self._as_text([self._held[:start]])
                self._held, self._looked, self._ends = self._held[start:], len(self._mark), 0
            if not self._mark or (call := self._call(last)) is None:
                break
            parts += self._as_text(call)
            self._mark = ""
        return parts

    def _next_mark(self, last: bool) -> tuple[int, str]:
        """Where the next mark begins; without one, where that begins which may become one."""
        held, syntax = self._held, self._syntax
        begins = not self._before and held.lstrip().startswith(syntax.first or " ")
        marks = [mark for mark in syntax.marks if begins or mark not in syntax.first]
        places = [(start, mark) for mark in marks if (start := held.find(mark)) >= 0]
        return min(places) if places else (len(held) - (0 if last else max(overlap(held, m) for m in marks)), "")

    def _call(self, last: bool) -> list[AnswerPart] | None:
        """Takes the parts that the mark begins out of what is held. None while that isn't whole. A mark at its end that
        leaves no call may have stood in a text of the call, and the next one is tried."""
        closing = self._syntax.marks[self._mark]
        begin = 0 if self._mark in self._syntax.keeps else len(self._mark)
        while closing and self._ends < MOST_ENDS and (end := self._held.find(closing, self._looked)) >= 0:
            self._looked = end + len(closing)
            if (call := self._read(self._held[begin:end])) is not None:
                self._held = self._held[self._looked :]
                return call
            self._ends += 1
        if not last and self._ends < MOST_ENDS:
            self._looked = max(self._looked, len(self._held) - len(closing) + 1) if closing else self._looked
            return None
        if self._ends < MOST_ENDS and (call := self._read(self._held[begin:])) is not None:
            self._held = ""
            return call
        self._held = self._held[len(self._mark) :]
        return [self._mark]

    def _read(self, text: str) -> list[AnswerPart] | None:
        try:
            return self._syntax.read(text, self._tools)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None

    def _as_text(self, parts_read: Sequence[AnswerPart]) -> list[AnswerPart]:
        parts: list[AnswerPart] = []
        for piece in parts_read:
            if isinstance(piece, str):
                piece = self._blanks + piece
                shown = piece.rstrip()
                self._blanks, piece = piece[len(shown) :], shown
            else:
                self._blanks = ""
            if piece:
                self._before = piece
                parts.append(piece)
        return parts
