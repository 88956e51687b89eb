"""A server that was reached, and one question to it: turns its stream into events, from ``TurnStarted`` to
``TurnFinished``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from dflash_tui.core.settings.decoding import SETTINGS
from dflash_tui.core.settings.servers import ServerAddress
from dflash_tui.core.source import Feature
from dflash_tui.core.text.harmless import in_line
from engine.commands import Ask
from engine.events import (
    MICROSECONDS,
    Channel,
    EngineError,
    EngineReady,
    Event,
    FinishReason,
    Notice,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    rounded,
)

from .dialects import CHAT, KINDS, Dialect, ServerFacts, common_body
from .error_texts import quoted
from .failures import (
    BrokenOff,
    NoModel,
    ServerFailure,
    broke_off,
    filtered,
    in_stream,
    no_answer,
    stopped_there,
    unread_alone,
    unreadable,
)
from .names import BROKEN, CUT, FILTERED
from .optional import named, unnamed, without
from .probe import ask_server
from .reading import Chunk, EventReader, finish_reason, several
from .rounds.relayed import relayed
from .rounds.steps import StepMaker, TurnReport
from .thoughts import begins_inside
from .transport.connection import AnswerDeadline, Connection
from .untrusted import sequence

Emit = Callable[[Event], None]
MODELS_NAMED = 6
CHANNELS: tuple[Channel, Channel] = ("answer", "thought")
"""What a turn ends with, in this order."""
HOLD_SECONDS = 0.5
"""How long, at most, the beginning of a server's first answer waits for a mark that makes a thought of it."""
WORTH_A_NOTICE = 16
"""The fewest tokens of an answer from which anything is said about its speculation."""


@dataclass(slots=True)
class ReachedServer:
    """A server that was reached, and what is known of asking it."""

    facts: ServerFacts
    model: str
    dialect: Dialect
    noticed: bool = False
    """Whether the user has been told what there is to say of it."""
    left_out: set[str] = field(default_factory=set)
    """Fields of a question that this server refuses, and that are left out of the next ones."""
    begins_inside: bool | None = None
    """Whether its answers begin inside a thought whose beginning it doesn't send; None before the first answer."""
    stubborn: bool = False
    """Whether it has refused a question without naming a field, and once more without any optional field."""

    @property
    def refused(self) -> Mapping[Feature, str]:
        return self.dialect.refused


async def reach(connection: Connection, address: ServerAddress) -> tuple[ReachedServer, EngineReady]:
    """Finds out what answers at an address and how it is asked. Raises ``ServerFailure``."""
    started = perf_counter()
    facts = await ask_server(connection, address)
    model = address.model or next(iter(facts.models), "")
    dialect = KINDS[facts.dialect](facts)
    ready = facts.ready or EngineReady(
        target=in_line(model) or "a model without a name",
        drafter=facts.drafter,
        device=connection.where,
        dtype=facts.dtype,
        max_block_size=facts.block_size,
        max_context=facts.context,
        load_seconds=0.0,
    )
    spent = rounded(perf_counter() - started, MICROSECONDS)
    times = ready.times if facts.ready else dialect.times
    ready = replace(ready, load_seconds=spent, server=connection.where, dialect=facts.shown, times=times)
    return ReachedServer(facts, model, dialect), ready


class _EnoughSaid(Exception):
    """Raised where an answer goes on behind the limit on its tokens."""


