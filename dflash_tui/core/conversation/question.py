"""A question with what goes with it, and what the model reads of a conversation. No Textual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from engine.commands import Message

from ..attachments.attachment import Attachment, reference, referred, with_files

_CARRIED = {
    "summary": "The beginning of this conversation is left out. In short:",
    "answer": "This goes on from an answer in an earlier conversation, which was:",
}


@dataclass(frozen=True, slots=True)
class Carried:
    """What the model reads in the place of what it no longer does."""

    kind: Literal["summary", "answer"]
    """By itself, of what was left out; or the last answer of another conversation."""
    text: str

    @property
    def words(self) -> str:
        """As the system prompt says it."""
        return f"{_CARRIED[self.kind]}\n{self.text}"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked."""

    text: str
    """The user's words."""
    files: tuple[Attachment, ...] = ()
    left_out: tuple[int, ...] = ()
    """The numbers of earlier questions that the model reads no more, from this one on."""
    carried: Carried | None = None
    """What it reads in their place."""

    @property
    def prompt(self) -> str:
        """What the model reads."""
        return with_files(self.text, self.files) if self.files else self.text

    def to_line(self) -> dict[str, Any]:
        """What a session's line has beside the text; nothing for most."""
        line: dict[str, Any] = {}
        if self.files:
            line["files"] = [reference(file) for file in self.files]
        if self.left_out:
            line["left_out"] = list(self.left_out)
        if self.carried:
            line["carried"] = {"kind": self.carried.kind, "text": self.carried.text}
        return line

    @classmethod
    def from_line(cls, line: Mapping[str, Any], contents: Mapping[str, str]) -> Question:
        """The inverse; ``contents``: of files, by digest. Raises ``ValueError``, ``KeyError`` or ``TypeError``."""
        told = line.get("carried")
        carried = Carried("answer" if told["kind"] == "answer" else "summary", str(told["text"])) if told else None
        left_out = tuple(number for number in line.get("left_out", ()) if isinstance(number, int))
        return cls(line["text"], referred(line, contents), left_out, carried)


class Said(Protocol):
    """A question of a conversation, and its answer."""

    @property
    def number(self) -> int: ...

    @property
    def asked(self) -> Question: ...

    @property
    def answer(self) -> str: ...


def left_out_of(said: Sequence[Said], question: Question | None = None) -> set[int]:
    """The numbers of what the model no longer reads at the end of ``said``, or with ``question`` behind it."""
    asked = [*(each.asked for each in said), *([question] if question else [])]
    return {number for each in asked for number in each.left_out}


def messages_of(said: Sequence[Said], system: str | None, question: Question | None = None) -> tuple[Message, ...]:
    """What the model reads of a path through the conversation, with ``question`` behind it. A question without an
    answer is left out: no chat template takes two of them in a row."""
    gone = left_out_of(said, question)
    carried = [each.asked.carried for each in said] + [question.carried if question else None]
    stands_for = next((each.words for each in reversed(carried) if each), None)
    head = "\n\n".join(filter(None, (system, stands_for)))
    messages = [Message("system", head)] if head else []
    for each in said:
        if each.number not in gone and (answer := each.answer):
            messages += [Message("user", each.asked.prompt), Message("assistant", answer)]
    if question is not None:
        messages.append(Message("user", question.prompt))
    return tuple(messages)
