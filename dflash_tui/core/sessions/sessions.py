"""Conversations on disk, a JSON line per thing said, which reaches the operating system before the call returns:
SIGKILL loses at most the round in flight of the text, and of what else is known of rounds the latest ones, at most
``FLUSH_SECONDS``. Nothing raises into the engine thread: what a full disk doesn't take waits in memory for the next
line. A file holds
``session`` (version, creation time), then ``model``, ``user`` (with a system prompt), ``started``, ``prefilled``,
``rounds`` (a block of them), ``finished`` and ``error`` lines, among them what each round said of the
latest turn (a text, or a list of answer and thought, without an object around it), between them
``file`` (a content that questions refer to), ``ran`` (a block of that answer), ``speed_up`` (how many times as fast as
its target alone it was), ``title``, ``here``, ``branch``,
``taken_back`` and ``resumed``; other types are skipped.

The file is a tree (:mod:`..conversation.tree`) told in order. A question follows the turn at which the conversation
stands: the one before it in the file, or the one that the latest ``here`` line names, unless its ``parent`` says
otherwise (0 is the beginning). ``branch`` names a turn; ``taken_back`` is a question that was never asked. What earlier
versions took back and put back, with ``taken_back`` and ``put_back``, are versions now."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from engine.commands import Message
from engine.events import Clock, Event, Step

from ..attachments.attachment import Attachment, content_line
from ..conversation.question_context import NOTHING, QuestionContext, messages_of
from ..conversation.tree import Tree
from ..figures.speed_up import SpeedUp
from ..files.places import sessions_directory
from ..files.running import RunResult
from ..platforms import close
from ..records.batches import Batches
from ..records.blocks import ROUNDS
from ..records.round_log import Recorder, RoundLog
from .session_file import FORMAT_VERSION, append, append_line, encode, kept, open_private, open_whole, read_lines
from .session_lines import Shortening, line_for, rounds_line
from .session_reader import SessionReader
from .turn import StoredTurn

SUFFIX = ".jsonl"
FLUSH_SECONDS = 5.0
"""Seconds after which the rounds of a slow answer are written although they fill no block yet."""


class SessionLog:
    """Writes one conversation. Every method may be called from any thread, and none raises ``OSError``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: str | None = None
        """Why the latest lines are not in the file, in words for people; None while all is well. They are written with
        the next that can be."""
        self._unwritten = bytearray()
        self._lock = threading.Lock()
        self._recorder = Recorder()
        """Records the rounds, where nobody else keeps them."""
        self._rounds: RoundLog | None = None
        """The rounds of the turn that is being written."""
        self._num_blocks = 0
        """How many blocks of these rounds the file has."""
        self._batches = Batches("session", FLUSH_SECONDS, self._write_batch)
        self._descriptor: int | None = None
        self._closed = False
        self._contents: set[str] = set()
        """Digests of the files whose content was written."""
        self._shortening = Shortening()
        self._waiting: list[dict[str, Any]] = [{"type": "session", "version": FORMAT_VERSION, "created": _now()}]

    @classmethod
    def create(cls, directory: Path | None = None) -> SessionLog:
        """A new log in ``directory`` (default: :func:`sessions_directory`); the file comes with the first question."""
        stamp = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
        return cls((directory or sessions_directory()) / f"{stamp}-{uuid4().hex[:6]}{SUFFIX}")

    @classmethod
    def resume(cls, path: Path) -> SessionLog:
        """A log that goes on in the file of an older conversation. What a kill or a full disk left of a last line is
        removed. Raises ``OSError`` when the file can't be written, ``BlockingIOError`` when another window has it."""
        log = cls(path)
        log._descriptor = open_whole(path)
        log._waiting = [{"type": "resumed", "time": _now()}]
        return log

    @classmethod
    def nowhere(cls) -> SessionLog:
        """A log that writes nothing, for what is no conversation of the user's."""
        log = cls(Path(os.devnull))
        log._closed, log._waiting = True, []
        return log

    @property
    def started(self) -> bool:
        """Whether the file exists."""
        return self._descriptor is not None

    @property
    def asked(self) -> bool:
        """Whether a question was written since this log was opened, and the file still takes what is said."""
        return self.started and not self._waiting and self.failure is None

    def user(
        self,
        turn: int,
        text: str,
        system: str | None = None,
        *,
        parent: int | None = None,
        once: bool = False,
        beside: QuestionContext = NOTHING,
    ) -> None:
        """Write what the user asked, under which system prompt, and with the first question the head of the file.
        ``parent``: which turn it follows, where that isn't the one at which the conversation stands; ``once``: its
        settings are for this answer alone. What is in files is written once."""
        line = {"type": "user", "turn": turn, "text": text, "time": _now()} | ({"system": system} if system else {})
        line |= ({} if parent is None else {"parent": parent}) | ({"once": True} if once else {}) | beside.to_line()
        with self._lock:
            new = {file.digest: file for file in beside.files if file.digest not in self._contents}
            self._contents.update(new)
            head, self._waiting = self._waiting, []
            self._write([*head, *map(content_line, new.values()), line])

    def ran(self, turn: int, result: RunResult) -> None:
        """Write what came of running a code block of that turn's answer."""
        self._note({"type": "ran", "turn": turn, **result.to_line()})

    def speed_up(self, turn: int, factor: SpeedUp) -> None:
        """Write how many times as fast as its target alone an answer was."""
        self._note({"type": "speed_up", "turn": turn, "times": round(factor.times, 3), "about": factor.about})

    def knows(self, files: Iterable[Attachment]) -> None:
        """The file holds the contents of these already."""
        self._contents.update(file.digest for file in files)

    def title(self, text: str) -> None:
        """Give the conversation a name, now or with its first question."""
        line = {"type": "title", "title": text}
        with self._lock:
            if self._waiting and not self.started:
                self._waiting.append(line)
            else:
                self._write([line])

    def take_back(self, turn: int) -> None:
        """Write that a question was never asked."""
        self._note({"type": "taken_back", "turn": turn})

    def here(self, turn: int) -> None:
        """Write that the conversation stands at this turn now, or at its beginning (0)."""
        self._note({"type": "here", "turn": turn})

    def branch(self, turn: int, name: str) -> None:
        """Write what the user calls the branch that begins at a turn."""
        self._note({"type": "branch", "turn": turn, "name": name})

    def _note(self, line: dict[str, Any]) -> None:
        """Write a line about a turn that is in the file; before the first question there is none to write about."""
        with self._lock:
            if self.started:
                self._write([line])

    def record(self, event: Event, rounds: RoundLog | None = None) -> None:
        """Write what an event adds to the conversation; most add nothing. ``rounds``: the turn's so far, where the
        caller keeps them. Blocks are made on another thread while an answer goes on, and are there at its end."""
        if self._closed:
            return
        rounds = self._recorder.take(event) if rounds is None else rounds
        line = line_for(event, in_turn=rounds is not None)
        if line is None:
            return
        if not isinstance(event, Step):
            self._write_rest()
        if rounds is not None and isinstance(event, Step):
            self._follow(rounds)
        with self._lock:
            if self._waiting:
                self._waiting.append(line)
            else:
                self._write([line])
        if isinstance(event, Step) and rounds is not None:
            self._batches.put(rounds, due=rounds.waiting == ROUNDS)

    def _follow(self, rounds: RoundLog) -> None:
        """Make ``rounds`` the log whose blocks are written from now on."""
        if rounds is not self._rounds:
            with self._lock:
                self._rounds, self._num_blocks = rounds, 0

    def _write_rest(self) -> None:
        """Write all rounds of the turn, also those that fill no block: it has ended, or something else comes next."""
        if self._rounds is not None:
            self._rounds.seal(rest=True)
            with self._lock:
                self._write_blocks()

    def _write_batch(self, logs: Sequence[RoundLog]) -> None:
        """Write the blocks that the latest of ``logs`` has by now. There is an entry for each round that came; where
        these are few, much time has passed, and rounds that fill no block are written too."""
        log = logs[-1]
        log.seal(rest=len(logs) < ROUNDS)
        with self._lock:
            if log is self._rounds:
                self._write_blocks()
        if log.waiting:
            self._batches.put(log)

    def _write_blocks(self) -> None:
        """Writes the blocks of rounds that the file lacks, where there is a file."""
        if self._rounds is None or self._waiting:
            return
        blocks = self._rounds.blocks[self._num_blocks :]
        self._num_blocks += len(blocks)
        if blocks:
            self._write(rounds_line(self._rounds[0].turn, block) for block in blocks)

    def close(self, *, remove: bool = False) -> None:
        """Release the file; later calls write nothing. ``remove`` deletes it first, and may raise ``OSError``."""
        self._write_rest()
        self._batches.close()
        with self._lock:
            if self._unwritten and not remove:
                self._write(())
            self._closed = True
            if self._descriptor is not None:
                descriptor, self._descriptor = self._descriptor, None
                close(descriptor, self.path, remove=remove)

    def _write(self, lines: Iterable[dict[str, Any]]) -> None:
        """Write lines, behind those that could not be written before: a disk that was full may have room again."""
        if self._closed:
            return
        self._unwritten += encode(map(self._shortening.shortened, lines))
        try:
            if self._descriptor is None:
                self._descriptor = open_private(self.path)
            self._descriptor = kept(self.path, self._descriptor)
            append(self._descriptor, self._unwritten)
        except OSError as error:
            self.failure = f"This conversation is not being saved to {self.path}: {error.strerror or error}."
        else:
            self._unwritten, self.failure = bytearray(), None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as its file tells it."""

    path: Path
    created: str
    """ISO 8601, local time with its offset."""
    target: str | None
    """The latest model that took part."""
    drafter: str | None
    tree: Tree[StoredTurn]
    """Everything that was asked, and where the conversation stands."""
    title: str | None = None
    last_turn: int = 0
    """The highest turn number that was ever used, also by a question that was never asked."""
    server: str = ""
    """The address of the latest model's server, if it had one, and what answered there."""
    dialect: str = ""
    times: Clock = "engine"
    damaged: int = 0
    """Lines of its file that could not be read, or that told of turns which aren't there."""
    passed_over: tuple[str, ...] = ()
    """Why conversations in which something was said later could not be gone on with, a sentence each."""

    @property
    def id(self) -> str:
        return self.path.stem

    @property
    def turns(self) -> tuple[StoredTurn, ...]:
        """The turns on the path on which the conversation stands, oldest first."""
        return tuple(self.tree.path)

    @property
    def system(self) -> str | None:
        """The latest system prompt."""
        return self.turns[-1].system if self.turns else None

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the latest answer, in whatever branch, whose settings were not for it alone; empty where none
        were kept."""
        lasting = (turn.started for turn in reversed(tuple(self.tree)) if turn.started and not turn.once)
        return next((started.settings for started in lasting if started.settings), {})

    @property
    def name(self) -> str:
        """Its title, else its first question, on one line."""
        first = next((turn.question for turn in self.tree), "(nothing was asked)")
        return self.title or " ".join(first.split())

    def messages(self) -> tuple[Message, ...]:
        """The conversation as the engine takes it; a turn without an answer is left out."""
        return messages_of(self.turns, None)


def load_session(path: Path) -> Conversation:
    """Reads a conversation back, without a last line cut short. A line that can't be read costs only itself; a turn
    number that comes twice becomes a new one, and what follows a turn that isn't there, follows the one before it.
    ``OSError`` when unreadable, ``ValueError`` when it is no conversation."""
    head, lines, damaged = read_lines(path)
    reading = SessionReader()
    for line in lines:
        try:
            reading.take(line)
        except (KeyError, TypeError, ValueError):
            reading.damaged += 1
    return Conversation(
        path,
        head["created"],
        tree=reading.tree,
        title=reading.title,
        last_turn=reading.last_turn,
        damaged=damaged + reading.damaged,
        **reading.model,
    )


def append_title(path: Path, title: str) -> None:
    """Name a conversation that this program is not writing. Raises ``OSError``."""
    append_line(path, {"type": "title", "title": title})


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")
