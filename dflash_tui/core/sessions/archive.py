"""The conversations on this machine: which there are, finding one, naming it, deleting it, reading it as Markdown."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..attachments.attachment import tokens_of
from ..conversation.turn import Turn
from ..failures import Failure
from ..files.places import sessions_directory
from ..text.harmless import in_line, signed
from .session_file import check_head, records_in
from .session_reader import SessionReader
from .sessions import SUFFIX, Conversation, SessionLog, load_session

PREVIEW = 200
"""Characters of a question that a list keeps."""
_SKIPPED = (b'"', b"[", *(b'{"event":"%s"' % name for name in (b"TurnStarted", b"PrefillDone", b"TurnFinished")),
            *(b'{"type":"%s"' % name for name in (b"file", b"speed_up")))  # fmt: skip
"""What most lines begin with, and what a list has no use for: not worth decoding."""


class ArchiveError(Failure):
    """No such conversation, more than one, or one that can't be used."""


class OpenElsewhere(ArchiveError):
    """Another window holds the conversation."""

    def __init__(self, name: str) -> None:
        super().__init__(f"“{name[:PREVIEW]}” is open in another window.", "Close it there first.")


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A conversation in a list."""

    path: Path
    created: str
    """ISO 8601, local time with its offset."""
    changed: float
    """When something was last said, in seconds since the epoch."""
    title: str | None
    questions: tuple[str, ...]
    """The first characters of each, on one line."""
    target: str | None

    @property
    def id(self) -> str:
        return self.path.stem

    @property
    def name(self) -> str:
        return self.title or (self.questions[0] if self.questions else "(nothing was asked)")

    def matches(self, words: str) -> bool:
        """Whether every one of ``words`` is in its title, its questions, its model or its date."""
        text = " ".join([self.title or "", *self.questions, self.target or "", self.id]).casefold()
        return all(word in text for word in words.casefold().split())


def list_sessions(directory: Path | None = None) -> list[SessionSummary]:
    """Every conversation that can be read, the latest first."""
    return survey(directory)[0]


def survey(directory: Path | None = None) -> tuple[list[SessionSummary], list[str]]:
    """Every conversation that can be read, the latest first, and in a sentence each why others can't."""
    sessions, unreadable = [], []
    for path in sorted((directory or sessions_directory()).glob(f"*{SUFFIX}")):
        try:
            sessions.append(_summarise(path))
        except FileNotFoundError:
            continue  # gone meanwhile, or a link to nowhere
        except OSError as error:
            unreadable.append(f"{path} can't be read: {(error.strerror or str(error)).lower()}.")
        except ValueError as error:
            unreadable.append(str(error))
    return sorted(sessions, key=lambda summary: summary.changed, reverse=True), unreadable


def find_session(words: str, directory: Path | None = None) -> Path:
    """The file of the one conversation whose id is or contains ``words``, or a file's path. :class:`ArchiveError` for
    none or several."""
    folder = directory or sessions_directory()
    if words.endswith(SUFFIX) and Path(words).is_file():
        return Path(words)
    matching = sorted(path for path in folder.glob(f"*{SUFFIX}") if words and words in path.stem)
    exact = [path for path in matching if path.stem == words]
    if len(exact or matching) == 1:
        return (exact or matching)[0]
    hint = "dflash-chat sessions lists them."
    if not matching:
        raise ArchiveError(f"There is no conversation {words!r}.", hint)
    raise ArchiveError(f"{len(matching)} conversations have {words!r} in their id.", f"Write more of it: {hint}")


def _latest_first(directory: Path | None) -> list[Path]:
    """The files of conversations, that in which something was last said first. Raises :class:`ArchiveError` when there
    is none."""
    folder, sessions = directory or sessions_directory(), []
    for path in folder.glob(f"*{SUFFIX}"):
        with suppress(OSError):  # a link to nowhere
            facts = path.stat()
            if facts.st_size:  # what a full disk or a power cut leaves empty holds nothing to go on with
                sessions.append((facts.st_mtime, path))
    if not sessions:
        raise ArchiveError("There is no conversation to continue yet.", "dflash-chat starts one.")
    return [path for _, path in sorted(sessions, reverse=True)]


