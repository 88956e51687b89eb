"""The chat in lines: what it reads, what it says, and how a question gets its answer. Ctrl+C stops, Ctrl+D leaves.

A line is a question; a backslash at its end goes on in the next line, and a line that begins with three quotation marks
opens a question of many lines, which three more close. Where stdin is no terminal every line of it is one, too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from dflash_tui.core.attachments.mentions import mention_of
from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.conversation.slash import SlashError, WaysOut, parse_slash
from dflash_tui.core.conversation.start import Start
from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.failures import Failure
from dflash_tui.core.sessions.sessions import Conversation, SessionLog
from dflash_tui.core.source import Feature, SourceFactory
from dflash_tui.core.text.harmless import sanitise
from engine.commands import Ask, Close, GenerationSettings, Stop
from engine.errors import EngineFailure
from engine.events import EngineError, EngineReady, Event, LoadProgress, Notice, Settled, Step, TurnFinished

from ..problems import Problem, engine_problem, show_problem
from ..status import describe_models
from ..streams import silence_stdout
from ..turn import lacking
from .asking import Asking
from .command import Command
from .keeping import COMMANDS as KEEPING
from .sessions import COMMANDS as SESSIONS
from .setting import COMMANDS as SETTING
from .showing import COMMANDS as SHOWING
from .switching import Switching
from .talking import COMMANDS as TALKING
from .words import blocks_of, place_of, summary

COMMANDS: dict[str, Command] = {
    command.name: command for table in (TALKING, SETTING, SESSIONS, KEEPING, SHOWING) for command in table
}
"""By name, in the order of ``/help``."""
JOIN_SECONDS = 3.0
WAYS_OUT = WaysOut("/quit leaves; so does Ctrl+D.", "/help lists them all.")
PROMPT = "You: "
BLOCK = '"""'
GREETING = (
    "Ready. Type a question and press Enter; a backslash at the end of a line goes on in the next, and a line with"
    f" {BLOCK} begins and ends a question of many lines. /help lists the commands."
)


