"""Turns words into tokens and back: chat templates, the thinking channel, and text that streams token by token."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..commands import Ask, CallSyntax, Message, Tool, ToolCall
from ..decoding.decoder import Prompt
from ..errors import Option, UsageFailure, WeightsFailure
from ..events import Channel
from ..files.json_fields import read_json
from ..files.pointers import refuse_pointer
from ..gc_pause import gc_paused
from ..models.family import Headers
from ..models.registry import family_of, text_config
from ..speculation.lookup import num_agreed
from .control_marks import ControlMarks, encode_broken
from .tokenizer_files import FileTokenizer, read_tokenizer

log = logging.getLogger(__name__)

_UNFINISHED = "\N{REPLACEMENT CHARACTER}"
"""What a tokenizer shows for bytes that make no character, or not yet."""

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "tekken.json")
"""Vocabulary files, of which a checkpoint has one."""
BESIDE = ("tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja")
"""Further files of a tokenizer, which a checkpoint may have."""
TAIL = 4
"""How many tokens at a prompt's end are searched for the one with which a template opens or closes a thought: a line
break may follow it."""
PROBES = ("one", "two")
"""Two questions: a template that writes the same for both leaves the question out."""
PROBED = Tool("probe", "Probes.", {"type": "object", "properties": {"word": {"type": "string", "description": "Any."}}})
CALL_SIGNS: Mapping[CallSyntax, tuple[str, ...]] = {
    "gemma": ("<|tool_call>call:probe{",),
    "harmony": ("to=functions.probe",),
    "qwen": ("<tool_call>\n{", "<tool_call>\n<function=probe>"),
    "llama": ('{"name": "probe", "parameters": ',),
}
"""What a template writes where an assistant has called ``PROBED``, by the syntax that it was made for."""


def by_transformers(folder: Path) -> Any:
    """Loads, by ``transformers``, a tokenizer that its files alone don't describe. It has the methods of a
    ``FileTokenizer``."""
    if not any((folder / name).exists() for name in TOKENIZER_FILES):
        raise WeightsFailure(f"{folder} holds no tokenizer.json.", "Download the checkpoint again.")
    log.debug("the tokenizer in %s is left to transformers", folder)
    # The import takes longer than torch's; threads that load weights meanwhile needn't wait for it.
    with gc_paused():
        from transformers import AutoTokenizer, PreTrainedConfig

    # Its warnings (a prompt longer than the model's context) would land on the screen; the engine has its own.
    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        # The tokenizer's file names its class. Looking into the model's config, too, would import the model's code.
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, config=PreTrainedConfig())
    except Exception as error:  # the tokenizers library raises a bare Exception for a damaged file
        message = str(error).partition("\n")[0]
        raise WeightsFailure(
            f"The tokenizer in {folder} can't be loaded ({message}).", "Download the checkpoint again."
        ) from None


def is_mark(token: str, template: str) -> bool:
    """Whether a token that its tokenizer doesn't call special is one all the same, as Qwen's around calls of tools and
    their results, and between files: the template writes it, or it looks like one."""
    return (token in template and bool(token.strip())) or (token.startswith("<|") and token.endswith("|>"))


class ChatTokenizer:
    """A checkpoint's own tokenizer and chat template; its family's template where it has none."""

    def __init__(self, folder: Path):
        for name in (*TOKENIZER_FILES, *BESIDE):
            refuse_pointer(folder / name)
        own = read_tokenizer(folder)
        self._tokenizer: FileTokenizer = by_transformers(folder) if own is None else own
        config = read_json(folder / "config.json")
        chat = family_of(config).chat
        if self._tokenizer.chat_template is None:
            self._tokenizer.chat_template = chat.template.read_text(encoding="utf-8")
        self._pieces: dict[int, str] = {}
        added = self._tokenizer.added_tokens_decoder
        by_text = {str(token): index for index, token in added.items()}
        self.thought_ids = (by_text.get(chat.thought_open, -1), by_text.get(chat.thought_close, -1))
        """Ids that open and close a thought; -1 where a vocabulary has none."""
        self.lines_behind_thought = chat.lines_behind_thought
        self.headers = chat.headers
        self.header_end_id = -1 if chat.headers is None else by_text.get(chat.headers.end, -1)
        """Id that ends the header of a message; -1 in formats without, and where a vocabulary has none."""
        self._efforts = chat.efforts
        self.shown_ids = frozenset(by_text[token] for token in chat.shown if token in by_text)
        """Ids of special tokens that are text for people."""
        special = {index for index, token in added.items() if token.special} - self.shown_ids
        self.special_ids = frozenset(self.thought_ids).union(special)
        self._num_rows = self._rows(folder, text_config(config).get("vocab_size"))
        template = str(self._tokenizer.chat_template)
        marks = {
            str(token)
            for index, token in added.items()
            if token.special or index >= self._num_rows or is_mark(str(token), template)
        }
        thought, known = (chat.thought_open, chat.thought_close), by_text.keys()
        marks |= {*thought, "" if chat.headers is None else chat.headers.end} & known
        # With headers the marks around a thought are those around every message.
        self._marks = ControlMarks(marks, thought if chat.headers is None and known >= {*thought} else None)
        self.end_id: int | None = self._tokenizer.eos_token_id
        """The id that ends texts by the tokenizer's files; None where they don't say."""
        self._check_template(folder)
        self.calls: CallSyntax | None = self._call_syntax()
        """How the model writes calls of tools; None where its template knows no tools."""

    def _call_syntax(self) -> CallSyntax | None:
        asked = [Message("user", PROBES[0])]
        called = [*asked, Message("assistant", "", (ToolCall(PROBED.name, {"word": "x"}, "1"),))]
        try:
            declared = self.written(asked, False, True, (PROBED,))
            written = self.written(called, False, False, (PROBED,)).rpartition(PROBES[0])[2]
        except Exception:  # a template is a program: one that knows no tools may stumble on them
            return None
        known = (name for name, signs in CALL_SIGNS.items() if any(sign in written for sign in signs))
        return next(known, None) if PROBED.name in declared else None

    def _check_template(self, folder: Path) -> None:
        """Raises ``WeightsFailure`` for a chat template that fails, or leaves the question out."""
        try:
            first, second = (self.written([Message("user", words)], False, answering=True) for words in PROBES)
            both = self.written([Message("user", first), Message("assistant", second)], False, answering=False)
            (first + both).encode()  # half a surrogate pair is no text
            why = "it leaves out what was asked" if first == second else ""
            if unknown := self._without_row(self._encode(both)):
                why = f"it writes {unknown}"
        except Exception as error:  # a template is a program: it may raise anything
            why = f"{type(error).__name__}: {error}"
        if why:
            raise WeightsFailure(f"The chat template in {folder} is broken ({why}).", "Download the checkpoint again.")

    def prompt(self, messages: Sequence[Message], thinking: bool, tools: Sequence[Tool] = ()) -> Prompt:
        """The ids of a conversation that ends with the user's words, or with what tools gave back. It is rendered again
        with an answer behind it, to see how many of these ids the next turn's prompt will repeat
        (``stable_length``)."""
        if tools and self.calls is None:
            raise UsageFailure("The model's chat template knows no tools.", "Leave them out, or load another model.")
        ids = self.render(messages, thinking, True, tools)
        with_answer = self.render([*messages, Message("assistant", "x")], thinking, False, tools)
        return Prompt(tuple(ids), num_agreed(ids, with_answer))

    def around(self, words: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids that the template writes before and behind a question, up to where the answer begins."""
        before, _, behind = self.written([Message("user", words)], False, answering=True).rpartition(words)
        first, second = (self._tokenizer.encode(text, add_special_tokens=False) for text in (before, behind))
        return tuple(first), tuple(second)

    def special(self) -> list[int]:
        """The ids of tokens that stand for no text, the mask token first if there is one."""
        mask = self._tokenizer.mask_token_id
        rest = sorted(self.special_ids - {-1, mask}, reverse=True)
        return rest if mask is None else [mask, *rest]

    @property
    def size(self) -> int:
        """How many tokens the tokenizer knows; the model's ids beyond them stand for nothing."""
        return len(self._tokenizer)

    def count(self, ask: Ask) -> int:
        """How many tokens the prompt of a question has. Any thread may ask."""
        return len(self.asked(ask).ids)

    def asked(self, ask: Ask) -> Prompt:
        """The prompt of a question."""
        return (
            self.raw_prompt(ask.prompt) if ask.prompt else self.prompt(ask.messages, ask.settings.thinking, ask.tools)
        )

    def require_room(self, context: int, longest: int) -> None:
        """Raises ``UsageFailure`` where a context has no room for the shortest question and a token of its answer.
        ``longest``: the longest context that the model can have."""
        least = len(self.prompt([Message("user", "Hi")], thinking=False).ids) + 2
        if context < least:
            tokens = f"{context} token{'' if context == 1 else 's'}"
            raise UsageFailure(
                f"A context of {tokens} has no room for a question: the shortest takes {least}.",
                ("Make room for more: ", Option("max_context", min(2048, longest)), ".")
                if context < longest
                else "The model takes no more: name another.",
            )

    def raw_prompt(self, prompt: str | Sequence[int]) -> Prompt:
        """A prompt of text or ids as they stand, without a template. Text begins as the tokenizer begins every text."""
        ids = tuple(self._tokenizer.encode(prompt) if isinstance(prompt, str) else prompt)
        if unknown := self._without_row(ids):
            raise UsageFailure(f"The prompt holds {unknown}.", "Leave it out.")
        return Prompt(ids, len(ids))

    def render(
        self, messages: Sequence[Message], thinking: bool, answering: bool, tools: Sequence[Tool] = ()
    ) -> list[int]:
        if self.calls is None:
            messages = [_without_tools(message) for message in messages]
        broken, broken_tools, breaker = self._marks.broken(messages, tools)
        try:
            rendered = self.written(broken, thinking, answering, broken_tools)
        except Exception as error:  # templates refuse what their models were not trained on, such as a system prompt
            hint = "Leave the system prompt out, or start a new chat."
            raise UsageFailure(f"The model's chat template refuses this conversation ({error}).", hint) from None
        return encode_broken(rendered, breaker, self._encode)

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)  # the template writes <bos> itself

    def _rows(self, folder: Path, num_rows: Any) -> int:
        """How many tokens the model knows. Raises ``WeightsFailure`` where the tokenizer's vocabulary has more, apart
        from tokens that were added to it: those are never made."""
        size = len(self._tokenizer)
        if not isinstance(num_rows, int):
            return size
        behind = sum(index >= num_rows for index in self._tokenizer.added_tokens_decoder)
        if size - behind > num_rows:
            raise WeightsFailure(
                f"The tokenizer in {folder} has {size - behind} tokens, and the model knows {num_rows} (vocab_size).",
                "Tokenizer and weights must belong together: take both from one checkpoint.",
            )
        return num_rows

    def _without_row(self, ids: Sequence[int]) -> str:
        """Names the first token that the model doesn't know; empty where it knows all."""
        token = next((token for token in ids if not 0 <= token < self._num_rows), None)
        if token is None:
            return ""
        added = self._tokenizer.added_tokens_decoder.get(token)
        return f"{str(added) if added is not None else f'token {token}'}, which the model doesn't know"

    def written(self, messages: Sequence[Message], thinking: bool, answering: bool, tools: Sequence[Tool] = ()) -> str:
        variables: dict[str, Any] = {"enable_thinking": thinking}
        if tools:
            variables["tools"] = [{"type": "function", "function": asdict(tool)} for tool in tools]
        if (efforts := self._efforts) is not None:
            variables["reasoning_effort"] = efforts.thinking if thinking else efforts.without
        return self._tokenizer.apply_chat_template(
            [_as_template_message(message) for message in messages],
            tokenize=False,
            add_generation_prompt=answering,
            **variables,
        )

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, special tokens left out."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True)

    def piece(self, token: int) -> str:
        """The text of one token by itself; a part of a character is a replacement character."""
        if token not in self._pieces:
            self._pieces[token] = self._tokenizer.decode([token], skip_special_tokens=False)
        return self._pieces[token]


