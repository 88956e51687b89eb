"""Commands that show figures: statistics, rounds and the race, in words."""

from __future__ import annotations

from queue import SimpleQueue
from typing import TYPE_CHECKING

from dflash_tui.core.conversation.context import room_words
from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.figures.tables import GaugeFacts, tables
from dflash_tui.core.race.in_chat import RACE_RUNS, own_lanes, question_of
from dflash_tui.core.race.race import Race
from dflash_tui.core.race.report import how, race_remarks, race_table
from dflash_tui.core.rounds.inspection import inspect
from engine.events import EngineError, Event

from ..problems import engine_problem
from .command import Command
from .words import reasons, table_lines

if TYPE_CHECKING:
    from .chat import PlainChat


def statistics(plain: PlainChat, _: Argument) -> None:
    turn, ready = plain.chat.reducer.turn, plain.chat.reducer.ready
    if turn is None:
        raise SlashError("There are no numbers before the first answer.")
    facts = GaugeFacts(
        turn.snapshot,
        max_context=ready.max_context if ready else 0,
        plain_ms=plain.chat.reducer.plain_ms,
        before_race=turn.before_race,
        speculation=turn.speculation,
        times=ready.times if ready else "engine",
        num_prompt_tokens=turn.num_prompt_tokens,
        num_reused_tokens=turn.num_reused_tokens,
    )
    for table in tables(facts):
        for line in table_lines(table):
            plain.say(line)


def rounds(plain: PlainChat, argument: Argument) -> None:
    """One round of the newest answer, token by token: what was drafted, what became of it, and why."""
    turn = plain.chat.reducer.turn
    if turn is None or not turn.history:
        raise SlashError("There are no rounds before the first answer.")
    last = len(turn.history) - 1
    place = argument.integer() if argument.text else last
    if not 0 <= place <= last:
        raise SlashError(f"The newest answer has rounds 0 to {last}.")
    settings = turn.started.settings if turn.started is not None else {}
    seed = settings.get("seed") if plain.engine.capabilities.local else None
    found = inspect(turn.history, place, turn.num_prompt_tokens, seed, plain.chat.reducer.plain_ms)
    plain.say(f"Round {place} of 0 to {last}: {found.summary}")
    for line in reasons(found):
        plain.say(f"  {line}")


def context(plain: PlainChat, _: Argument) -> None:
    turn, limit = plain.chat.reducer.turn, plain.asking.limit
    if not limit:
        raise SlashError("How much the context holds is not known here.")
    used = turn.snapshot.context_length if turn is not None else 0
    plain.say(f"{used:,} of {limit:,} tokens are used: {room_words(used, limit)}.")


def race(plain: PlainChat, argument: Argument) -> None:
    """The target alone against DFlash on one question, in turns; Ctrl+C ends it."""
    plain.require("speculation")
    lanes = own_lanes(plain.chat.settings, plain.chat.reducer.ready, plain.engine.capabilities.can("draft_by"))
    held = Race(question_of(plain.chat, argument.text), lanes, RACE_RUNS, [plain.engine.send])
    _run(plain, held)
    if held.failure is not None:
        raise SlashError(f"{held.failure.message} {held.failure.hint}")
    if held.result is None:
        raise SlashError("The race was stopped.")
    head, *rows = race_table(held.result).rows
    for name, *cells in rows:
        plain.say(f"{name}: " + ", ".join(f"{what} {cell}" for what, cell in zip(head[1:], cells, strict=True)))
    for line in (*race_remarks(held.result), how(held.result.sides)):
        plain.say(line)
    if held.result.lanes[0].tok_s:
        plain.chat.reducer.take_race(1000 / held.result.lanes[0].tok_s)


def _run(plain: PlainChat, held: Race) -> None:
    """Says what is to come, and when every lane has run once more: figures are medians, so no lane has one before all
    have run as often as they will."""
    plain.say(f"{len(held.lanes)} lanes run in turns, {RACE_RUNS} times each. Ctrl+C stops.")
    events: SimpleQueue[Event] = SimpleQueue()
    plain.diverted = events.put
    told = 0
    try:
        held.start()
        while not held.over:
            try:
                event = events.get()
            except KeyboardInterrupt:
                held.stop()
                continue
            held.apply(event)
            if isinstance(event, EngineError) and event.fatal:
                raise engine_problem(event)
            done, total = held.progress
            if (times := done * RACE_RUNS // total) > told:
                told = times
                plain.say(f"Every lane has run {times} of {RACE_RUNS} times.")
    finally:
        plain.diverted = None


COMMANDS = (
    Command("stats", "figures of the newest answer", statistics),
    Command("steps", "one round of the newest answer, token by token; without a number the last", rounds, "[n]"),
    Command("context", "how full the context is", context),
    Command("race", "race the target alone against DFlash", race, "[question]"),
)
