"""A conversation from disk as something to export: see :mod:`dflash_tui.core.export`."""

from __future__ import annotations

from ..export.document import Document, Heading, Origin, Prose, Section, collect
from .sessions import Conversation, Turn


def conversation_document(conversation: Conversation) -> Document:
    origin = Origin(conversation.target or "", conversation.drafter or "", created=conversation.created)
    sections = [section for turn in conversation.turns for section in _sections(turn)]
    return Document(conversation.name, tuple(sections), origin)


def _sections(turn: Turn) -> tuple[Section, ...]:
    """A turn of which an earlier version of the program kept no rounds is text."""
    events = turn.events()
    return (Heading(turn.question), Prose(turn.answer)) if events is None else collect(events).answers()
