"""What is folded in a transcript: lines that stand for a file, a summary or a paste. A front end shows
:func:`head spans <before_answer>` and finds the text behind the n-th of them by :func:`folds`. No Textual."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..text.counted import counted
from ..text.spans import Span
from .question_context import QuestionContext, SaidTurn


@dataclass(frozen=True, slots=True)
class Folded:
    """A text behind a line of the transcript."""

    head: str
    text: str


def folds(path: Iterable[SaidTurn]) -> list[Folded]:
    """Every text that the transcript of ``path`` folds, in its order: one for each piece in the style ``fold``."""
    return [fold for each in path for fold in _folded_context(each)]


def before_question(context: QuestionContext) -> list[Span]:
    """What a transcript says above a question: that something before it is read no more."""
    if not context.left_out and context.carried is None:
        return []
    spans = []
    if context.left_out:
        gone = counted(len(context.left_out), "earlier question")
        are = "are" if len(context.left_out) > 1 else "is"
        spans.append(Span(f"✂ from here on, {gone} {are} read no more\n", "note"))
    spans += [Span(f"{fold.head}\n", "fold") for fold in _carried(context)]
    return [*spans, Span("\n", "note")]


def words_of(question: str, context: QuestionContext) -> list[Span]:
    """The question, each paste as one mark."""
    spans, written_to = [], 0
    for (start, stop), fold in zip(context.pastes, _pastes(question, context), strict=True):
        spans += [Span(question[written_to:start], "prompt"), Span(fold.head, "fold")]
        written_to = stop
    return [span for span in (*spans, Span(question[written_to:], "prompt")) if span.text]


def behind_question(context: QuestionContext) -> list[Span]:
    """The files that went with it, below its words."""
    return [Span(f"{file.head}\n", "fold") for file in context.files]


def paste_mark(text: str, number: int) -> str:
    lines = text.removesuffix("\n").count("\n") + 1
    return f"[Pasted #{number} +{counted(lines, 'line') if lines > 1 else counted(len(text), 'character')}]"


def _folded_context(question: SaidTurn) -> list[Folded]:
    context = question.attached
    files = (Folded(file.head, file.text) for file in context.files)
    return [*_carried(context), *_pastes(question.question, context), *files]


def _pastes(question: str, context: QuestionContext) -> list[Folded]:
    texts = (question[start:stop] for start, stop in context.pastes)
    return [Folded(paste_mark(text, number), text) for number, text in enumerate(texts, 1)]


def _carried(context: QuestionContext) -> list[Folded]:
    if context.carried is None:
        return []
    what = "summary that stands for them" if context.carried.kind == "summary" else "answer that this chat goes on from"
    words = counted(len(context.carried.text.split()), "word")
    return [Folded(f"▸ {what} · {words}", context.carried.text)]
