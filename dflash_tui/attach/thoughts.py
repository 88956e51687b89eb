"""Tells apart the thoughts that a server leaves in the answer's text, between ``<think>`` and ``</think>``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dflash_tui.core.text.overlap import overlap
from engine.events import Channel

OPENING = ("<think>", "<thinking>", "<thought>", "[THINK]")
CLOSING = {"<think>": "</think>", "<thinking>": "</thinking>", "<thought>": "</thought>", "[THINK]": "[/THINK]"}
_OPEN = re.compile(r"<think>(?!(?:\\n|\s)*</think>)")
_EMPTY = re.compile(r"<think>(?:\\n|\s)*</think>")


def begins_inside(template: str, thinking: bool) -> bool:
    """Whether the prompt of a chat template ends with ``<think>``, so that the answer begins inside a thought. A
    template that can write an empty thought instead does so where no thinking is wanted."""
    prompt = template.rpartition("add_generation_prompt")[2]
    return _OPEN.search(prompt) is not None and (thinking or _EMPTY.search(prompt) is None)


class Thoughts:
    """Tells thought from answer in a text that comes in pieces. Tags count where the answer begins with one, or begins
    inside; elsewhere they are text, as in an answer about tags."""

    def __init__(self, inside: bool = False) -> None:
        self._closing = CLOSING["<think>"] if inside else ""
        """The tag that ends the thought which is being read; empty outside of one."""
        self._beginning = True
        """Whether this is the beginning of the answer or of a thought, where blank characters belong to the tag."""
        self._tagged = False
        self._held = ""
        self._supposed: list[str] | None = [] if inside else None
        """The thought so far, where only the template says that it is one."""

    def feed(self, piece: str) -> Iterator[tuple[Channel, str]]:
        if not (self._closing or self._beginning):
            yield "answer", piece
            return
        text = self._held + piece
        self._held = ""
        while text:
            if self._beginning and self._closing:
                text = text.lstrip()
                if self._supposed is not None and OPENING[0].startswith(text):
                    self._held = text
                    return
                text = text.removeprefix(OPENING[0]) if self._supposed is not None else text
                self._beginning = not text
            elif self._closing:
                thought, found, behind = text.partition(self._closing)
                if found:
                    text, self._closing, self._beginning, self._tagged = behind, "", True, True
                    self._supposed = None
                    yield "thought", thought
                    continue
                cut = len(text) - overlap(text, self._closing)
                thought, self._held = text[:cut], text[cut:]
                if self._supposed is not None:
                    self._supposed.append(thought)
                yield "thought", thought
                return
            elif self._beginning:
                start = text.lstrip()
                opening = next((tag for tag in OPENING if start.startswith(tag)), "")
                if opening:
                    if not self._tagged and start is not text:
                        yield "answer", text[: len(text) - len(start)]
                    self._closing, text = CLOSING[opening], start[len(opening) :]
                elif any(tag.startswith(start) for tag in OPENING):
                    self._held = start
                    blank = text[: len(text) - len(start)]
                    if blank and not self._tagged:
                        yield "answer", blank
                    return
                else:
                    self._beginning = False
                    text = start if self._tagged else text
            else:
                yield "answer", text
                return

    def outside(self) -> None:
        """Notes that the server tells thoughts apart by itself, so that its answer's text holds no thought."""
        if self._supposed is not None:
            self._closing, self._supposed = "", None

    def rest(self, whole: bool) -> Iterator[tuple[Channel, str]]:
        """Gives what was held back when the answer ended. If the template promised a thought and a ``whole`` answer
        never ended it, there was none: all of it is told again as the answer."""
        held, self._held = self._held, ""
        if self._supposed is not None and whole:
            yield "answer", "".join(self._supposed) + held
        elif held:
            yield ("thought" if self._closing else "answer"), held
