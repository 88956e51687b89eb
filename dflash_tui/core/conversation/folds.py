"""What is folded in a transcript: lines that stand for a file, a summary, or what a program wrote. A front end shows
:func:`head spans <before_answer>` and finds the text behind the n-th of them by :func:`folds`. No Textual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..attachments.attachment import counted
from ..files.running import RunResult
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
    return [fold for each in path for fold in (*_beside(each), *map(_run, each.runs))]


def before_question(beside: QuestionContext) -> list[Span]:
    """What a transcript says above a question: that something before it is read no more."""
    if not beside.left_out and beside.carried is None:
        return []
    spans = []
    if beside.left_out:
        gone = counted(len(beside.left_out), "earlier question")
        are = "are" if len(beside.left_out) > 1 else "is"
        spans.append(Span(f"✂ from here on, {gone} {are} read no more\n", "note"))
    spans += [Span(f"{fold.head}\n", "fold") for fold in _carried(beside)]
    return [*spans, Span("\n", "note")]


def words_of(question: str, beside: QuestionContext) -> list[Span]:
    """The question, each paste as one mark."""
    spans, place = [], 0
    for (start, stop), fold in zip(beside.pastes, _pastes(question, beside), strict=True):
        spans += [Span(question[place:start], "prompt"), Span(fold.head, "fold")]
        place = stop
    return [span for span in (*spans, Span(question[place:], "prompt")) if span.text]


def behind_question(beside: QuestionContext) -> list[Span]:
    """The files that went with it, below its words."""
    return [Span(f"{file.head}\n", "fold") for file in beside.files]


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
    return f"[Pasted #{number} +{f'{lines} lines' if lines > 1 else f'{len(text)} characters'}]"


def _beside(told: ShownQuestion) -> list[Folded]:
    beside = told.beside
    files = (Folded(file.head, file.text) for file in beside.files)
    return [*_carried(beside), *_pastes(told.question, beside), *files]


def _pastes(question: str, beside: QuestionContext) -> list[Folded]:
    texts = (question[start:stop] for start, stop in beside.pastes)
    return [Folded(paste_mark(text, number), text) for number, text in enumerate(texts, 1)]


def _carried(beside: QuestionContext) -> list[Folded]:
    if beside.carried is None:
        return []
    what = "summary that stands for them" if beside.carried.kind == "summary" else "answer that this chat goes on from"
    words = counted(len(beside.carried.text.split()), "word")
    return [Folded(f"▸ {what} · {words}", beside.carried.text)]


def _run(run: RunResult) -> Folded:
    return Folded(f"▸ {run.summary}", run.output)
