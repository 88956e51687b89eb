"""The chat in lines: a face for screen readers and bare terminals. Ctrl+C stops, Ctrl+D leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue

from dflash_tui.core.attachments.mentions import mention_of
from dflash_tui.core.conversation.chat import Queued
from dflash_tui.core.conversation.slash import SlashError, WaysOut, parse_slash
from dflash_tui.core.conversation.start import Start
from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.desk.context_fit import WhenFull
from dflash_tui.core.desk.desk import REFUSALS, Desk, refusal
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.desk.face import Change, MessagePlace, Question, Result, View
from dflash_tui.core.desk.lanes import RACE_RUNS
from dflash_tui.core.desk.words import blocks_of, place_of, short, speed_up, summary
from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.files.desktop import copy_locally
from dflash_tui.core.race.race import Race, RaceResult
from dflash_tui.core.race.report import how, race_remarks, race_table
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import SourceFactory
from dflash_tui.core.text.counted import counted
from dflash_tui.core.text.fences import CodeBlock
from engine.commands import GenerationSettings
from engine.events import EngineError, EngineReady, Event, LoadProgress, Notice, Step, TurnFinished

from ..headless.status import describe_models
from ..headless.turn import lacking
from ..problems import Problem, engine_problem, show_problem
from .commands import COMMANDS
from .terminal import BLOCK, Terminal

JOIN_SECONDS = 3.0
WAYS_OUT = WaysOut("/quit leaves; so does Ctrl+D.", "/help lists them all.")
GREETING = (
    "Ready. Type a question and press Enter; a backslash at the end of a line goes on in the next, and a line with"
    f" {BLOCK} begins and ends a question of many lines. /help lists the commands."
)


class PlainChat:
    """The face of a desk that is heard and read out. Between two lines that are typed it waits for the source, so no
    command ever comes while an answer runs."""

    def __init__(
        self,
        source: SourceFactory,
        settings: GenerationSettings,
        log: SessionLog,
        begin: Start,
        out_dir: Path,
        when_full: WhenFull = "stop",
    ) -> None:
        """``when_full``: what to do where nobody can be asked, as ``--when-full`` says it."""
        self._terminal = Terminal()
        self._files = begin.files
        when_full = "ask" if self._terminal.asks_back else when_full
        self.desk = Desk(source, settings, EventQueue(log), begin, out_dir, self, when_full)
        self.chat = self.desk.chat
        self._line = ""
        self._notes: list[str] = []
        self._code = ExitCode.OK
        """The exit code of what went wrong first, where nobody sits at the terminal."""

    def run(self) -> ExitCode:
        """Chat until the user leaves or the engine has ended; returns the exit code."""
        self._terminal.remember(self.desk.begin.questions.entries)
        self.desk.source.start()
        try:
            self._begin()
            while True:
                self.take(self._terminal.question())
        except EOFError:
            pass
        except KeyboardInterrupt:
            return ExitCode.INTERRUPTED
        except Problem as problem:
            show_problem(problem)
            return problem.code
        finally:
            self.desk.leave()
            self.desk.source.join(JOIN_SECONDS)
            self.desk.queue.log.close()
        return self._code

    def _begin(self) -> None:
        begin = self.desk.begin
        self.desk.begin_chat()
        self._follow()
        if problem := lacking(self.desk.source, begin.wanted):
            raise problem
        self.say(GREETING)
        if begin.files:
            self.say(f"These go with the first question: {', '.join(begin.files)}")
        if begin.choose:
            self.take("/sessions")

    def take(self, text: str) -> None:
        """Ask a question or do a command, and read out what comes of it."""
        if not text.strip():
            return
        try:
            parsed = parse_slash(text, COMMANDS, WAYS_OUT)
            if isinstance(parsed, str):
                self._ask(text, parsed)
            else:
                command = COMMANDS[parsed.name]
                command.run(self.desk, command.argument(parsed.argument))
        except REFUSALS as error:
            self.say(refusal(error), grave=True)
        self._follow()

    def _ask(self, typed: str, text: str) -> None:
        named = "".join(f"{mention_of(path)} " for path in self._files)
        self._files = ()
        self.desk.begin.questions.add(typed)
        question, files = self.desk.files.take(f"{named}{text}", f"{named}{text}")
        for file in files:
            self.say(f"(with {file.name}, {counted(file.num_lines, 'line')})")
        self.desk.ask(question, files)

    # What the source says

    def _follow(self) -> None:
        """Read out what comes, until something can be asked. :class:`Problem` where loading fails."""
        while self.chat.busy or self.desk.ready is None:
            try:
                self._hear()
            except KeyboardInterrupt:
                if not self.desk.stop():
                    raise

    def _hear(self) -> None:
        """Wait for the next event, and read out what comes of it."""
        event = self.desk.queue.wait()
        self.chat.apply(event)
        self.chat.reducer.take_spans()  # the screen's; here the events themselves are read out
        match event:
            case LoadProgress() if event.done == 0:
                self.say(f"{event.phase} ...")
            case EngineReady():
                self.say(event.banner or describe_models(event))
                self.desk.became_ready(event)
            case Step():
                self.read_out(event.text())
            case TurnFinished():
                self.read_out("\n" if self._line else "")
                self._conclude(event)
            case Notice():
                self._notes.append(f"{event.message}\n  {event.advice}" if event.advice else event.message)
                if event.ahead or not self.chat.busy:
                    self._tell_notes()
            case EngineError():
                self._tell_error(event)

    def _tell_error(self, event: EngineError) -> None:
        problem = engine_problem(event)
        if event.fatal and self.desk.models.falls_back is None:
            raise problem
        show_problem(problem)
        if event.fatal:
            self.desk.models.failed(self.chat)
        else:
            self._fail(problem.code)

    def _conclude(self, event: TurnFinished) -> None:
        """Say what there is to say behind an answer: figures, versions, code, notes."""
        version = place_of(self.chat, event.turn) if event.turn in self.chat.tree else ""
        gain = speed_up(self.chat, event)
        if parts := [sentence for sentence in (summary(event), gain, version) if sentence]:
            self.say(f"({', '.join(parts)})")
        if event.thought.strip():
            self.say("(It thought first; /thought reads that out.)")
        if code := blocks_of(event.text):
            self.say(code)
        self._tell_notes()
        self.desk.after_turn()
        failure = self.desk.queue.log.failure
        if failure and failure not in self._notes:
            self.say(failure)

    def _tell_notes(self) -> None:
        """Print the notes of the source that have not been printed."""
        for note in self._notes:
            self.say(note)
        self._notes.clear()

    def read_out(self, text: str) -> None:
        """Say the whole lines of an answer that has grown: a reader that speaks half of one would stumble."""
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            self.say(line)

    def _fail(self, code: ExitCode) -> None:
        """Keep the exit code of what went wrong, for a script; who sits at the terminal has heard it."""
        if not self._terminal.asks_back and self._code is ExitCode.OK:
            self._code = code

    # As a face

    def say(self, text: str, where: MessagePlace = "notice", *, grave: bool = False) -> None:
        self._terminal.say(text)
        if grave:
            self._fail(ExitCode.USAGE)

    def saved(self, paths: Sequence[Path], remark: str = "", offer: str | None = None) -> None:
        for path in paths:
            self.say(f"Saved to {path}{f'. {remark}' if remark and path == paths[-1] else ''}")

    def ask(self, question: Question, then: Callable[[str | None], None]) -> None:
        if not self._terminal.asks_back:
            raise SlashError(f"{question.otherwise} Nobody is there to agree.")
        if question.detail:
            self.say(question.detail)
        # Not before the answer: a reader of lines on a bare terminal shows only its end there.
        self.say(question.text)
        *others, last = (way.value for way in sorted(question.ways, key=lambda way: way.value == "no"))
        if not question.is_consent:
            for way in question.ways:
                self.say(f"{way.value}: {way.words}")
        typed = self._terminal.line(f"{', '.join(others)} or {last}: ").casefold()
        chosen = next((way.value for way in question.ways if typed in (way.key, way.value)), None)
        if question.otherwise and chosen in (None, "no"):
            self.say(question.otherwise)
        then(chosen)

    def show(self, view: View) -> None:
        for line in view.lines():
            self.say(line)

    def changed(self, change: Change, number: int = 0) -> None:
        if change == "new":
            self.say("A new chat.")
        elif change == "resumed" and (conversation := self.desk.resumed) is not None:
            questions = counted(len(conversation.tree), "question")
            self.say(f"Going on with “{conversation.name}”, {questions}. /show reads it out.")
        elif change == "path":
            self._say_where()
        elif change == "withdrawn":
            self.say("The question was not asked.")

    def _say_where(self) -> None:
        newest = self.chat.newest
        if newest is None:
            self.say("You are at the beginning; the next question is a new first one.")
            return
        version = place_of(self.chat, newest.number)
        self.say(
            f"You are behind question {newest.number}{', ' + version if version else ''}: {short(newest.question)}"
        )
        self.say("/show reads the conversation out up to here.")

    def give_back(self, questions: Sequence[Queued]) -> None:
        for question in questions:
            self.say(f"Not asked: {question.text}")

    def reword(self, exchange: Turn) -> None:
        if not self._terminal.asks_back:
            raise SlashError("Say the new words too: /edit 2 What is a drafter?")
        self.say(f"Question {exchange.number} is: {exchange.question}")
        if text := self._terminal.line("Instead (Enter alone leaves it): "):
            question, files = self.desk.files.take(text, text)
            self.desk.ask(question, files, version_of=exchange.number)

    def copy(self, what: str, block: CodeBlock) -> None:
        """Copy by this machine's tools alone: the terminal's own way is a control sequence, which a bare one would
        print."""
        if copy_locally(block.content) is None:
            raise SlashError("There is no clipboard here that a program can reach. /save keeps code in a file.")
        self.say(f"{what} is in the clipboard.")

    def wait(
        self, work: Callable[[], Result], then: Callable[[Result], None], stop: Callable[[], object] | None = None
    ) -> None:
        if stop is not None:
            self.say("Ctrl+C stops it.")
        while True:
            try:
                result = work()
            except KeyboardInterrupt:
                if stop is None:
                    raise
                stop()
            else:
                break
        then(result)

    def race(self, create: Callable[[], Race]) -> None:
        """Says what is to come, and when every lane has run once more: figures are medians, so no lane has one before
        all have run as often as they will."""
        held = create()
        events = self._divert()
        self.say(f"{len(held.lanes)} lanes run in turns, {RACE_RUNS} times each. Ctrl+C stops.")
        num_printed = 0
        try:
            held.start()
            while not held.over:
                event = self._next(events, held.stop)
                held.apply(event)
                if isinstance(event, EngineError) and event.fatal:
                    raise engine_problem(event)
                done, total = held.progress
                if (times := done * RACE_RUNS // total) > num_printed:
                    num_printed = times
                    self.say(f"Every lane has run {times} of {RACE_RUNS} times.")
        finally:
            self.desk.queue.diverted = None
        if held.failure is not None:
            raise SlashError(f"{held.failure.message} {held.failure.hint}")
        if held.result is None:
            raise SlashError("The race was stopped.")
        self._tell_race(held.result)

    def _tell_race(self, result: RaceResult) -> None:
        head, *rows = race_table(result).rows
        for name, *cells in rows:
            self.say(f"{name}: " + ", ".join(f"{what} {cell}" for what, cell in zip(head[1:], cells, strict=True)))
        for line in (*race_remarks(result), how(result.sides)):
            self.say(line)

    def _divert(self) -> SimpleQueue[Event]:
        """Have the source's events put into a queue of their own, while it does what is no part of the conversation."""
        events: SimpleQueue[Event] = SimpleQueue()
        self.desk.queue.diverted = events.put
        return events

    @staticmethod
    def _next(events: SimpleQueue[Event], stop: Callable[[], object]) -> Event:
        """The next of these events, whenever it comes; Ctrl+C calls ``stop``."""
        while True:
            try:
                return events.get()
            except KeyboardInterrupt:
                stop()
