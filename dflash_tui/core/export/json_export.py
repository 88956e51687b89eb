"""JSON: everything an export knows, for programs. ``FORMAT.md`` describes it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from engine.events import shortened

from ..conversation.turn import Turn
from ..figures.statistics import figures_object
from ..rounds.passes import PassRows
from .document import CellTable, ExportedPage, Heading, Plain, Prose, RoundFigure

FORMAT_NAME, FORMAT_VERSION = "dflash-chat export", 1


def to_json(document: ExportedPage) -> str:
    """One object, indented; text is escaped to ASCII, so that no reader or terminal acts on it."""
    content = {
        "format": FORMAT_NAME,
        "version": FORMAT_VERSION,
        "title": document.title,
        "origin": shortened(asdict(document.origin)),
        "sections": [_section(section) for section in document.one_by_one],
    }
    return json.dumps(content, indent=1) + "\n"


def _section(section: Plain) -> dict[str, Any]:
    match section:
        case Heading() | Prose():
            return {"kind": type(section).__name__.lower(), "text": section.text}
        case CellTable():
            return {"kind": "table", "rows": [list(row) for row in section.rows]}
        case RoundFigure():
            return {"kind": "round", "caption": section.caption, "step": shortened(asdict(section.step))}
        case PassRows():
            return {"kind": "passes", "text": section.says, **asdict(section)}
        case Turn():
            return _answer(section)


def _answer(answer: Turn) -> dict[str, Any]:
    return {
        "kind": "answer",
        "label": answer.name,
        "question": answer.question,
        "text": answer.rounds.answer,
        "thought": answer.rounds.thought,
        "reason": answer.ending,
        "error": answer.failure.message if answer.failure is not None else "",
        "settings": dict(answer.settings),
        "prefill_ms": answer.prefill_ms,
        "statistics": figures_object(answer.statistics),
        "speed_up": None if answer.speed_up is None else asdict(answer.speed_up),
        "steps": [shortened(asdict(step)) for step in answer.rounds],
    }
