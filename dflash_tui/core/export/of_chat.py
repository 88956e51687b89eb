"""What a chat says as a document: the path's answers as they were decoded."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from ..conversation.chat import Chat
from ..conversation.slash import SlashError
from ..version import installed_version
from .document import ExportedPage, origin_of


def chat_document(chat: Chat, *, last: bool = False) -> ExportedPage:
    """All answers that were run or told here, or the ``last`` one. Raises ``SlashError`` where there is none."""
    turns = chat.turns[-1:] if last else chat.turns
    sections = [turn for turn in turns if turn.started is not None]
    created = datetime.now().astimezone().isoformat(timespec="seconds")
    origin = origin_of(chat.reducer.ready, created, f"dflash-chat {installed_version()}")
    document = ExportedPage("", tuple(sections), origin)
    if not document.answers:
        raise SlashError("There is no answer to export yet.")
    title = document.answers[0].question.strip().partition("\n")[0] or "dflash-chat"
    return replace(document, title=title)
