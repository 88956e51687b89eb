"""Tells thought from answer in a text that comes in pieces, by the marks that models write around thoughts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.events import Channel

_XML = ("think", "thinking", "thought", "thoughts", "reasoning", "reason", "seed:think")
PAIRS = {
    **{f"<{name}>": f"</{name}>" for name in _XML},
    "[think]": "[/think]", "◁think▷": "◁/think▷", "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel>thought": "<channel|>",
    "<|channel|>analysis<|message|>": "<|end|>", "<|channel|>commentary<|message|>": "<|end|>",
}  # fmt: skip
"""What closes a thought, by what opens it, in small letters; Gemma's and harmony's channels among them."""
SILENT = ("<|start|>assistant", "<|channel|>final<|message|>", "<|return|>", "<|end|>")
"""Harmony's marks around an answer, which are no part of it."""
_ALL = sorted({*PAIRS, *PAIRS.values(), *SILENT}, key=len, reverse=True)
_MARK = re.compile("|".join(map(re.escape, _ALL)), re.IGNORECASE)
_FIRST = re.compile("[<[◁]")
_OPEN = re.compile(r"<think>(?!(?:\\n|\s)*</think>)")
_EMPTY = re.compile(r"<think>(?:\\n|\s)*</think>")
_FENCES = ("```", "~~~")
MOST_HELD = 200
"""Characters of an answer that wait, at most, for the end of a thought that nothing has begun."""


def begins_inside(template: str, thinking: bool) -> bool:
    """Whether the prompt of a chat template ends with ``<think>``, so that the answer begins inside a thought. A
    template that can write an empty thought instead does so where no thinking is wanted."""
    prompt = template.rpartition("add_generation_prompt")[2]
    return _OPEN.search(prompt) is not None and (thinking or _EMPTY.search(prompt) is None)


class Thoughts:
    """Marks count where the answer begins with one, or begins inside, or where a line does. Inside
    a code block or backticks they are text, as in an answer about them."""

    def __init__(self, inside: bool = False, hold: bool = False) -> None:
        """``inside``: the answer begins in a thought. ``hold``: its beginning waits for a mark that says so."""
        self.unbegun = False
        """Whether a mark ended a thought that none had begun: all of the answer before it was one."""
        self._closing = PAIRS["<think>"] if inside else ""
        """The mark that ends the thought which is being read; empty outside of one."""
        self._supposed: list[str] | None = [] if inside else None
        """What is the answer's after all if no mark ends the thought."""
        self._waiting: list[str] | None = [] if hold and not inside else None
        self._thought = False
        """Whether there was a thought: another can't have begun before the answer."""
        self._blank, self._trims = True, inside
        """Whether there were blanks alone since the beginning or the last mark; whether those belong to the mark."""
        self._held = ""
        self._line, self._ticks, self._fenced = "", 0, False
        """The beginning of the current line, its backticks, and whether it stands in a code block."""

    def feed(self, piece: str, last: bool = False) -> list[tuple[Channel, str]]:
        text, self._held = self._held + piece, ""
        pieces: list[tuple[Channel, str]] = []
        while text:
            mark = _MARK.search(text) if _FIRST.search(text) else None
            if mark is None:
                cut = len(text) if last else len(text) - _begun(text)
                pieces += self._tell(text[:cut])
                self._held = text[cut:]
                break
            pieces += self._tell(text[: mark.start()])
            text, unbegun = text[mark.end() :], self.unbegun
            pieces += self._mark(mark[0])
            if self.unbegun > unbegun:
                pieces = [("thought", before) for _, before in pieces]
        return pieces

    def outside(self) -> Iterator[tuple[Channel, str]]:
        """Notes that the server tells thoughts apart by itself, so that its answer's text holds no thought."""
        self._thought = True
        if self._supposed is not None:
            self._closing, self._supposed = "", None
        yield from self.release()

    def release(self) -> Iterator[tuple[Channel, str]]:
        """Lets go of the answer's beginning."""
        waiting, self._waiting = self._waiting or (), None
        yield from (("answer", text) for text in waiting)

    def rest(self, whole: bool) -> Iterator[tuple[Channel, str]]:
        """Gives what was held back when the answer ended. If a ``whole`` answer never ended a thought that was only
        supposed, there was none: all of it is told again as the answer."""
        if self._supposed is not None and whole:
            yield "answer", "".join(self._supposed) + self._held
            self._held = ""
        yield from self.feed("", last=True)
        yield from self.release()

    def _tell(self, text: str) -> Iterator[tuple[Channel, str]]:
        if self._trims and self._blank:
            text = text.lstrip()
        if not text:
            return
        self._blank = self._blank and text.isspace()
        first, *others = text.split("\n")
        self._line, self._ticks = (self._line + first)[:16], self._ticks + first.count("`")
        for line in others:
            self._fenced ^= self._line.lstrip().startswith(_FENCES)
            self._line, self._ticks = line[:16], line.count("`")
        if self._closing:
            if self._supposed is not None:
                self._supposed.append(text)
            yield "thought", text
        elif self._waiting is not None:
            self._waiting.append(text)
            if sum(map(len, self._waiting)) > MOST_HELD:
                yield from self.release()
        else:
            yield "answer", text

    def _mark(self, mark: str) -> Iterator[tuple[Channel, str]]:
        name = mark.lower()
        quoted = self._fenced or self._line.lstrip().startswith(_FENCES) or self._ticks % 2 == 1
        special = name[1:2] == "|" or "|" in name[-2:]
        if self._closing:
            if name == self._closing and not quoted:
                yield from self._switch("")
            elif not (self._blank and self._supposed is not None and PAIRS.get(name) == self._closing):
                yield from self._tell(mark)
                if name == self._closing:  # where none follows, it was the end all the same
                    self._supposed = []
        elif quoted:
            yield from self._tell(mark)
        elif name in PAIRS:
            within = not (self._blank or special or not self._line.strip())
            yield from self.release()
            yield from self._switch(PAIRS[name])
            if within:  # where no mark ends it, it was a word of the answer
                self._supposed, self._trims = [mark], False
        elif name in SILENT and (self._thought or self._blank):
            self._blank = self._trims = self._blank or name != "<|return|>"
        elif name in PAIRS.values() and not (self._thought or self._blank):
            self.unbegun = True
            yield "thought", "".join(self._waiting or ())
            self._waiting = None
            yield from self._switch("")
        else:
            yield from self._tell(mark)

    def _switch(self, closing: str) -> Iterator[tuple[Channel, str]]:
        self._closing, self._supposed = closing, None
        self._thought = self._blank = self._trims = True
        self._line, self._ticks, self._fenced = "", 0, False
        yield from ()


def _begun(text: str) -> int:
    """How many characters at the end may begin a mark."""
    tail = text[-len(_ALL[0]) + 1 :].lower()
    starts = (index for index, mark in enumerate(tail) if mark in "<[◁")
    return next((len(tail) - at for at in starts if any(mark.startswith(tail[at:]) for mark in _ALL)), 0)
