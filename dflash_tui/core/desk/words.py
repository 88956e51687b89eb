"""Figures, versions and trees in sentences: what a screen shows by place and colour."""

from __future__ import annotations

from collections.abc import Iterator

from engine.events import FinishReason, TurnFinished

from ..conversation.chat import Chat
from ..conversation.differences import models_apart
from ..conversation.turn import Turn
from ..figures.labels import AS_FAST, accepted_share
from ..figures.table import Table
from ..text.counted import counted
from ..text.fences import find_blocks

SHORT = 60
"""Characters of a question in a list."""
_ENDED: dict[FinishReason, str] = {
    "stop": "",
    "length": "ended at the token limit",
    "context": "ended because the context is full",
    "stopped": "stopped",
    "error": "ended by an error",
}


def short(text: str) -> str:
    """The first ``SHORT`` characters of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 3].rstrip()}..."


def summary(finished: TurnFinished) -> str:
    """What an answer cost, and why it ended if not by itself; empty where an error has said all that there is."""
    facts = finished.statistics
    if finished.reason == "error" and not (finished.text or finished.thought):
        return ""
    parts = [counted(facts.num_tokens, "token")]
    if facts.tok_s > 0:
        parts.append(f"{facts.tok_s:.0f} per second")
    if accepted := accepted_share(facts):
        parts.append(accepted)
    if _ENDED[finished.reason]:
        parts.append(_ENDED[finished.reason])
    return ", ".join(parts)


def speed_up(chat: Chat, finished: TurnFinished) -> str:
    """How many times as fast as the target alone an answer came; empty where that is not known."""
    turn = chat.reducer.turn_of(finished.turn)
    factor = turn.snapshot.speed_up if turn is not None else None
    return f"{factor.as_text()} times {AS_FAST}{', slower' * factor.loses}" if factor is not None else ""


def blocks_of(answer: str) -> str:
    """Which code an answer holds; empty for none."""
    names = [f"{block.number} {block.filename or block.language or 'text'}" for block in find_blocks(answer)]
    if not names:
        return ""
    what = "Code block" if len(names) == 1 else "Code blocks"
    return f"{what} {', '.join(names)}. /save keeps the last."


def place_of(chat: Chat, number: int) -> str:
    """Which version of how many a question and its answer are; empty where there is one."""
    parts = []
    for which in ("question", "answer"):
        index, count = chat.tree.version_of(number, which)
        if count > 1:
            parts.append(f"version {index} of {count} of the {which}")
    return ", ".join(parts)


def answer_facts(chat: Chat, exchange: Turn) -> Iterator[str]:
    """Lines that tell one question, its files and its answer, to be read out."""
    name = f", branch {exchange.name}" if exchange.name else ""
    version = place_of(chat, exchange.number)
    yield f"Question {exchange.number}{name}{', ' + version if version else ''}: {exchange.question}"
    for file in exchange.attached.files:
        yield f"(with the file {file.name}, {counted(file.num_lines, 'line')})"
    yield exchange.answer or "(no answer)"


def outlined(chat: Chat) -> Iterator[str]:
    """Every question of the tree, in the order of a drawing, each with what it follows."""
    path = {exchange.number for exchange in chat.tree.path}
    models = models_apart(chat.tree)
    for row in chat.tree.outline():
        node = row.node
        follows = f"follows {node.parent}" if node.parent else "the beginning"
        facts = [f"{node.number}", follows]
        if version := place_of(chat, node.number):
            facts.append(version)
        if node.name:
            facts.append(f"branch {node.name}")
        if node.number in models:
            facts.append(f"answered by {models[node.number]}")
        if node.number == chat.tree.here:
            facts.append("you are here")
        elif node.number in path:
            facts.append("on your path")
        yield f"{', '.join(facts)}: {short(node.question)}"


def table_lines(table: Table) -> Iterator[str]:
    """A row a line, each cell with what it is; rows that count nothing are left out."""
    yield f"{table.title}:"
    for row in table.rows:
        if len(row) > 2 and not set("".join(row[1:])) - set("0.%"):
            continue
        named = zip(table.head, row, strict=True) if table.head else ()
        yield "  " + (", ".join(f"{head} {cell}".strip() for head, cell in named) or ": ".join(row)).replace(
            " … ", " to "
        )
    if table.note:
        yield f"  {table.note}"
