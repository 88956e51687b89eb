"""The files that a question mentions: read as Enter finds them, or looked at while it is typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..attachments.attachment import Attachment
from ..attachments.attachment_reader import AttachmentError, AttachmentReader, NoSuchFile
from ..attachments.mentions import Mentioned, Read, as_asked, attach
from ..conversation.chat import Chat, Queued
from ..conversation.slash import SlashError
from .context_fit import ContextFit

HOW_TO_GO_ON = "Look at the path; Tab completes it behind @."


class QuestionFiles:
    """Reads the files that questions mention; a file that has not changed is read once."""

    def __init__(self, chat: Chat, fit: ContextFit, say: Callable[[str], None]) -> None:
        self._chat, self._fit, self._say = chat, fit, say
        self._reader = AttachmentReader(fit.ruler.text)
        self._given_back: dict[str, Queued] = {}
        """Questions that were not asked, by their text: asked after all, each takes its files as they were."""

    def give_back(self, questions: Sequence[Queued]) -> None:
        """Keep the files of questions that the user gets back."""
        self._given_back = {queued.text: queued for queued in questions}

    def look(self, typed: str) -> tuple[Attachment, ...]:
        """What ``typed`` mentions, with its tokens counted. Raises ``AttachmentError``. May be called on any thread."""
        return self._read(typed, self._reader.read)[0]

    def take(self, typed: str, text: str) -> tuple[str, tuple[Attachment, ...]]:
        """The question as it was meant, and its files. ``typed``: with pastes folded, whose words are not the user's
        own. Raises ``SlashError`` for a file that can't go with it."""
        if (queued := self._given_back.pop(text, None)) is not None:
            return text, queued.files
        if "@" not in typed:
            return text, ()
        known = {file.name: file for exchange in self._chat.tree.path for file in exchange.attached.files}

        def read(path: Path, name: str) -> Attachment:
            try:
                return self._reader.read(path, name)
            except AttachmentError:
                if name in known:  # asked again, and the file has gone: as it was then
                    return known[name]
                raise

        try:
            files, attached = self._read(typed, read)
        except AttachmentError as error:
            raise SlashError(f"{problem_words(error)} A plain @ is written @@.") from None
        if attached.strange:
            self._say(f"There is no file {attached.strange[0]}: what you wrote went as it stands.")
        return as_asked(text), files

    def _read(self, typed: str, read: Read) -> tuple[tuple[Attachment, ...], Mentioned]:
        attached = attach(typed, read)
        return self._reader.counted(attached.files, self._fit.limit), attached


def problem_words(error: AttachmentError) -> str:
    """What is wrong with a file, and what the prompt can do about it."""
    return f"{error} {HOW_TO_GO_ON if isinstance(error, NoSuchFile) else error.hint}"
