"""What a conversation's file holds of each event: the event as JSON, without what the lines before it say."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from engine.events import MICROSECONDS, TurnFinished, TurnStarted, event_to_dict, rounded
from engine.rounds.blocks import Block, block_of, decoded
from engine.rounds.numbers import RecordError
from engine.rounds.store import RoundStore

from .checked_events import RecordedEvent
from .session_file import JsonLine


class Shortening:
    """Leaves out of a file's events, in their order, what the lines before them say."""

    def __init__(self) -> None:
        self._started: TurnStarted | None = None
        """The latest turn that began."""

    def line(self, event: RecordedEvent, rounds: RoundStore) -> dict[str, Any]:
        """``rounds``: the latest turn's."""
        data, started = event_to_dict(event), self._started
        if isinstance(event, TurnStarted):
            del data["question"]
            if started is not None and event.settings == started.settings:
                del data["settings"]
            self._started = event
        elif isinstance(event, TurnFinished):
            begun = started is not None and started.turn == event.turn
            prompt = (started.num_prompt_tokens, started.num_reused_tokens) if started is not None and begun else ()
            for key, known in (("text", rounds.answer), ("thought", rounds.thought)):
                if data[key] == known:
                    del data[key]
            if event.statistics == rounds.count().statistics(*prompt):
                del data["statistics"]
        for key in {"milliseconds", "load_seconds"} & data.keys():
            data[key] = rounded(data[key], MICROSECONDS)
        return data


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
