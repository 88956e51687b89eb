"""What a conversation's file holds of each event: the event as JSON, without what the lines before it say."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from engine.events import MICROSECONDS, Step, TurnFinished, TurnStarted, event_to_dict, rounded
from engine.rounds.statistics import TurnMeter

from ..records.blocks import Block, block_of, columns_of, decoded
from ..records.numbers import RecordError
from .checked_events import RecordedEvent
from .session_file import JsonLine


class Shortening:
    """Leaves out of a file's events, in their order, what the lines before them say."""

    def __init__(self) -> None:
        self._settings: dict[str, Any] | None = None
        """The settings of the latest turn that began."""
        self._turn: int | None = None
        """The turn that began last, or whose rounds came last."""
        self._texts: dict[str, list[str]] = {}
        """What its rounds say."""
        self._meter = TurnMeter()
        """What they add up to."""

    def add(self, step: Step) -> None:
        """Take note of a round that the file has."""
        if step.turn != self._turn:
            self._begin(step.turn, TurnMeter())
        self._meter.add(step)
        self._texts["text"].append(step.text())
        self._texts["thought"].append(step.text("thought"))

    def _begin(self, turn: int, meter: TurnMeter) -> None:
        self._turn, self._meter, self._texts = turn, meter, {"text": [], "thought": []}

    def line(self, event: RecordedEvent) -> dict[str, Any]:
        data = event_to_dict(event)
        if isinstance(event, TurnStarted):
            del data["question"]
            if event.settings == self._settings:
                del data["settings"]
            self._settings = event.settings
            self._begin(event.turn, TurnMeter(event.num_prompt_tokens, event.num_reused_tokens))
        elif isinstance(event, TurnFinished):
            if event.turn != self._turn:
                self._begin(event.turn, TurnMeter())
            known = {key: "".join(texts) for key, texts in self._texts.items()}
            for key in (key for key, text in known.items() if data[key] == text):
                del data[key]
            if event.statistics == self._meter.statistics():
                del data["statistics"]
        for key in {"milliseconds", "load_seconds"} & data.keys():
            data[key] = rounded(data[key], MICROSECONDS)
        return data


def round_line(first: int, step: Step) -> JsonLine:
    """A round in flight: a block of one, which anybody can read."""
    return columns_of(step.turn, first, [step])


def block_line(block: bytes) -> JsonLine:
    return b64encode(block).decode("ascii")


def block_in(line: list[Any] | str) -> tuple[bytes | None, Block]:
    """The rounds in a line, and the bytes of the block if it is one. Raises :class:`RecordError`."""
    if isinstance(line, list):
        return None, block_of(line)
    try:
        data = b64decode(line, validate=True)
    except ValueError as error:
        raise RecordError("a block of rounds is damaged") from error
    return data, decoded(data)