class ServerTurn:
    """One question to a server, whose stream becomes the turn's events."""

    def __init__(self, connection: Connection, server: ReachedServer, ask: Ask, emit: Emit) -> None:
        self._connection, self._server, self._ask, self._emit = connection, server, ask, emit
        self._started = perf_counter()
        self._clock = AnswerDeadline(connection.patience)
        self._steps = StepMaker(ask.turn, ask.settings.temperature)
        self._rounds = server.dialect.rounds(self._steps)
        inside = server.begins_inside or begins_inside(server.facts.template, ask.settings.thinking)
        hold = server.begins_inside is None and not server.dialect.tells_rounds
        self._reader = EventReader(connection.keys.in_text, inside, hold)
        self._holds = hold
        self._release: asyncio.TimerHandle | None = None
        """Lets go of the answer's beginning, which waits for a mark that makes a thought of it."""
        self._texts: dict[Channel, list[str]] = {"answer": [], "thought": [], "control": []}
        """What of the answer and the thought was told so far."""
        self._num_tokens = self._num_letters = 0
        self._finish = ""
        self._relays: bool | None = None
        """Whether the server passes on engine events; None before its first event of either kind."""
        self._moved = False
        self._heard = self._begun = self._prefilled = self._refused = self._failed = self._finished = False

    async def run(self) -> None:
        """Asks and emits the turn's events. Cancelling it stops the answer; what has come stays."""
        failure: ServerFailure | None = None
        stopped = False
        try:
            await self._hear()
        except _EnoughSaid:
            self._finish = "length"
        except ServerFailure as error:
            failure = self._in_words(error)
        except asyncio.CancelledError:
            stopped = True
        finally:
            if self._release is not None:
                self._release.cancel()
        self._end(failure, stopped)

    def _in_words(self, failure: ServerFailure) -> ServerFailure | None:
        """The failure of a stream, with what came and was not understood; None for an answer that is whole, and lacks
        its figures alone."""
        if self._finish and not self._refused:
            return None
        unread = self._example
        if not unread or not isinstance(failure, BrokenOff):
            return failure
        return broke_off(self._connection.where, unread) if self._heard else unreadable(self._connection.where, unread)

    @property
    def _unread(self) -> list[str]:
        """What came and was not understood, without keys."""
        return self._connection.keys.redacted(self._reader.unread)

    @property
    def _example(self) -> str:
        """The first of it; of a page, which comes in lines, all."""
        unread = self._unread
        return "\n".join(unread) if unread and unread[0].startswith("<") else next(iter(unread), "")

    async def _hear(self) -> None:
        """Hears the answer; fields that the server refuses are left out, as long as any can be."""
        server = self._server
        body = {**common_body(self._ask, server.model), **server.dialect.body(self._ask)}
        left_out = set(server.left_out)
        while True:
            asked = without(body, left_out)
            try:
                async with aclosing(self._connection.stream(CHAT, asked, self._clock)) as events:
                    async for event in events:
                        self._take(event)
                        self._leave_out(left_out)
            except ServerFailure as failure:
                fields = [name for name in asked if name not in left_out]
                refused = named(failure.words, fields)
                if not refused and failure.vague and not server.stubborn:
                    refused = unnamed(fields)
                    server.stubborn = not refused
                if self._heard or not refused - left_out:
                    raise
                self._refused = False
                left_out |= refused
            else:
                return

    def _leave_out(self, left_out: set[str]) -> None:
        """Notes, once the server answers, that its questions go without these fields from now on."""
        new = left_out - self._server.left_out
        if new and self._heard:
            self._server.left_out |= new
            names = ", ".join(sorted(new))
            self._emit(Notice(f"{self._connection.where} doesn't take {names}: it is asked without."))

    def _take(self, event: Mapping[str, Any] | str) -> None:
        if isinstance(event, str):
            self._reader.unread.append(event)
            return
        for each in sequence(event.get("dflash")) if self._relays is not False else ():
            if passed := relayed(each, self._ask.turn):
                self._heard = self._relays = True
                self._relay(passed, event.get("error"))
        if self._finished:
            return
        for data in several(event):
            chunk = self._reader.read(data, perf_counter() - self._started)
            if not self._relays:
                self._read(chunk)
            if chunk.error is not None:
                self._refused = True
                begun, keys = self._begun or self._relays is False, self._connection.keys
                raise in_stream(self._connection.where, keys.redacted(chunk.error), begun)
        self._heard = True

    def _read(self, chunk: Chunk) -> None:
        if chunk.spoke:
            self._relays = False
            self._clock.token()
            if self._holds and self._release is None:
                self._release = asyncio.get_running_loop().call_later(HOLD_SECONDS, self.let_go)
        if chunk.finish:
            self._finish = chunk.finish
            self._clock.end()
        self._tell(self._rounds.take(chunk))
        if self._steps.prompt.tokens:
            self._begin()

    def let_go(self) -> None:
        """Tells the answer's beginning, which waits for a mark that makes a thought of it."""
        with suppress(_EnoughSaid):
            self._tell(self._rounds.take(self._reader.released(perf_counter() - self._started)))

    def break_off(self, failure: ServerFailure) -> None:
        """Ends the turn for a fault of ours: what was told of the answer stands."""
        with suppress(Exception):
            self.let_go()
        if not self._finished:
            self._fail(failure)
            answer, thought = ("".join(self._texts[channel]) for channel in CHANNELS)
            self._emit(TurnFinished(self._ask.turn, "error", answer, thought))

    def _relay(self, event: Event, error: Any) -> None:
        """Emits an event that our own server passed on, each at its place in the turn. ``error``: what it says beside
        the event of why the answer isn't whole."""
        if self._finished or (isinstance(event, TurnStarted) and self._begun):
            return
        if isinstance(event, PrefillDone | Step):
            self._begin()
        event = self._connection.keys.redacted(event)
        match event:
            case TurnStarted():
                self._begun = True
            case Step():
                self._clock.token()
                made = self._steps.made
                event = replace(event, time=max(event.time, made[-1].time)) if made else event
                made.append(event)
                self._note(event)
            case EngineError():
                self._failed = True
                event = replace(event, turn=self._ask.turn, fatal=False)
            case TurnFinished():
                self._finished = True
                self._clock.end()
                if event.reason == "stopped":  # nobody here did
                    where, message = self._connection.where, self._connection.keys.redacted(error)
                    self._fail(in_stream(where, message, True) if message else stopped_there(where))
                    event = replace(event, reason="error")
                elif event.reason != "error" and not event.text.strip():
                    self._fail(no_answer(self._connection.where, event.reason, (), (), bool(event.thought.strip())))
            case PrefillDone():
                pass
            case _:
                return
        self._emit(event)

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        settings, prompt = self._ask.settings, self._steps.prompt
        known = (each.name for each in SETTINGS if not each.drafting and each.name != "seed")
        shown: dict[str, Any] = {name: getattr(settings, name) for name in known if name not in self._server.refused}
        question = self._ask.messages[-1].content if self._ask.messages else ""
        self._emit(TurnStarted(self._ask.turn, prompt.tokens, prompt.reused, shown, question))

    def _tell(self, steps: Sequence[Step]) -> None:
        if self._reader.thoughts.unbegun and not self._moved:  # what was told before the mark was no answer
            self._moved = True
            self._texts["thought"] += self._texts["answer"]
            self._texts["answer"].clear()
        for index, step in enumerate(steps):
            if min(self._num_tokens, self._num_letters // 3) >= self._ask.settings.max_new_tokens:
                del self._steps.made[len(self._steps.made) - len(steps) + index :]
                raise _EnoughSaid  # an event holds a token, at least: the server doesn't keep the limit
            self._begin()
            if not self._prefilled:
                self._prefilled = True
                self._emit(PrefillDone(self._ask.turn, step.total_ms))
            self._note(step)
            self._emit(step)

    def _note(self, step: Step) -> None:
        for token in step.emitted:
            self._texts[token.channel].append(token.text)
            self._num_letters += len(token.text.encode())
        self._num_tokens += step.num_emitted

    def _end(self, failure: ServerFailure | None, stopped: bool) -> None:
        if self._finished:
            return
        turn, whole = self._ask.turn, failure is None and not stopped
        rest = self._reader.rest(perf_counter() - self._started, whole and self._finish not in CUT)
        with suppress(_EnoughSaid):
            self._tell(self._rounds.take(rest))
            self._tell(self._rounds.end())
        report = self._rounds.report()
        answer, thought = ("".join(self._texts[channel]) for channel in CHANNELS)
        if whole:
            failure = self._lack(answer, thought)
            known, unbegun = self._server.begins_inside, self._reader.thoughts.unbegun
            self._server.begins_inside = unbegun or (known is True and thought.strip() != answer.strip())
        if failure is not None:
            self._fail(failure)
        facts = report.statistics
        reason: FinishReason = "error" if failure else "stopped"
        if failure is None and whole:
            used = facts.num_prompt_tokens + facts.num_tokens
            reason = finish_reason(self._finish, 0 < self._server.facts.context <= used + 1)
            self._notice(report)
        self._emit(TurnFinished(turn, reason, answer, thought, facts))

    def _lack(self, answer: str, thought: str) -> ServerFailure | None:
        """Why an answer that came to its end is none, or not all of one; None for a whole one. Tool calls, content that
        can't be shown, and what was not understood are named."""
        where, reader, unread = self._connection.where, self._reader, self._unread
        if self._finish in FILTERED:
            return filtered(where, self._finish)
        if self._finish in BROKEN:
            return in_stream(where, self._finish, self._begun)
        if not answer.strip():
            if unread and not (reader.tools or reader.unshown or thought):
                return unread_alone(where, self._example)
            return no_answer(where, self._finish, reader.tools, reader.unshown, bool(thought.strip()))
        called = [f"called the tool {name}" if name else "called a tool" for name in reader.tools]
        called += [f"sent {kind}" for kind in reader.unshown]
        if called:
            self._emit(Notice(f"The model also {' and '.join(map(in_line, called))}, which this chat doesn't show."))
        if unread:
            many = f"{len(unread)} things" if len(unread) > 1 else "something"
            self._emit(Notice(f"{where} also sent {many} that this chat doesn't understand: {quoted(self._example)}"))
        return None

    def _fail(self, failure: ServerFailure) -> None:
        if not self._failed:
            self._failed = True
            self._emit(EngineError("server", str(failure), self._hint(failure), turn=self._ask.turn))

    def _hint(self, failure: ServerFailure) -> str:
        models = self._server.facts.models
        if not isinstance(failure, NoModel) or not models:
            return failure.hint
        named = ", ".join(map(in_line, models[:MODELS_NAMED]))
        more = f" and {len(models) - MODELS_NAMED} more" if len(models) > MODELS_NAMED else ""
        return f"It has {named}{more}."

    def _notice(self, report: TurnReport) -> None:
        server = self._server
        known_off = server.facts.speculates is False
        if server.noticed or (report.statistics.num_tokens < WORTH_A_NOTICE and not known_off):
            return
        server.noticed = True
        if notice := server.dialect.notice(report):
            self._emit(notice)
