"""What was said before on the screen again: the same pieces in the same looks as when it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..text.fences import describe_blocks
from ..text.spans import Span, Spans
from .folds import before_question, behind_question, words_of
from .reducer import ending, failure
from .step_spans import version_spans
from .tree import NodePart, Tree
from .turn import Turn

if TYPE_CHECKING:
    from .chat import Chat


def retell(chat: Chat, start: int = 0) -> list[Spans]:
    """What the transcript shows of the path from its question number ``start`` on, counted from 0: each with its
    answer."""
    answered = []
    for turn in chat.tree.path[start:]:
        chat.reducer.look_at(turn.number)
        spans = question_spans(chat.tree, turn.number)
        spans.extend(_answer(turn, chat.tree.version_of(turn.number, "answer")))
        answered.append(spans)
    return answered


class Drawn(NamedTuple):
    """A question of the path with what stands around its answer, for a view that draws the answer its own way."""

    question: Spans
    answer: str
    below: Spans
    """Figures, the mark of its versions, its blocks, and an error."""


def around_answers(chat: Chat) -> list[Drawn]:
    """The path of a chat that is on show."""
    drawn = []
    for turn in chat.tree.path:
        below = _below(turn, chat.tree.version_of(turn.number, "answer"))
        if blocks := describe_blocks(turn.answer):
            below.append(Span(f"{blocks}\n", "note"))
        drawn.append(Drawn(question_spans(chat.tree, turn.number), turn.answer, below))
    return drawn


def question_spans(tree: Tree[Turn], number: int) -> Spans:
    """A question with the mark of its versions, the name of the branch that begins with it, and its files."""
    node = tree[number]
    name = [Span(f"  {node.name}", "note")] if node.name else []
    marks = version_spans(*tree.version_of(number, "question"))
    files = behind_question(node.attached)
    ending = [Span("\n", "plain"), *files, Span("\n", "plain")] if files else [Span("\n\n", "plain")]
    return Spans.of([*before_question(node.attached), *words_of(node.question, node.attached), *marks, *name, *ending])


def marks(chat: Chat) -> list[tuple[int, NodePart]]:
    """What each version mark of the transcript stands beside, in order: the turn, and its question or answer."""
    versions: list[tuple[int, NodePart]] = []
    for turn in chat.tree.path:
        if chat.tree.version_of(turn.number, "question")[1] > 1:
            versions.append((turn.number, "question"))
        if not turn.running and chat.tree.version_of(turn.number, "answer")[1] > 1:
            versions.append((turn.number, "answer"))
    return versions


def _answer(turn: Turn, version: tuple[int, int]) -> Spans:
    """An answer's words, and what stands below them. Where no rounds were kept nobody knows its verdicts."""
    spans = turn.rebuild_spans() if turn.started is not None else Spans()
    if turn.started is None:
        words = [Span(f"{turn.thought}\n\n", "thought"), Span(turn.text, "text")]
        spans = Spans.of(span for span in words if span.text.strip())
    spans.extend(_below(turn, version))
    return spans


def _below(turn: Turn, version: tuple[int, int]) -> Spans:
    """What stands behind an answer's own words."""
    spans = Spans()
    if turn.failure is not None:
        spans.append(failure(turn.failure, turn.text))
    if turn.finished is not None:
        spans.extend(ending(turn, turn.finished, version))
    return spans
