"""What is folded in a transcript: lines that stand for a file, a summary, or what a program wrote. A front end shows
:func:`head spans <before_answer>` and finds the text behind the n-th of them by :func:`folds`. No Textual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..files.running import RunResult
from ..text.counted import counted
from ..text.spans import Span
from .question_context import QuestionContext, SaidTurn

SHOWN_LINES = 8
"""Lines of a program's output that are shown in place; the rest is folded."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A text behind a line of the transcript."""

    head: str
    text: str


class ShownQuestion(SaidTurn, Protocol):
    """A question that is on the screen, with its answer and what came of running that."""

    @property
    def runs(self) -> Sequence[RunResult]: ...


def folds(path: Iterable[ShownQuestion]) -> list[Folded]:
    """Every text that the transcript of ``path`` folds, in its order: one for each piece in the style ``fold``."""
    return [fold for each in path for fold in (*_folded_context(each), *map(_run, each.runs))]


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


def below_answer(runs: Sequence[RunResult]) -> list[Span]:
    """What came of running blocks of an answer: how it ended, and the beginning of what was written."""
    spans = []
    for run in runs:
        spans.append(Span(f"{_run(run).head}\n", "fold"))
        spans += output_spans(run, ": Alt+O, or a click on the line above")
        spans.append(Span("\n", "note"))
    return spans


def output_spans(run: RunResult, how: str = "") -> list[Span]:
    """The first lines of a program's output. ``how``: words on how the rest can be seen."""
    lines = run.output.rstrip("\n").split("\n") if run.output.strip() else []
    spans = [Span(f"  {line}\n", "output") for line in lines[:SHOWN_LINES]]
    if len(lines) > SHOWN_LINES:
        spans.append(Span(f"  … {counted(len(lines) - SHOWN_LINES, 'more line')}{how}\n", "note"))
    return spans


def paste_mark(text: str, number: int) -> str:
    lines = text.removesuffix("\n").count("\n") + 1
    return f"[Pasted #{number} +{counted(lines, 'line') if lines > 1 else counted(len(text), 'character')}]"


def _folded_context(question: ShownQuestion) -> list[Folded]:
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


def _run(run: RunResult) -> Folded:
    return Folded(f"▸ {run.summary}", run.output)
