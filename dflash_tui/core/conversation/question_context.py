"""What goes with a question beside its words, and what the model reads of a conversation. No Textual."""

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
    """A summary of what was left out, or the last answer of another conversation."""
    text: str

    @property
    def words(self) -> str:
        """The text and a sentence before it, as the system prompt has them."""
        return f"{_CARRIED[self.kind]}\n{self.text}"


@dataclass(frozen=True, slots=True)
class QuestionContext:
    """What goes with a question."""

    files: tuple[Attachment, ...] = ()
    left_out: tuple[int, ...] = ()
    """The numbers of earlier questions that the model reads no more, from this one on."""
    carried: Carried | None = None
    """What it reads in their place."""
    pastes: tuple[tuple[int, int], ...] = ()
    """Ranges of the question's characters that were pasted, as (start, stop); the transcript folds each into a mark."""

    def prompt(self, question: str) -> str:
        """What the model reads in the place of the user's words."""
        return with_files(question, self.files) if self.files else question

    def to_line(self) -> dict[str, Any]:
        """The fields that a question's line in a session file has for this; none for most questions."""
        line: dict[str, Any] = {}
        if self.files:
            line["files"] = [reference(file) for file in self.files]
        if self.left_out:
            line["left_out"] = list(self.left_out)
        if self.carried:
            line["carried"] = {"kind": self.carried.kind, "text": self.carried.text}
        if self.pastes:
            line["pastes"] = [list(each) for each in self.pastes]
        return line

    @classmethod
    def from_line(cls, line: Mapping[str, Any], contents: Mapping[str, str]) -> QuestionContext:
        """What a line of a session file tells; ``contents``: those of files, by digest. Raises ``ValueError``,
        ``KeyError`` or ``TypeError``."""
        stored = line.get("carried")
        carried = (
            Carried("answer" if stored["kind"] == "answer" else "summary", str(stored["text"])) if stored else None
        )
        left_out = tuple(number for number in line.get("left_out", ()) if isinstance(number, int))
        pastes = tuple((int(start), int(stop)) for start, stop in line.get("pastes", ()))
        return cls(referred(line, contents), left_out, carried, pastes)


NOTHING = QuestionContext()


def pastes_in(question: str, pasted: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Where in a question the pasted texts stand, as (start, stop), in their order."""
    pastes, searched_to = [], 0
    for text in (each.strip("\n") for each in pasted):
        if text and (start := question.find(text, searched_to)) >= 0:
            pastes.append((start, searched_to := start + len(text)))
    return tuple(pastes)


class SaidTurn(Protocol):
    @property
    def number(self) -> int: ...

    @property
    def question(self) -> str: ...

    @property
    def attached(self) -> QuestionContext: ...

    @property
    def answer(self) -> str: ...


def left_out_of(earlier: Sequence[SaidTurn], context: QuestionContext = NOTHING) -> set[int]:
    """The numbers of what the model no longer reads at the end of ``earlier``, or of a question behind it."""
    return {number for each in (*(each.attached for each in earlier), context) for number in each.left_out}


def messages_of(
    earlier: Sequence[SaidTurn], system: str | None, question: str | None = None, context: QuestionContext = NOTHING
) -> tuple[Message, ...]:
    """What the model reads of a path through the conversation, with ``question`` behind it. A question without an
    answer is left out: no chat template takes two of them in a row."""
    gone = left_out_of(earlier, context)
    carried = [each.carried for each in (*(each.attached for each in earlier), context)]
    stands_for = next((each.words for each in reversed(carried) if each), None)
    head = "\n\n".join(filter(None, (system, stands_for)))
    messages = [Message("system", head)] if head else []
    for each in earlier:
        if each.number not in gone and (answer := each.answer):
            messages += [Message("user", each.attached.prompt(each.question)), Message("assistant", answer)]
    if question is not None:
        messages.append(Message("user", context.prompt(question)))
    return tuple(messages)
