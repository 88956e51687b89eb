"""What the file of a conversation holds of each event: text that anyone can read, and rounds in blocks."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from typing import Any

from engine.events import (
    Channel,
    EmittedToken,
    EngineError,
    EngineReady,
    Event,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    shortened,
)

from ..records.blocks import decoded
from ..records.numbers import RecordError
from .session_file import Line


@dataclass(frozen=True, slots=True)
class StepText:
    """What one round added to the answer and to the thinking."""

    answer: str
    thought: str = ""


def line_for(event: Event, in_turn: bool) -> dict[str, Any] | None:
    """The line that an event adds to a conversation's file; None where it adds nothing. ``in_turn``: the event belongs
    to a turn that has begun, whose rounds then have a line each."""
    match event:
        case EngineReady():
            server = shortened({"server": event.server, "dialect": event.dialect, "times": event.times})
            models = {"target": event.target, "drafter": event.drafter, "device": event.device}
            return {"type": "model", **models, **server}
        case TurnStarted():
            counts = {"prompt_tokens": event.num_prompt_tokens, "reused_tokens": event.num_reused_tokens}
            return {"type": "started", "turn": event.turn, **counts, "settings": event.settings}
        case PrefillDone():
            return {"type": "prefilled", "turn": event.turn, "ms": event.milliseconds}
        case Step():
            answer, thought = _joined(event, "answer"), _joined(event, "thought")
            if not (answer or thought or in_turn):
                return None
            return {"type": "text", "turn": event.turn, "answer": answer} | ({"thought": thought} if thought else {})
        case TurnFinished():
            figures = list(asdict(event.statistics).values())
            return {"type": "finished", "turn": event.turn, "reason": event.reason, "statistics": figures}
        case EngineError():
            return {"type": "error", "turn": event.turn, "message": event.message, "hint": event.hint}
        case _:
            return None


class Shortening:
    """Leaves out of a file's lines, in their order, what those before them say."""

    def __init__(self) -> None:
        self._latest: int | None = None
        """The turn that was asked or begun last: what its rounds say need not name it."""
        self._settings: dict[str, Any] | None = None
        """The settings of the latest turn that began."""

    def shortened(self, line: dict[str, Any]) -> Line:
        match line["type"]:
            case "text" if line["turn"] == self._latest:
                return [line["answer"], line["thought"]] if "thought" in line else str(line["answer"])
            case "user":
                self._latest = line["turn"]
            case "started":
                before, self._latest, self._settings = self._settings, line["turn"], line["settings"]
                if before == self._settings:
                    del line["settings"]
        return line


def rounds_line(turn: int, block: bytes) -> dict[str, Any]:
    """Some rounds of a turn. Programs that don't know such lines show the text alone."""
    return {"type": "rounds", "turn": turn, "block": b64encode(block).decode("ascii")}


def block_in(line: dict[str, Any]) -> bytes:
    """The block that a line of ``rounds_line`` holds. Raises ``ValueError`` for a damaged line."""
    return b64decode(line["block"], validate=True)


def step_text(line: dict[str, Any]) -> StepText:
    """What a line of type ``text`` tells of its round."""
    return StepText(line["answer"], line.get("thought", ""))


def steps_in(blocks: Iterable[bytes], rounds: Sequence[StepText]) -> tuple[Step, ...]:
    """The steps of one turn, of which ``rounds`` are the texts. Of a round whose block is missing or damaged, or says
    something else than the text, and of those behind it, only the text is known: a killed program had not written them
    yet."""
    steps: list[Step] = []
    for data in blocks:
        try:
            block = decoded(data)
            found = list(block.steps())
        except RecordError:
            continue
        if block.first == len(steps):
            steps += found
    texts = [_texts_of(step) for step in steps]
    if steps and _said(texts) == _said(rounds):
        return tuple(steps)
    agreeing = takewhile(lambda pair: pair[0] == pair[1], zip(texts, rounds, strict=False))
    del steps[len(list(agreeing)) :]
    last = steps[-1] if steps else NOTHING_KNOWN
    lost = enumerate(rounds[len(steps) :], start=len(steps))
    return (*steps, *(_known_by_text(last, index, said) for index, said in lost))


def _said(rounds: Sequence[StepText]) -> tuple[str, str]:
    return "".join(each.answer for each in rounds), "".join(each.thought for each in rounds)


def _texts_of(step: Step) -> StepText:
    return StepText(_joined(step, "answer"), _joined(step, "thought"))


NOTHING_KNOWN = Step(0, -1, 0.0, (), 0, (), 1, None, None, 0.0, 0, 1, 0.0)
"""Stands for the round before the first."""


def _known_by_text(before: Step, index: int, said: StepText) -> Step:
    """A round of which only the text is known, behind those that are."""
    texts: tuple[tuple[Channel, str], ...] = (("thought", said.thought), ("answer", said.answer))
    emitted = tuple(EmittedToken(None, text, "unknown", channel, None) for channel, text in texts if text)
    return replace(
        NOTHING_KNOWN, turn=before.turn, index=index, time=before.time, emitted=emitted, block_size=before.block_size,
        temperature=before.temperature, context_length=before.context_length + index - before.index,
    )  # fmt: skip


def _joined(step: Step, channel: Channel) -> str:
    return "".join(token.text for token in step.emitted if token.channel == channel)