def open_session(path: Path) -> Conversation:
    """Like :func:`load_session`, with :class:`ArchiveError` for a file that can't be read."""
    hint = "dflash-chat sessions lists those that can be read."
    try:
        return load_session(path)
    except OSError as error:
        raise ArchiveError(f"{path} can't be read: {error.strerror or error}.", hint) from error
    except (ValueError, KeyError, TypeError) as error:
        what = str(error) if isinstance(error, ValueError) else f"{path} is damaged."
        raise ArchiveError(what, hint) from error


def reopen(path: Path) -> tuple[Conversation, SessionLog]:
    """A file's conversation and a log that goes on. :class:`ArchiveError`, :class:`OpenElsewhere` if held."""
    conversation = open_session(path)
    try:
        log = SessionLog.resume(path)
        log.knows(file for turn in conversation.tree for file in turn.attached.files)
        return conversation, log
    except BlockingIOError:
        raise OpenElsewhere(conversation.name) from None
    except OSError as error:
        hint = "dflash-chat sessions show prints it."
        raise ArchiveError(f"{path} can't be written to: {error.strerror or error}.", hint) from error


def reopen_latest(directory: Path | None = None) -> tuple[Conversation, SessionLog]:
    """:func:`reopen` where something was last said and can be read; what could not be is told in
    ``Conversation.passed_over``. One open elsewhere is told, never silently left out."""
    problems: list[ArchiveError] = []
    for path in _latest_first(directory):
        try:
            conversation, log = reopen(path)
        except OpenElsewhere as error:
            if free := next((each for each in list_sessions(directory) if not _held(each.path)), None):
                error.hint = f"Close it there, or go on with “{free.name[:60]}”: dflash-chat --resume {free.id}"
            raise
        except ArchiveError as error:
            problems.append(error)
        else:
            return replace(conversation, passed_over=tuple(map(str, problems))), log
    raise problems[0]


def _held(path: Path) -> bool:
    """Whether the file is locked by another window, or is read-only."""
    try:
        SessionLog.resume(path).close()
    except OSError:
        return True
    return False


def delete_session(path: Path) -> None:
    """Delete a conversation. Raises :class:`ArchiveError`; :class:`OpenElsewhere` while it is open in another
    window."""
    try:
        SessionLog.resume(path).close(remove=True)
    except BlockingIOError:
        raise OpenElsewhere(open_session(path).name) from None
    except OSError as error:
        raise ArchiveError(f"{path} was not deleted: {error.strerror or error}.", "Delete the file by hand.") from error


def conversation_markdown(conversation: Conversation) -> str:
    """The conversation as a Markdown document; answers stand in it as the model wrote them, with signs for what a
    terminal would act on."""
    models = " + ".join(filter(None, (conversation.target, conversation.drafter)))
    facts = " · ".join(filter(None, (conversation.created[:16].replace("T", " "), in_line(models))))
    head = f"# {in_line(conversation.name)}\n\n{facts}\n"
    return signed("\n".join([head, *(_turn_markdown(turn) for turn in conversation.turns)]))


def _turn_markdown(turn: Turn) -> str:
    quoted = "\n".join(f"> {line}".rstrip() for line in turn.question.splitlines())
    answer = turn.answer
    if answer and not answer.endswith("\n"):
        answer += "\n"
    files = "".join(f"> \n> *{in_line(file.name)}, {tokens_of(file)}*\n" for file in turn.attached.files)
    return f"{quoted}\n{files}\n{answer}{_ending(turn)}"


def _ending(turn: Turn) -> str:
    """Why the answer is not whole, if it isn't."""
    if turn.error:
        return f"\n*{in_line(turn.error.message)}*\n"
    if turn.reason == "stop":
        return ""
    return f"\n*({'stopped' if turn.reason == 'stopped' else 'cut short'})*\n"


def _summarise(path: Path) -> SessionSummary:
    """What a list says of a conversation, without lines that can't be read. ``OSError`` when unreadable, ``ValueError``
    when it is no conversation."""
    changed, reading = path.stat().st_mtime, SessionReader()
    with open(path, "rb") as file:
        head = check_head(path, file.readline())
        for raw in file:
            if raw.endswith(b"\n") and not raw.startswith(_SKIPPED):
                for line in records_in(raw)[0]:
                    with suppress(KeyError, TypeError, ValueError):
                        reading.take(line)
    asked = dict.fromkeys((turn.parent, turn.question) for turn in reading.tree)  # versions of an answer have one
    questions = tuple(" ".join(text[:PREVIEW].split()) for _, text in asked)
    target = reading.ready.target if reading.ready else None
    return SessionSummary(path, head["created"], changed, reading.title, questions, target)