def _as_template_message(message: Message) -> dict[str, Any]:
    """A message as templates take it."""
    fields: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        fields["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.role == "tool":
        fields |= {"name": message.name, "tool_call_id": message.call_id}
    return fields


def _without_tools(message: Message) -> Message:
    """The message in words, for templates that know no tools: another model has called some before."""
    if message.role == "tool":
        return Message("user", message.content)
    called = [f"{call.name}({json.dumps(dict(call.arguments), ensure_ascii=False)})" for call in message.calls]
    return Message(message.role, "\n".join(filter(None, [message.content, *called])))


class AnswerStream:
    """Turns the tokens of one answer into text pieces, each in its channel."""

    def __init__(self, tokenizer: ChatTokenizer, in_thought: bool = False):
        self._tokenizer = tokenizer
        self._open, self._close = tokenizer.thought_ids
        self._held: list[int] = []
        self._channel: Channel = "thought" if in_thought else "answer"
        self._opening = False
        self._closing = False

    def push(self, token: int, last: bool = False) -> tuple[str, Channel]:
        """The text that this token adds, and its channel. An unfinished character's bytes are held back unless this is
        the ``last`` token."""
        if token in self._tokenizer.special_ids:
            return self._push_special(token)
        if token in self._tokenizer.shown_ids and not self._opening:
            return self._unfinished() + self._tokenizer.piece(token), self._channel
        if self._opening:
            # The rest of the opening token's line is no text: the channel's name, or nothing.
            self._opening = "\n" not in self._tokenizer.piece(token)
            return "", "control"
        if self._closing and not self._tokenizer.piece(token).strip("\n"):
            return "", "control"
        self._closing = False
        self._held.append(token)
        text = self._tokenizer.piece(token) if len(self._held) == 1 else self._tokenizer.decode(self._held)
        if text.endswith(_UNFINISHED) and not last:
            return "", self._channel
        self._held.clear()
        return text, self._channel

    def _push_special(self, token: int) -> tuple[str, Channel]:
        unfinished, channel = self._unfinished(), self._channel
        if token == self._open:
            self._channel, self._opening = "thought", True
        elif token == self._close:
            self._channel, self._opening = "answer", False
            self._closing = self._tokenizer.lines_behind_thought
        return (unfinished, channel) if unfinished else ("", "control")

    def _unfinished(self) -> str:
        """The text of the tokens that were held back, now that nothing will complete their character; holds none."""
        text = self._tokenizer.decode(self._held)
        self._held.clear()
        return text


class MessageStream(AnswerStream):
    """An answer's stream in formats whose messages have headers. A header is held back until it is whole."""

    def __init__(self, tokenizer: ChatTokenizer, headers: Headers):
        super().__init__(tokenizer)
        self._headers = headers
        self._header: list[int] | None = None
        """The header's tokens so far; None inside a message."""

    def push(self, token: int, last: bool = False) -> tuple[str, Channel]:
        if self._header is not None:
            if token == self._tokenizer.header_end_id:
                return self._begin_message([*self._header, token])
            self._header.append(token)
            return "", "control"
        if token in (self._open, self._close):
            self._header = [token] if token == self._open else []
        return super().push(token, last)

    def _push_special(self, token: int) -> tuple[str, Channel]:
        unfinished = self._unfinished()
        return (unfinished, self._channel) if unfinished else ("", "control")

    def _begin_message(self, header: list[int]) -> tuple[str, Channel]:
        """Begins a message: returns the text that its header shows, and switches to the channel that it names."""
        self._header, headers = None, self._headers
        whole = "".join(map(self._tokenizer.piece, header)).removeprefix(headers.role)
        name = whole.removeprefix(self._tokenizer.piece(self._open)).removesuffix(headers.end).strip()
        self._channel = "thought" if name.startswith(headers.thought) else "answer"
        return ("", "control") if name in (headers.thought, headers.answer) else (whole, self._channel)


def stream_of(tokenizer: ChatTokenizer, prompt: Sequence[int] = ()) -> AnswerStream:
    """The stream for a checkpoint's format. ``prompt``: its ids, since some templates open the thought with which an
    answer begins."""
    if tokenizer.headers is None or tokenizer.header_end_id < 0:
        return AnswerStream(tokenizer, _ends_in_thought(tokenizer, prompt))
    return MessageStream(tokenizer, tokenizer.headers)


def _ends_in_thought(tokenizer: ChatTokenizer, prompt: Sequence[int]) -> bool:
    """Whether a thought is open at the end of a prompt. One that a person's text opens is closed by the next
    message."""
    opened, closed = tokenizer.thought_ids
    for token in reversed(prompt[-TAIL:]):
        if token in (opened, closed):
            return token == opened
    return False
