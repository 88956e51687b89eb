"""A chat in lines, for screen readers and bare terminals: ask a line, answer in whole lines. Ctrl+C stops, Ctrl+D
leaves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from queue import SimpleQueue

from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.conversation.reducer import TurnState, turn_summary
from dflash_tui.core.conversation.slash import Argument, SlashError, parse_slash
from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.figures.tables import GaugeFacts, tables
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import Feature, SourceFactory, Wanted, events_only
from dflash_tui.core.text.harmless import sanitise
from engine.commands import Close, GenerationSettings
from engine.events import EngineError, EngineReady, Event, LoadProgress, Notice, Settled, Step, TurnFinished

from .problems import Problem, engine_problem, show_problem
from .status import describe_models
from .turn import lacking

JOIN_SECONDS = 3.0
PROMPT = "You: "
GREETING = "Ready. Type a question and press Enter; a backslash at the end of a line goes on in the next. /help helps."


class PlainChat:
    """One conversation with one engine, on stdin and stdout."""

    def __init__(
        self,
        source: SourceFactory,
        settings: GenerationSettings,
        log: SessionLog,
        wanted: Wanted,
    ) -> None:
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._log = log
        self._engine = source(events_only(self._take))
        self._chat = Chat(settings, self._engine.send, lambda: self._log)
        self._line = ""
        self._notes: list[str] = []
        self._wanted = wanted
        self._commands: dict[str, tuple[str, Callable[[Argument], None]]] = {
            "help": ("this list", self._help),
            "new": ("start a new chat", self._new),
            "stats": ("figures of the newest answer", self._show_statistics),
            "temp": ("temperature, 0 to 2", self._set_temperature),
            "block": ("block size, auto or 2 to 16", self._set_block),
            "quit": ("leave; so does Ctrl+D", self._leave),
        }

    def run(self) -> ExitCode:
        """Until the user leaves or the engine has ended."""
        self._engine.start()
        try:
            while self._chat.reducer.ready is None:
                self._hear()
            if problem := lacking(self._engine, self._wanted):
                raise problem
            print(GREETING, flush=True)
            while (text := self._read()) is not None:
                self._take_line(text)
        except EOFError:
            pass
        except KeyboardInterrupt:
            return ExitCode.INTERRUPTED
        except Problem as problem:
            show_problem(problem)
            return problem.code
        finally:
            self._engine.send(Close())
            self._engine.join(JOIN_SECONDS)
            self._log.close()
        return ExitCode.OK

    def _take(self, event: Event) -> None:
        """Called by the engine's thread."""
        self._log.record(event)
        self._events.put(event)

    def _read(self) -> str | None:
        """One question. Ctrl+C at the prompt only says how to leave."""
        lines: list[str] = []
        while True:
            try:
                line = input(PROMPT if not lines else "")
            except KeyboardInterrupt:
                print("\nCtrl+D leaves.", flush=True)
                lines.clear()
                continue
            if not line.endswith("\\"):
                return "\n".join([*lines, line])
            lines.append(line[:-1])

    def _take_line(self, text: str) -> None:
        if not text.strip():
            return
        try:
            parsed = parse_slash(text, self._commands)
            if isinstance(parsed, str):
                self._ask(parsed)
            else:
                about, run = self._commands[parsed.name]
                run(Argument(parsed.argument, f"/{parsed.name}: {about}"))
        except (SlashError, ValueError) as error:
            print(error, flush=True)

    def _ask(self, text: str) -> None:
        self._chat.ask(text)
        while self._chat.busy:
            try:
                self._hear()
            except KeyboardInterrupt:
                self._chat.stop()

    def _hear(self) -> None:
        event = self._events.get()
        self._chat.apply(event)
        self._chat.reducer.take_spans()  # the screen's; here the events themselves are read out
        match event:
            case LoadProgress() if event.done == 0:
                print(f"{event.phase} ...", flush=True)
            case EngineReady():
                print(event.banner or describe_models(event), flush=True)
            case Step():
                self._say("".join(token.text for token in event.emitted if token.channel == "answer"))
            case TurnFinished():
                self._say("\n" if self._line else "")
                print(f"({turn_summary(event)})", flush=True)
                self._tell_notices()
            case Settled() if event.note:
                self._notes.append(event.note)
            case Notice():
                self._notes.append(f"{event.message}\n  {event.advice}" if event.advice else event.message)
                if not self._chat.busy:
                    self._tell_notices()
            case EngineError():
                problem = engine_problem(event)
                if event.fatal:
                    raise problem
                show_problem(problem)

    def _tell_notices(self) -> None:
        """What the source wants known, behind the answer."""
        for note in self._notes:
            print(note, flush=True)
        self._notes.clear()

    def _say(self, text: str) -> None:
        """Whole lines only: a reader that speaks while it grows would stumble."""
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            print(sanitise(line), flush=True)

    def _new(self, _: Argument) -> None:
        self._chat.new()
        self._log.close()
        self._log = SessionLog.create(self._log.path.parent)
        if self._chat.reducer.ready is not None:
            self._log.record(self._chat.reducer.ready)

    def _help(self, _: Argument) -> None:
        for name, (about, _run) in self._commands.items():
            print(f"/{name}: {about}", flush=True)

    def _show_statistics(self, _: Argument) -> None:
        turn = self._chat.reducer.turn
        if turn is None:
            raise SlashError("There are no numbers before the first answer.")
        for table in tables(self._facts(turn)):
            print(f"{table.title}:")
            for row in table.rows:
                named = zip(table.head, row, strict=True) if table.head else ()
                print("  " + (", ".join(f"{head} {cell}" for head, cell in named) or ": ".join(row)))
        sys.stdout.flush()

    def _facts(self, turn: TurnState) -> GaugeFacts:
        ready = self._chat.reducer.ready
        times = ready.times if ready else "engine"
        return GaugeFacts(turn.snapshot, plain_ms=self._chat.reducer.plain_ms, times=times)

    def _set_temperature(self, argument: Argument) -> None:
        self._require("temperature")
        self._chat.adjust(temperature=argument.number())

    def _set_block(self, argument: Argument) -> None:
        self._require("block_size")
        self._chat.adjust(block_size=argument.block_size())

    def _require(self, feature: Feature) -> None:
        """Raises ``SlashError`` with the reason where the source lacks this."""
        if reason := self._engine.capabilities.refused.get(feature):
            raise SlashError(reason)

    def _leave(self, _: Argument) -> None:
        raise EOFError
