"""What the file of a conversation holds of each event: text that anyone can read, and the whole round in few bytes."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from engine.events import (
    Channel,
    EngineError,
    EngineReady,
    Event,
    PrefillDone,
    Settled,
    Step,
    TurnFinished,
    TurnStarted,
    settled_steps,
    shortened,
)

from ..rounds.numbers import PackingError
from ..rounds.packing import Packer, Piece, is_partial, is_sourced, is_unsure
from ..rounds.unpacking import Unpacker

STEP_KEY, TREE_KEY, PARTIAL_KEY, UNSURE_KEY = "step", "tree_step", "partial_step", "unsure_step"
SOURCED_KEY = "sourced_step"
KEYS = (STEP_KEY, TREE_KEY, PARTIAL_KEY, UNSURE_KEY, SOURCED_KEY)
"""The packed step's name in its line. Programs that don't know such steps show the text alone."""


@dataclass(frozen=True, slots=True)
class StepText:
    """What one round added to the answer and to the thinking."""

    answer: str
    thought: str = ""
    packed: bytes | None = None
    """The whole :class:`Step`, packed behind those of its turn; None in files of versions that did not keep it."""


class EventLines:
    """Makes lines of events, in order. The packing of a round refers to those before it in its turn."""

    def __init__(self) -> None:
        self._turn = 0
        self._packer: Packer | None = None

    def line_for(self, event: Event) -> dict[str, Any] | None:
        """None for an event that adds nothing to the conversation."""
        match event:
            case EngineReady():
                server = shortened({"server": event.server, "dialect": event.dialect, "times": event.times})
                models = {"target": event.target, "drafter": event.drafter, "device": event.device}
                return {"type": "model", **models, **server}
            case TurnStarted():
                self._turn, self._packer = event.turn, Packer()
                counts = {"prompt_tokens": event.num_prompt_tokens, "reused_tokens": event.num_reused_tokens}
                return {"type": "started", "turn": event.turn, **counts, "settings": event.settings}
            case PrefillDone():
                return {"type": "prefilled", "turn": event.turn, "ms": event.milliseconds}
            case Step():
                return self._round_line(event)
            case Settled():
                return self._settled_line(event)
            case TurnFinished():
                statistics = shortened(asdict(event.statistics))
                return {"type": "finished", "turn": event.turn, "reason": event.reason, "statistics": statistics}
            case EngineError():
                return {"type": "error", "turn": event.turn, "message": event.message, "hint": event.hint}
            case _:
                return None

    def _round_line(self, step: Step) -> dict[str, Any] | None:
        answer, thought, packed = _joined(step, "answer"), _joined(step, "thought"), self._pack(step)
        if not answer and not thought and packed is None:
            return None
        line = {"type": "text", "turn": step.turn, "answer": answer}
        if thought:
            line["thought"] = thought
        if packed is not None:
            line[_key_of(step)] = b64encode(packed).decode("ascii")
        return line

    @staticmethod
    def _settled_line(event: Settled) -> dict[str, Any] | None:
        """The steps once more, as they are counted now."""
        packer = Packer()
        try:
            packed = [b64encode(packer.pack(step)).decode("ascii") for step in event.steps]
        except PackingError:
            return None
        return {"type": "settled", "turn": event.turn, "proved": event.proved, "note": event.note, "steps": packed}

    def _pack(self, step: Step) -> bytes | None:
        """None for a turn without its beginning, and from a step on that can't be packed: order matters."""
        if self._packer is None or step.turn != self._turn:
            return None
        try:
            return self._packer.pack(step)
        except PackingError:
            self._packer = None
            return None


def _key_of(step: Step) -> str:
    if is_sourced(step):
        return SOURCED_KEY
    if is_unsure(step):
        return UNSURE_KEY
    return PARTIAL_KEY if is_partial(step) else TREE_KEY if step.tree else STEP_KEY


@dataclass(frozen=True, slots=True)
class SettledLine:
    """What a server's count made of a turn's steps."""

    event: Settled
    """Without its steps."""
    packed: tuple[bytes, ...] = ()
    """Them; none where those that were told stand as they are."""

    def steps(self, told: Iterable[Step]) -> tuple[Step, ...]:
        """The turn's, ``told`` having come before. Raises ``PackingError``."""
        unpacker = Unpacker([])
        settled = replace(self.event, steps=tuple(unpacker.unpack(step) for step in self.packed))
        before = tuple(told)
        return settled_steps(settled, before) or before


def settled_line(line: dict[str, Any]) -> SettledLine:
    """The inverse. Raises ``ValueError`` for a damaged one."""
    packed = tuple(b64decode(step, validate=True) for step in line["steps"])
    return SettledLine(Settled(line["turn"], (), line["proved"], line["note"]), packed)


def step_text(line: dict[str, Any]) -> StepText:
    """The inverse, as far as one line goes. Raises ``ValueError`` for a damaged one."""
    packed = next((line[key] for key in KEYS if key in line), None)
    step = None if packed is None else b64decode(packed, validate=True)
    return StepText(line["answer"], line.get("thought", ""), step)


def unpack(rounds: Iterable[StepText]) -> Iterator[Step]:
    """The steps of one turn. Raises ``PackingError`` where one was not kept, or is damaged."""
    pieces: list[Piece] = []
    unpacker = Unpacker(pieces)
    for each in rounds:
        if each.packed is None:
            raise PackingError("this step was not kept")
        step = unpacker.unpack(each.packed)
        if _joined(step, "answer") != each.answer:
            raise PackingError("this step is not the one that its line tells of")
        yield step


def _joined(step: Step, channel: Channel) -> str:
    return "".join(token.text for token in step.emitted if token.channel == channel)
