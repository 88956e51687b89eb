"""A desk without a screen: a face that writes down what it is told, and a source that answers at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.core.conversation.chat import Queued
from dflash_tui.core.conversation.slash import WaysOut, parse_slash
from dflash_tui.core.conversation.start import Start
from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.desk.commands import COMMANDS
from dflash_tui.core.desk.context_fit import WhenFull
from dflash_tui.core.desk.desk import REFUSALS, Desk, refusal
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.desk.face import Change, MessagePlace, Question, Result, View
from dflash_tui.core.race.race import Race
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import Capabilities, Emit, SourceFactory
from dflash_tui.core.text.fences import CodeBlock
from engine.commands import Ask, Command, GenerationSettings, Stop
from engine.events import (
    EmittedToken,
    EngineError,
    EngineReady,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
)

SLASH = {command.slash: command for command in COMMANDS.values() if command.slash}
ANSWER = "Fine.\n```python one.py\nprint(1)\n```\n"
READY = EngineReady("demo/target", "demo/drafter", "cpu", "float32", 16, 4096, 1.0)


class Source:
    """Answers everything it is asked with the same text; a question waits for :meth:`answer` where it ``holds``."""

    recording = None

    def __init__(
        self,
        emit: Emit,
        answer: str = ANSWER,
        ready: EngineReady = READY,
        error: EngineError | None = None,
        capabilities: Capabilities | None = None,
        late: bool = False,
    ) -> None:
        """``late``: it can't answer before :meth:`come`."""
        self.commands: list[Command] = []
        self.joined = self.holds = False
        self.capabilities = capabilities or Capabilities()
        self.emit, self._answer, self._ready, self._error = emit, answer, ready, error
        self._held: list[Ask] = []
        self._late = late

    @property
    def asked(self) -> list[Ask]:
        return [command for command in self.commands if isinstance(command, Ask)]

    def start(self) -> None:
        if not self._late:
            self.come()

    def come(self) -> None:
        """It can answer now, or fails."""
        self.emit(self._error or self._ready)

    def send(self, command: Command) -> None:
        self.commands.append(command)
        if isinstance(command, Ask):
            self._held.append(command)
            if not self.holds:
                self.answer()
        elif isinstance(command, Stop) and self._held:
            self.answer("stopped")

    def answer(self, reason: Any = "stop") -> None:
        ask = self._held.pop(0)
        self.emit(TurnStarted(ask.turn, 40, 0, ask.settings.to_dict(), ask.messages[-1].content))
        self.emit(PrefillDone(ask.turn, 5.0))
        token = (EmittedToken(7, self._answer, "plain"),)
        self.emit(Step(ask.turn, 0, 0.1, (), 0, token, 1, 1.0, 2.0, 3.0, 41, 16, 0.0))
        self.emit(TurnFinished(ask.turn, reason, self._answer, "", TurnStatistics(40, 0, 1)))

    def join(self, timeout: float | None = None) -> None:
        self.joined = True


@dataclass
class Listener:
    """A face: ``choices`` are the answers to the questions that it will be asked."""

    said: list[str] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)
    choices: list[str | None] = field(default_factory=list)
    changes: list[tuple[Change, int]] = field(default_factory=list)
    shown: list[View] = field(default_factory=list)
    given_back: list[str] = field(default_factory=list)
    reworded: list[int] = field(default_factory=list)
    races: list[Race] = field(default_factory=list)
    work: list[Callable[[], None]] | None = None
    """Where it is a list, what takes its time is done when that is called."""

    @property
    def words(self) -> str:
        return "\n".join(self.said)

    def say(self, text: str, place: MessagePlace = "notice", *, grave: bool = False) -> None:
        self.said.append(text)

    def saved(self, paths: Sequence[Path], remark: str = "", offer: str | None = None) -> None:
        self.kept += paths
        self.said += filter(None, (remark, offer))

    def ask(self, question: Question, then: Callable[[str | None], None]) -> None:
        self.asked.append(question)
        then(self.choices.pop(0))

    def show(self, view: View) -> None:
        self.shown.append(view)
        self.said += view.lines()

    def changed(self, change: Change, number: int = 0) -> None:
        self.changes.append((change, number))

    def give_back(self, questions: Sequence[Queued]) -> None:
        self.given_back += [each.text for each in questions]

    def reword(self, exchange: Turn) -> None:
        self.reworded.append(exchange.number)

    def copy(self, what: str, block: CodeBlock) -> None:
        self.said.append(f"{what}: {block.content}")

    def wait(
        self, work: Callable[[], Result], then: Callable[[Result], None], stop: Callable[[], object] | None = None
    ) -> None:
        if self.work is None:
            then(work())
        else:
            self.work.append(lambda: then(work()))

    def race(self, create: Callable[[], Race]) -> None:
        self.races.append(create())


class Seat:
    """Somebody at a desk."""

    def __init__(
        self, out_dir: Path, factory: SourceFactory, begin: Start, log: SessionLog, when_full: WhenFull
    ) -> None:
        self.face = Listener()
        self.queue = EventQueue(log)
        self.desk = Desk(factory, GenerationSettings(), self.queue, begin, out_dir, self.face, when_full)
        self.desk.source.start()
        self.desk.begin_chat()
        self.hear()

    @property
    def source(self) -> Source:
        source = self.desk.source
        assert isinstance(source, Source)
        return source

    def hear(self) -> None:
        """What the source has said, as a face applies it."""
        while events := self.queue.take(1):
            for event in events:
                self.desk.chat.apply(event)
                if isinstance(event, EngineReady):
                    self.desk.became_ready(event)
                elif isinstance(event, TurnFinished):
                    self.desk.after_turn()
                elif isinstance(event, EngineError) and self.desk.models.falls_back is not None:
                    self.desk.models.failed(self.desk.chat, event.message)

    def type(self, *lines: str) -> str:
        """Questions and commands, one after the other; what was said since."""
        before = len(self.face.said)
        for line in lines:
            try:
                parsed = parse_slash(line, SLASH, WaysOut("", ""))
                if isinstance(parsed, str):
                    self.desk.ask(*self.desk.files.take(line, parsed))
                else:
                    command = SLASH[parsed.name]
                    command.run(self.desk, command.argument(parsed.argument))
            except REFUSALS as error:
                self.face.said.append(refusal(error))
            self.hear()
        return "\n".join(self.face.said[before:])

    def limit(self, tokens: int) -> None:
        """So much the context holds from now on."""
        ready = self.desk.ready
        assert ready is not None
        self.desk.chat.reducer.ready = replace(ready, max_context=tokens)


Sit = Callable[..., Seat]


@pytest.fixture
def sit(tmp_path: Path) -> Sit:
    """A desk on a scripted source, which gets the other options."""

    def sit(
        begin: Start | None = None,
        factory: SourceFactory | None = None,
        log: SessionLog | None = None,
        when_full: WhenFull = "ask",
        **options: Any,
    ) -> Seat:
        make = factory or (lambda emit: Source(emit, **options))
        return Seat(tmp_path / "out", make, begin or Start(), log or SessionLog.create(tmp_path), when_full)

    return sit
