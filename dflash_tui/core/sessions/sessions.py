"""Conversations on disk, a JSON line per thing said or decoded, which reaches the operating system before the call
returns: SIGKILL loses at most the round in flight. Nothing raises into the engine thread: what a full disk doesn't take
waits in memory for the next line. The file is the recording that ``replay`` plays; ``--trace`` writes one more.
FORMAT.md describes it.

The file is a tree (:mod:`..conversation.tree`) told in order. A question follows the turn at which the conversation
stands: the one before it in the file, or the one that the latest ``here`` line names, unless its ``parent`` says
otherwise (0 is the beginning). ``branch`` names a turn; ``taken_back`` is a question that was never asked."""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from engine.events import EngineReady, Event, Step, TurnStarted
from engine.rounds.blocks import columns_of
from engine.rounds.store import Recorder, RoundStore

from ..attachments.attachment import Attachment, content_line, without_files
from ..conversation.question_context import NOTHING, QuestionContext
from ..conversation.tree import Tree
from ..conversation.turn import Turn
from ..figures.speed_up import SpeedUp
from ..files.places import sessions_directory
from ..platforms import close
from ..version import NOT_INSTALLED, PROGRAM, installed_version
from .checked_events import RecordedEvent, one_line
from .lines import Shortening, block_line
from .session_file import (
    FORMAT_VERSION,
    JsonLine,
    append,
    append_line,
    encode,
    open_new,
    open_private,
    open_whole,
    read_lines,
    recreate_if_deleted,
    rewrite_end,
)
from .session_reader import SessionReader