class PlainChat:
    """One conversation with one engine, on stdin and stdout."""

    def __init__(
        self,
        source: SourceFactory,
        settings: GenerationSettings,
        log: SessionLog,
        begin: Start,
        out_dir: Path,
        when_full: str = "stop",
        system: str | None = None,
    ) -> None:
        """``when_full``: what to do where nobody can be asked, as ``--when-full`` says it; ``system``: the system
        prompt that was asked for."""
        self.begin, self.out_dir = begin, out_dir
        self.log = log
        self.diverted: Callable[[Event], None] | None = None
        """Gets the events while they are no part of the conversation."""
        self.switching = Switching(self, source)
        self.engine = self.switching.made(source)
        self.commands = COMMANDS
        self.chat = Chat(settings, lambda command: self.engine.send(command), lambda: self.log)
        self.at_start = settings
        self.preset = begin.preset
        self.asks_back = sys.stdin.isatty()
        """Somebody sits there."""
        self.asking = Asking(self, when_full)
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._line = ""
        self._notes: list[str] = []
        self._code = ExitCode.OK
        """What went wrong first where nobody sits there."""
        self._system = system or (begin.preset.system if begin.preset else None)

    def run(self) -> ExitCode:
        """Until the user leaves or the engine has ended."""
        self._remember_lines()
        self.engine.start()
        try:
            self._begin()
            while (text := self._read()) is not None:
                self.take(text)
        except EOFError:
            pass
        except KeyboardInterrupt:
            return ExitCode.INTERRUPTED
        except BrokenPipeError:  # which click would make into exit code 1
            silence_stdout()
            return ExitCode.BROKEN_PIPE
        except Problem as problem:
            show_problem(problem)
            return problem.code
        finally:
            self.engine.send(Close())
            self.engine.join(JOIN_SECONDS)
            self.log.close()
        return self._code

    def _begin(self) -> None:
        if self.begin.conversation is not None:
            self.show_resumed(self.begin.conversation)
        self.chat.system = self._system or self.chat.system
        self.wait_until_ready()
        if problem := lacking(self.engine, self.begin.wanted):
            raise problem
        self.say(GREETING)
        if self.begin.files:
            self.say(f"These go with the first question: {', '.join(self.begin.files)}")
        if self.begin.choose:
            self.take("/sessions")

    def wait_until_ready(self) -> None:
        """Say how loading goes on. :class:`Problem` where it fails."""
        while self.chat.reducer.ready is None:
            self.hear()

    # Reading

    def _read(self) -> str | None:
        """One question. Ctrl+C at the prompt only says how to leave."""
        lines: list[str] = []
        in_block = False
        while True:
            try:
                line = self._input("" if lines or in_block else PROMPT)
            except KeyboardInterrupt:
                self.say("\nCtrl+D leaves.")
                lines.clear()
                in_block = False
                continue
            except EOFError:
                if not lines:
                    raise
                return "\n".join(lines)
            if in_block or line.startswith(BLOCK):
                inside = line if in_block else line.removeprefix(BLOCK)
                if inside.rstrip().endswith(BLOCK) and (in_block or inside.strip()):
                    return "\n".join([*lines, inside.rstrip().removesuffix(BLOCK)]).strip("\n")
                lines.append(inside)
                in_block = True
            elif line.endswith("\\"):
                lines.append(line[:-1])
            else:
                return "\n".join([*lines, line])

    def _input(self, prompt: str) -> str:
        """A line. Where nobody types it is said again: what is printed reads as a conversation all the same."""
        if self.asks_back:
            return input(prompt)
        try:
            line = input()
        except UnicodeDecodeError as error:
            raise Problem(
                f"What was piped in is not UTF-8 text (byte {error.start}).",
                "Convert it first, for example with iconv.",
            ) from error
        if line.strip():
            self.say(f"{prompt}{line}")
        return line

    def _remember_lines(self) -> None:
        """Arrow keys bring earlier questions back, where the terminal has a reader of lines."""
        if self.asks_back:
            with suppress(ImportError):
                import readline

                for text in self.begin.questions.entries:
                    if "\n" not in text:
                        readline.add_history(text)

    def confirm(self, question: str, otherwise: str) -> None:
        """Go on if the user agrees. Raises ``SlashError`` with what is left undone, also where nobody can be asked."""
        if not self.asks_back:
            raise SlashError(f"{otherwise} Nobody is there to agree.")
        self.say(question)  # not before the answer: a reader of lines on a bare terminal shows only its end there
        if self.choose("yes or no: ") not in ("y", "yes"):
            raise SlashError(otherwise)

    def choose(self, question: str) -> str:
        """A word of the user's; empty for none."""
        return self.line(question).casefold()

    def line(self, question: str) -> str:
        """What the user answers; empty for nothing."""
        try:
            return input(sanitise(question)).strip()
        except (EOFError, KeyboardInterrupt):
            self.say("")
            return ""

    # What was typed

    def take(self, text: str) -> None:
        """A question or a command."""
        if not text.strip():
            return
        try:
            parsed = parse_slash(text, COMMANDS, WAYS_OUT)
            if isinstance(parsed, str):
                files, self.begin = self.begin.files, replace(self.begin, files=())
                named = "".join(f"{mention_of(path)} " for path in files)
                self.begin.questions.add(text)
                self.asking.ask(f"{named}{parsed}")
            else:
                command = COMMANDS[parsed.name]
                command.run(self, command.argument(parsed.argument))
        except Failure as failure:
            self._refuse(f"{failure}\n{failure.hint}" if failure.hint else str(failure))
        except EngineFailure as failure:
            self._refuse(str(failure))
        except (SlashError, ValueError) as error:
            self._refuse(str(error))

    def _refuse(self, why: str) -> None:
        self.say(why)
        self._fail(ExitCode.USAGE)

    def _fail(self, code: ExitCode) -> None:
        """A script has to hear of it; who sits there has heard."""
        if not self.asks_back and self._code is ExitCode.OK:
            self._code = code

    def require(self, feature: Feature) -> None:
        """Raises ``SlashError`` with the reason where the source lacks this."""
        if reason := self.engine.capabilities.refused.get(feature):
            raise SlashError(reason)

    # What the source says

    def take_event(self, event: Event) -> None:
        """Called by the engine's thread."""
        if self.diverted is not None:
            self.diverted(event)
            return
        self.log.record(event)
        self._events.put(event)

    def follow(self) -> None:
        """Read the answer out as it comes."""
        while self.chat.busy:
            try:
                self.hear()
            except KeyboardInterrupt:
                self.chat.stop()

    def hear(self) -> None:
        """The next event, whenever it comes."""
        event = self._events.get()
        self.chat.apply(event)
        self.chat.reducer.take_spans()  # the screen's; here the events themselves are read out
        match event:
            case LoadProgress() if event.done == 0:
                self.say(f"{event.phase} ...")
            case EngineReady():
                self.say(event.banner or describe_models(event))
            case Step():
                self._read_out("".join(token.text for token in event.emitted if token.channel == "answer"))
            case TurnFinished():
                self._read_out("\n" if self._line else "")
                self._conclude(event)
            case Settled() if event.note:
                self._notes.append(event.note)
            case Notice():
                self._notes.append(f"{event.message}\n  {event.advice}" if event.advice else event.message)
                if not self.chat.busy:
                    self._tell_notes()
            case EngineError():
                problem = engine_problem(event)
                if event.fatal:
                    raise problem
                show_problem(problem)
                self._fail(problem.code)

    def _conclude(self, event: TurnFinished) -> None:
        """What there is to say behind an answer."""
        place = place_of(self.chat, event.turn) if event.turn in self.chat.tree else ""
        self.say(f"({', '.join(filter(None, (summary(event), place)))})")
        if event.thought.strip():
            self.say("(It thought first; /thought reads that out.)")
        if code := blocks_of(event.text):
            self.say(code)
        self._tell_notes()
        self.asking.after_turn()
        if self.log.failure and self.log.failure not in self._notes:
            self.say(self.log.failure)

    def _tell_notes(self) -> None:
        """What the source wants known, behind the answer."""
        for note in self._notes:
            self.say(note)
        self._notes.clear()

    def aside(self, ask: Ask) -> Iterator[Event]:
        """The events of a question that is no part of the conversation. Ctrl+C stops it."""
        events: SimpleQueue[Event] = SimpleQueue()
        self.diverted = events.put
        try:
            self.engine.send(ask)
            while True:
                try:
                    event = events.get()
                except KeyboardInterrupt:
                    self.engine.send(Stop())
                    continue
                yield event
                if isinstance(event, EngineError) and event.fatal:
                    raise engine_problem(event)
                if isinstance(event, TurnFinished):
                    return
        finally:
            self.diverted = None

    # Saying

    def say(self, text: str) -> None:
        """Lines of the program's own."""
        encoding = sys.stdout.encoding or "utf-8"
        print(sanitise(text).encode(encoding, "replace").decode(encoding), flush=True)

    def _read_out(self, text: str) -> None:
        """Whole lines only: a reader that speaks while it grows would stumble."""
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            self.say(line)

    # The conversation

    def renew(self, log: SessionLog | None = None) -> None:
        """Another record for another conversation."""
        self.log.close()
        self.log = log or SessionLog.create(self.log.path.parent)
        if self.chat.reducer.ready is not None:
            self.log.record(self.chat.reducer.ready)

    def show_resumed(self, conversation: Conversation) -> None:
        """Go on with an older conversation; its record is open already."""
        self.chat.resume(conversation)
        self.say(f"Going on with “{conversation.name}”, {len(conversation.tree)} questions. /show reads it out.")
        if conversation.damaged:
            self.say(f"{conversation.damaged} lines of its file could not be read; the rest is here.")
