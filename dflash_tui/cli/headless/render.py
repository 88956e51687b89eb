"""What each output format prints for an event. A renderer returns text to append to the output, often none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dflash_tui.core.figures.statistics import figures_object
from dflash_tui.core.text.fences import find_blocks
from engine.events import EngineReady, Event, Step, TurnFinished, TurnStarted, event_to_dict, shortened

Renderer = Callable[[Event], str]


def render_text(event: Event) -> str:
    """The answer, piece by piece."""
    return event.text() if isinstance(event, Step) else ""


def render_events(event: Event) -> str:
    """Every event as a line of JSON."""
    return _to_json(event_to_dict(event))


def render_last_block(event: Event) -> str:
    """The content of the answer's last code block; nothing when it has none."""
    blocks = find_blocks(event.text) if isinstance(event, TurnFinished) else []
    return blocks[-1].content if blocks else ""


class JsonRenderer:
    """One JSON object at the end: the answer, its statistics, and what produced it."""

    def __init__(self) -> None:
        self._context: dict[str, Any] = {}

    def __call__(self, event: Event) -> str:
        match event:
            case EngineReady():
                self._context.update(target=event.target, drafter=event.drafter, device=event.device, dtype=event.dtype)
                self._context |= {key: getattr(event, key) for key in ("server", "dialect", "times") if event.server}
            case TurnStarted():
                self._context.update(settings=event.settings)
            case TurnFinished():
                answer = {"text": event.text, "thought": event.thought, "reason": event.reason}
                return _to_json({**answer, **shortened(figures_object(event.statistics)), **self._context})
        return ""


def _to_json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
