"""What was said before on the screen again: the same pieces in the same looks as when it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.events import EngineError

from ..sessions.turn import StoredTurn
from ..text.fences import describe_blocks
from ..text.spans import Span, Spans
from .folds import before_question, behind_question, below_answer, words_of
from .reducer import Reducer, TurnState, ending, failure, turn_summary
from .step_spans import noted, version_spans
from .tree import Part, Tree

if TYPE_CHECKING:
    from .chat import Chat, Exchange


def recall(turn: StoredTurn, place: tuple[int, int] = (1, 1)) -> tuple[TurnState, Spans] | None:
    """A turn of a file as if just decoded, and what the transcript shows of its answer; None where it
    never began. ``place``: which version of the answer it is, of how many."""
    if turn.started is None:
        return None
    reducer = Reducer()
    reducer.place_of = lambda _: place
    reducer.speed_up_of = lambda _: turn.speed_up
    for event in turn.events():
        reducer.apply(event)
    assert reducer.turn is not None, "the events begin with the turn's"
    return reducer.turn, reducer.take_spans()


def retell(chat: Chat, start: int = 0) -> list[Spans]:
    """What the transcript shows of the path from its question number ``start`` on, counted from 0: each with its
    answer."""
    told = []
    for exchange in chat.tree.path[start:]:
        spans = question_spans(chat.tree, exchange.number)
        spans.extend(_answer(chat, exchange.number))
        spans.extend(Spans.of(below_answer(exchange.runs)))
        told.append(spans)
    return told


class Drawn(NamedTuple):
    """A question of the path with what stands around its answer, for a view that draws the answer its own way."""

    question: Spans
    answer: str
    below: Spans
    """Figures, the mark of its versions, its blocks, an error, and what came of running it."""


def around_answers(chat: Chat) -> list[Drawn]:
    """The path of a chat that is on show."""
    drawn = []
    for exchange in chat.tree.path:
        state, stored = chat.reducer.turn_of(exchange.number), chat.stored.get(exchange.number)
        place = chat.tree.place(exchange.number, "answer")
        below = _below(state, place) if state is not None else _text_only(stored, place)[1] if stored else Spans()
        if blocks := describe_blocks(exchange.answer):
            below.append(Span(f"{blocks}\n", "note"))
        below.extend(Spans.of(below_answer(exchange.runs)))
        drawn.append(Drawn(question_spans(chat.tree, exchange.number), exchange.answer, below))
    return drawn


def question_spans(tree: Tree[Exchange], number: int) -> Spans:
    """A question with the mark of its versions, the name of the branch that begins with it, and its files."""
    node = tree[number]
    name = [Span(f"  {node.name}", "note")] if node.name else []
    marks = version_spans(*tree.place(number, "question"))
    files = behind_question(node.beside)
    ending = [Span("\n", "plain"), *files, Span("\n", "plain")] if files else [Span("\n\n", "plain")]
    return Spans.of([*before_question(node.beside), *words_of(node.question, node.beside), *marks, *name, *ending])


def marks(chat: Chat) -> list[tuple[int, Part]]:
    """What each version mark of the transcript stands beside, in order: the turn, and its question or answer."""
    found: list[tuple[int, Part]] = []
    for exchange in chat.tree.path:
        if chat.tree.place(exchange.number, "question")[1] > 1:
            found.append((exchange.number, "question"))
        state = chat.reducer.turn_of(exchange.number)
        ended = state.finished is not None if state is not None else exchange.number in chat.stored
        if ended and chat.tree.place(exchange.number, "answer")[1] > 1:
            found.append((exchange.number, "answer"))
    return found


def _answer(chat: Chat, number: int) -> Spans:
    state, stored = chat.reducer.turn_of(number), chat.stored.get(number)
    place = chat.tree.place(number, "answer")
    if state is None and stored is not None:
        if (recalled := recall(stored, place)) is None:
            text, below = _text_only(stored, place)
            text.extend(below)
            return text
        chat.reducer.adopt(recalled[0])
        return recalled[1]
    if state is None:
        return Spans()
    spans = state.rebuild_spans()
    spans.extend(_below(state, place))
    return spans


def _below(state: TurnState, place: tuple[int, int]) -> Spans:
    """What stands behind an answer's own words."""
    spans = Spans()
    if state.error is not None:
        spans.append(failure(state.error, state.text))
    if state.finished is not None:
        spans.extend(ending(state, state.finished, place))
    return spans


def _text_only(turn: StoredTurn, place: tuple[int, int]) -> tuple[Spans, Spans]:
    """A turn of which no rounds were kept, so that nobody knows its verdicts: its words, and what stands below them."""
    answer, thought = turn.answer, turn.thought
    gap = "" if not answer else "\n" if answer.endswith("\n") else "\n\n"
    words = [*([Span(f"{thought}\n\n", "thought")] if thought else []), Span(answer, "text")]
    *errors, ended = turn.closing
    failed = [Span(f"✗ {error.message}\n", "error") for error in errors if isinstance(error, EngineError)]
    figures = noted(f"{gap}{turn_summary(ended, turn.speed_up)}", version_spans(*place), "\n\n")
    return Spans.of(words), Spans.of([*failed, *figures])
