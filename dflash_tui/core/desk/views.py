"""Views: what a chat has to show beside its answers, each in words for a face without pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ..conversation.chat import Chat
from ..conversation.slash import SlashError
from ..conversation.turn import Turn
from ..figures.pass_costs import PassCost, pass_costs
from ..figures.statistics import TurnSnapshot
from ..figures.tables import GaugeFacts, tables
from ..rounds.inspection import inspect, quoted
from ..text.counted import counted
from .words import outlined, short, table_lines

LISTED = 20


@dataclass(frozen=True, slots=True)
class TreeView:
    """Every question of a conversation, or those with some words."""

    chat: Chat
    words: str = ""

    def lines(self) -> Iterator[str]:
        words = self.words.casefold().split()
        lines = [line for line in outlined(self.chat) if all(word in line.casefold() for word in words)]
        if not lines:
            raise SlashError("No question has these words.")
        yield from lines
        yield "/go and a number goes on from there."


@dataclass(frozen=True, slots=True)
class SessionsView:
    """The conversations on this machine, the latest first, or those in which some words were said."""

    here: Path
    """The file of the conversation that is on."""
    words: str = ""

    def lines(self) -> Iterator[str]:
        from ..sessions.search import conversations  # nothing else searches

        matching, unreadable = conversations(self.words, self.here.parent)
        if not matching:
            raise SlashError("No conversation has these words." if self.words else "No conversation yet.")
        for each in matching[:LISTED]:
            here = ", this one" if each.path == self.here else ""
            yield f"{each.id}{here}, {counted(len(each.questions), 'question')}: {short(each.name)}"
        if len(matching) > LISTED:
            yield f"{len(matching) - LISTED} more: /sessions and words of theirs narrows the list."
        yield from unreadable
        yield "/resume and an id, which may be cut short, goes on with one."


@dataclass(frozen=True, slots=True)
class FilesView:
    """What the model reads beside the questions of a conversation, and what is folded in its transcript."""

    chat: Chat
    index: int | None = None
    """The number of the fold to begin with, counted from 0; None for the last one."""

    def lines(self) -> Iterator[str]:
        nothing = True
        for exchange in self.chat.tree.path:
            for file in exchange.attached.files:
                yield f"With question {exchange.number}, {file.name}, {counted(file.num_lines, 'line')}:\n{file.text}"
                nothing = False
            if exchange.attached.carried is not None:
                yield f"From question {exchange.number} on: {exchange.attached.carried.words}"
                nothing = False
        if nothing:
            raise SlashError("No file goes with this conversation. @path in a question attaches one.")


def gauge_facts(chat: Chat, turn: Turn | None, snapshot: TurnSnapshot) -> GaugeFacts:
    """What is measured of an answer at the moment of ``snapshot``; ``turn`` is None before the first answer."""
    ready = chat.reducer.ready
    return GaugeFacts(
        snapshot,
        max_context=ready.max_context if ready else 0,
        floor_ms=ready.floor_ms if ready else None,
        speculation=turn.speculation if turn else True,
        times=ready.times if ready else "engine",
        num_prompt_tokens=turn.num_prompt_tokens if turn else 0,
        num_reused_tokens=turn.num_reused_tokens if turn else 0,
        pass_ms=ready.pass_ms if ready else (),
        rows=turn.rounds.verified[snapshot.step] + 1 if turn and snapshot.step else 0,
    )


def costs_of_passes(chat: Chat) -> tuple[PassCost, ...]:
    """What passes of the target took, by their rows: at the start, and in the answers of a conversation."""
    times = (turn.rounds.pass_times(-1) for turn in chat.turns if len(turn.rounds))
    ready = chat.reducer.ready
    return pass_costs(chain.from_iterable(times), ready.pass_ms if ready else ())


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of the newest answer."""

    chat: Chat

    def lines(self) -> Iterator[str]:
        turn = self.chat.reducer.turn
        if turn is None:
            raise SlashError("There are no numbers before the first answer.")
        for table in tables(gauge_facts(self.chat, turn, turn.snapshot), costs_of_passes(self.chat), drawn=False):
            yield from table_lines(table)


@dataclass(frozen=True, slots=True)
class RoundView:
    """One round of the newest answer: what was drafted, what became of it, and why. In words that is two sentences."""

    chat: Chat
    number: int | None
    """The round's number, counted from 0; None for the last one."""
    local: bool
    """Whether the noise of its samples is known: it was decoded on this machine."""

    def lines(self) -> Iterator[str]:
        turn = self.chat.reducer.turn
        if turn is None or not turn.rounds:
            raise SlashError("There are no rounds before the first answer.")
        last = len(turn.rounds) - 1
        number = last if self.number is None else self.number
        if not 0 <= number <= last:
            raise SlashError(f"The newest answer has rounds 0 to {last}.")
        settings = turn.started.settings if turn.started is not None else {}
        seed = settings.get("seed") if self.local else None
        ready, plain_ms = self.chat.reducer.ready, turn.snapshot.alone_ms
        recurs, method = (False, None) if ready is None else (ready.recurs, ready.method)
        where = turn.rounds, number, turn.num_prompt_tokens, seed
        inspection = inspect(*where, plain_ms, recurs=recurs, method=method)
        wrote = "".join(token.text for token in inspection.step.emitted if token.channel != "control")
        text = quoted(wrote, control=not wrote)
        facts = "; ".join(filter(None, (inspection.summary, inspection.memory)))
        yield f"Round {number} of {last} wrote {text}: {facts}."
        yield inspection.turning