SUFFIX = ".jsonl"


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
        self._flight: tuple[int, RoundStore, int] | None = None
        """Where in the file lines of single rounds begin, which blocks will replace when their turn has ended: the
        place, the turn's rounds, and the number of the first of them. None where there are none, or a disk was full."""
        self._between = bytearray()
        """The lines behind that place that are of no rounds."""
        self._descriptor: int | None = None
        self._closed = False
        self._contents: set[str] = set()
        """Digests of the files whose content was written."""
        self._shortening = Shortening()
        self._asked: int | None = None
        """The number of the latest question."""
        self._waiting: list[JsonLine] = [{"type": "session", "version": FORMAT_VERSION, "created": _now()}]

    @classmethod
    def create(cls, directory: Path | None = None) -> SessionLog:
        """A new log in ``directory`` (default: :func:`sessions_directory`); the file comes with the first question."""
        stamp = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
        return cls((directory or sessions_directory()) / f"{stamp}-{uuid4().hex[:6]}{SUFFIX}")

    @classmethod
    def record_into(cls, path: Path) -> SessionLog:
        """A log in a file that somebody named, which says what computed as well. Raises ``OSError``; an existing file
        is never overwritten."""
        log = cls(path)
        log._descriptor = open_new(path)
        head = {**log._waiting.pop(), **_versions()}  # type: ignore[dict-item]
        log._write([head])
        return log

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
        """A log that writes nothing, for what is no conversation of the user's; theirs are listed beside it."""
        log = cls(sessions_directory() / "nowhere")
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
        context: QuestionContext = NOTHING,
    ) -> None:
        """Write what the user asked, under which system prompt, and with the first question the head of the file.
        ``parent``: which turn it follows, where that isn't the one at which the conversation stands; ``once``: its
        settings are for this answer alone. What is in files is written once."""
        line = {"type": "user", "turn": turn, "text": text, "time": _now()} | ({"system": system} if system else {})
        line |= ({} if parent is None else {"parent": parent}) | ({"once": True} if once else {}) | context.to_line()
        with self._lock:
            self._asked = turn
            new = {file.digest: file for file in context.files if file.digest not in self._contents}
            self._contents.update(new)
            head, self._waiting = self._waiting, []
            self._write([*head, *map(content_line, new.values()), line])

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

    def record(self, event: Event, rounds: RoundStore | None = None) -> None:
        """Write what an event adds to the conversation; progress and notices add nothing. ``rounds``: the turn's so
        far, where the caller keeps them. A turn that nobody asked here, as in a run that is recorded, gets its
        question."""
        if self._closed or not isinstance(event, Step | RecordedEvent):
            return
        rounds = self._recorder.take(event) if rounds is None else rounds
        turn = getattr(event, "turn", None)
        if turn is None and not isinstance(event, EngineReady):
            return
        if turn not in (None, self._asked):
            question, files = without_files(event.question if isinstance(event, TurnStarted) else "")
            self.user(turn, question, context=QuestionContext(files))
        with self._lock:
            if isinstance(event, Step):
                self._write_round(rounds)
                return
            self._land()
            line = self._shortening.line(event, rounds)
            if self._waiting:
                self._waiting.append(line)
            else:
                self._write([line])

    def _write_round(self, rounds: RoundStore) -> None:
        """Write the newest round: a block of one, which anybody can read."""
        first = rounds.held - 1
        start = self._write([columns_of(first, [rounds.newest])], rounds=True)
        if self._flight is None and start is not None:
            self._flight, self._between = (start, rounds, first), bytearray()

    def _land(self) -> None:
        """Put blocks in the place of the lines of rounds: what comes next is no round."""
        if self._flight is None or self._descriptor is None:
            return
        (start, rounds, first), self._flight = self._flight, None
        rounds.seal(rest=True)
        data = encode(map(block_line, rounds.blocks_from(first))) + bytes(self._between)
        with suppress(OSError):  # then the rounds stay as they are
            self._descriptor = recreate_if_deleted(self.path, self._descriptor)
            rewrite_end(self.path, self._descriptor, start, data)

    def close(self, *, remove: bool = False) -> None:
        """Release the file; later calls write nothing. ``remove`` deletes it first, and may raise ``OSError``."""
        with self._lock:
            if not remove:
                self._land()
            if self._unwritten and not remove:
                self._write(())
            self._closed = True
            if self._descriptor is not None:
                descriptor, self._descriptor = self._descriptor, None
                close(descriptor, self.path, remove=remove)

    def _write(self, lines: Iterable[JsonLine], *, rounds: bool = False) -> int | None:
        """Write lines, behind those that could not be written before: a disk that was full may have room again. Returns
        where in the file they begin; None where they could not be written, or others with them. ``rounds``: blocks will
        replace them."""
        if self._closed:
            return None
        before, data = len(self._unwritten), encode(lines)
        self._unwritten += data
        try:
            if self._descriptor is None:
                self._descriptor = open_private(self.path)
            self._descriptor = recreate_if_deleted(self.path, self._descriptor)
            start = append(self._descriptor, self._unwritten)
        except OSError as error:
            self._flight = None
            self.failure = f"This conversation is not being saved to {self.path}: {error.strerror or error}."
            return None
        self._unwritten, self.failure = bytearray(), None
        if not rounds:
            self._between += data
        return None if before else start


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as its file tells it."""

    path: Path
    created: str
    """ISO 8601, local time with its offset."""
    tree: Tree[Turn]
    """Everything that was asked, and where the conversation stands."""
    title: str | None = None
    last_turn: int = 0
    """The highest turn number that was ever used, also by a question that was never asked."""
    ready: EngineReady | None = None
    """The latest model that took part."""
    damaged: int = 0
    """Lines of its file that could not be read, or that told of turns which aren't there."""
    program: str = ""
    """The program that recorded it, with its version, where the file says that."""
    passed_over: tuple[str, ...] = ()
    """Why conversations in which something was said later could not be gone on with, a sentence each."""

    @property
    def target(self) -> str | None:
        return self.ready.target if self.ready else None

    @property
    def drafter(self) -> str | None:
        return self.ready.drafter if self.ready else None

    @property
    def id(self) -> str:
        return self.path.stem

    @property
    def turns(self) -> tuple[Turn, ...]:
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
        except OverflowError as error:
            raise ValueError(str(error)) from None
    reading.end()
    return Conversation(
        path,
        head["created"],
        tree=reading.tree,
        title=reading.title,
        last_turn=reading.last_turn,
        damaged=damaged + reading.damaged,
        ready=reading.ready,
        program=one_line(str(head.get("program", "")).strip()),
    )


def append_title(path: Path, title: str) -> None:
    """Name a conversation that this program is not writing. Raises ``OSError``."""
    append_line(path, {"type": "title", "title": title})


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def _versions() -> dict[str, str]:
    """The versions of this program and of what computes, as a recording's head has them."""
    releases = {name: known for name in (PROGRAM, "torch", "triton", "transformers")
             if (known := installed_version(name)) != NOT_INSTALLED}  # fmt: skip
    own = releases.pop(PROGRAM, "")
    others = ", ".join(
        [f"Python {platform.python_version()}", *(f"{name} {known}" for name, known in releases.items())]
    )
    return {"program": f"{PROGRAM} {own}".strip(), "versions": others}
