"""A conversation seen from the front end: what was said, the settings, and which commands the engine gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.commands import Adjust, Ask, BlockSize, Command, DraftBy, GenerationSettings, Message, Stop
from engine.events import EngineError, EngineReady, TurnFinished, TurnStarted

from ..sessions.sessions import Conversation
from ..source import Happening, Rewind
from .reducer import Reducer


@dataclass(slots=True)
class Exchange:
    """One question of this chat."""

    turn: int
    question: str
    answered: bool = False
    """Question and answer stand in the conversation; otherwise neither does."""
    answer: str = ""


class Chat:
    """Turns the user's wishes into commands and the engine's events into state. Questions wait for loading models, a
    stop for its question to begin."""

    def __init__(self, settings: GenerationSettings, send: Callable[[Command], None]) -> None:
        self.settings = settings
        self.reducer = Reducer()
        self.messages: list[Message] = []
        self.system: str | None = None
        self.answers: list[str] = []
        """Every answer of this chat, oldest first, for saving code."""
        self.queued: list[str] = []
        """Questions to ask when the answer that runs has ended by itself, oldest first."""
        self._send = send
        self._exchanges: list[Exchange] = []
        self._turns = 0
        self._asked: Ask | None = None
        self._sent = False
        self._stopping = False
        self._ended_well = False

    @property
    def busy(self) -> bool:
        """A question is on its way or being answered, whoever asked it."""
        return self._asked is not None or self.reducer.busy

    @property
    def stopping(self) -> bool:
        return self._stopping

    @property
    def waiting(self) -> bool:
        """A question waits for the models to load."""
        return self._asked is not None and not self._sent

    @property
    def next_turn(self) -> int:
        return self._turns + 1

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """The questions of this chat, oldest first."""
        return self._exchanges

    def next_queued(self) -> str | None:
        """Take the next queued question; None while an answer runs or after one that was stopped or failed."""
        if self.busy or not self.queued or not self._ended_well:
            return None
        return self.queued.pop(0)

    def take_queued(self) -> list[str]:
        """Empty the queue."""
        taken, self.queued = self.queued, []
        return taken

    def ask(self, text: str) -> int:
        """Ask ``text``; returns the turn's number. Must not be called while ``busy``."""
        self._turns += 1
        self.messages.append(Message("user", text))
        self._exchanges.append(Exchange(self._turns, text))
        head = (Message("system", self.system),) if self.system else ()
        self._asked = Ask(self._turns, (*head, *self.messages), self.settings)
        self._sent = self._stopping = self._ended_well = False
        if self.reducer.ready is not None:
            self._send_question()
        return self._turns

    def stop(self) -> bool:
        """End the running turn after its round in flight. False when nothing runs."""
        if self._asked is None:
            return False
        if not self._sent:
            self._asked = None
            self.messages.pop()
            self._exchanges.pop()
            return True
        if not self._stopping:
            self._stopping = True
            self._send(Stop())
        return True

    def adjust(self, *, block_size: BlockSize | None = None, temperature: float | None = None) -> None:
        """Change settings now and for later turns. Raises ``ValueError`` in words for people when out of range."""
        change = Adjust(block_size, temperature)
        self.settings = self.settings.with_changes(change)
        if self._asked is not None and self._sent:
            self._send(change)
        elif self._asked is not None:
            self._asked = replace(self._asked, settings=self.settings)

    def reseed(self, seed: int) -> None:
        """From the next question on. Raises ``ValueError`` when out of range."""
        self.settings = replace(self.settings, seed=seed)

    def think(self, thinking: bool) -> None:
        """From the next question on."""
        self.settings = replace(self.settings, thinking=thinking)

    def speculate(self, speculation: bool, by: DraftBy = "both") -> None:
        """From the next question on."""
        self.settings = replace(self.settings, speculation=speculation, draft_by=by)

    def take_back(self) -> Exchange | None:
        """Undoes the newest question and answer, or None. Not while ``busy``; caches rewind at the next one."""
        if not self._exchanges:
            return None
        exchange = self._exchanges.pop()
        if exchange.answered:
            del self.messages[-2:]
            self.answers.pop()
        return exchange

    def put_back(self, exchange: Exchange) -> None:
        """Undo :meth:`take_back`. Nothing may have been asked since."""
        self._exchanges.append(exchange)
        if exchange.answered:
            self.messages += [Message("user", exchange.question), Message("assistant", exchange.answer)]
            self.answers.append(exchange.answer)

    def new(self) -> None:
        """Forget the conversation. Must not be called while ``busy``."""
        self.messages.clear()
        self._exchanges.clear()
        self.answers.clear()
        self.queued.clear()
        self.reducer.forget()

    def resume(self, conversation: Conversation) -> None:
        """Go on with an older conversation in the place of this one. Must not be called while ``busy``."""
        self.new()
        self._turns = max(self._turns, conversation.last_turn)
        for turn in conversation.turns:
            if turn.answer:
                self.messages += [Message("user", turn.question), Message("assistant", turn.answer)]
                self._exchanges.append(Exchange(turn.number, turn.question, answered=True, answer=turn.answer))
                self.answers.append(turn.answer)
                self.system = turn.system

    def apply(self, event: Happening) -> None:
        if isinstance(event, Rewind):
            self._rewind()
            return
        if isinstance(event, TurnStarted) and (self._asked is None or self._asked.turn != event.turn):
            self._watch(event)
        self.reducer.apply(event)
        if isinstance(event, EngineReady):
            self._send_question()
        elif isinstance(event, TurnStarted) and self._stopping:
            # The engine may have dropped a stop that reached it before the question.
            self._send(Stop())
        elif isinstance(event, TurnFinished):
            self._finish(event)
        elif isinstance(event, EngineError) and event.fatal:
            self._asked, self._stopping = None, False

    def _send_question(self) -> None:
        if self._asked is not None and not self._sent:
            self._sent = True
            self._send(self._asked)

    def _rewind(self) -> None:
        self.new()
        self._turns = 0
        self.reducer = Reducer()

    def _watch(self, event: TurnStarted) -> None:
        """A turn begins that was not asked here: a replay's."""
        self.reducer.show_question(event.question)
        self._turns = max(self._turns, event.turn)
        self._exchanges.append(Exchange(event.turn, event.question))

    def _finish_watched(self, event: TurnFinished) -> None:
        exchange = self._exchanges[-1] if self._exchanges else None
        if exchange is not None and exchange.turn == event.turn and event.text:
            self.messages += [Message("user", exchange.question), Message("assistant", event.text)]
            self.answers.append(event.text)
            exchange.answered, exchange.answer = True, event.text

    def _finish(self, event: TurnFinished) -> None:
        if self._asked is None:
            self._finish_watched(event)
            return
        if self._asked.turn != event.turn:
            return
        self._asked = None
        self._stopping = False
        self._ended_well = event.reason in ("stop", "length")
        if event.text:
            self.messages.append(Message("assistant", event.text))
            self.answers.append(event.text)
            self._exchanges[-1].answered = True
            self._exchanges[-1].answer = event.text
        else:
            # A question without an answer would put two user messages in a row, which no chat template accepts.
            self.messages.pop()
