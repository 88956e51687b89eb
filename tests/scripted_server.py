"""A stand-in for a server: what its stream says of a scripted answer, first as a guess and in the end by its count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from dflash_tui.core.source import Capabilities, Emit, Feature
from engine.events import (
    DraftToken,
    EmittedToken,
    EngineReady,
    Event,
    Notice,
    Settled,
    Step,
    TurnFinished,
    TurnStarted,
)
from tests.scripted_engine import ScriptedEngine

BLOCK = "The server chose its block size when it was started."
SECRET = "The server doesn't tell what was drafted."
FIXED = "This server takes a temperature, and nothing else."
REFUSED: dict[Feature, str] = {
    "block_size": BLOCK, "seed": FIXED, "speculation": FIXED, "thinking": FIXED, "draft_probabilities": SECRET,
}  # fmt: skip
ADDRESS, DIALECT = "http://gpu-box:8000", "vLLM 0.33.0"
ADVICE = Notice("This vLLM tells no rounds.", "vllm serve ... --per-request-spec-decode-metrics detailed")
UNPROVED = "The server sent no count of this answer's rounds."

Proof = Literal["none", "merged", "right", "missing"]
"""Rounds are known at once; two of them may come as one until the count parts them; the guesses were right; no count
came, and what was drafted is not known."""


class ScriptedServer(ScriptedEngine):
    """Says what a server's stream says: texts, and how many of how many were accepted."""

    def __init__(
        self, emit: Emit, *, proof: Proof = "none", refused: dict[Feature, str] = REFUSED, notice: bool = False,
        address: str = ADDRESS, round_seconds: float = 0.002, **options: Any,
    ) -> None:  # fmt: skip
        self.capabilities = Capabilities(refused, local=False)
        self._proof, self._notice, self._address = proof, notice, address
        self._told: Callable[[Event], None] = emit
        self._steps: list[Step] = []
        self._waiting: Step | None = None
        """Half of what will come as one round."""
        super().__init__(self._tell, round_seconds=round_seconds, **options)

    def _tell(self, event: Event) -> None:
        match event:
            case EngineReady():
                event = replace(
                    event, drafter=None, device=self._address, server=self._address, dialect=DIALECT, times="arrival",
                    banner="",
                )  # fmt: skip
            case TurnStarted():
                self._steps = []
                event = replace(event, settings={"temperature": event.settings["temperature"]})
            case Step():
                self._take(replace(as_told(event), time=round(event.time, 6)))
                return
            case TurnFinished():
                self._settle(event.turn)
                if self._notice:
                    self._told(ADVICE)
        self._told(event)

    def _take(self, step: Step) -> None:
        self._steps.append(step)
        if self._proof == "none":
            self._told(step)
        elif self._proof == "right" or not step.index:
            self._told(replace(step, provisional=bool(step.index)))
        elif self._waiting is None:
            self._waiting = step
        else:
            self._told(merged(self._waiting, step))
            self._waiting = None

    def _settle(self, turn: int) -> None:
        if self._waiting is not None:
            self._told(replace(self._waiting, provisional=True, index=(self._waiting.index + 1) // 2))
            self._waiting = None
        if self._proof in ("merged", "right"):
            self._told(Settled(turn, tuple(self._steps) if self._proof == "merged" else (), proved=True))
        elif self._proof == "missing":
            first, *others = self._steps
            unknown = (replace(step, emitted=tuple(map(not_known, step.emitted))) for step in others)
            self._told(Settled(turn, (first, *unknown), proved=False, note=UNPROVED))


def as_told(event: Step) -> Step:
    """A round of which only texts and counts are known."""
    kept = event.num_accepted
    draft = tuple(
        DraftToken(None, token.text if place < kept else None, None) for place, token in enumerate(event.draft)
    )
    emitted = tuple(replace(token, id=None, probability=None) for token in event.emitted)
    return replace(event, draft=draft, emitted=emitted, draft_ms=None, verify_ms=None)


def merged(first: Step, second: Step) -> Step:
    """Two rounds that arrived as one: all but the last of its tokens look accepted."""
    emitted = (*first.emitted, *second.emitted)
    drafted = max(len(second.draft), len(emitted) - 1)
    kept = tuple(replace(token, verdict="accepted") for token in emitted[:-1])
    draft = tuple(DraftToken(None, token.text, None) for token in kept)
    return replace(
        second, index=(second.index + 1) // 2, draft=(*draft, *[DraftToken(None, None, None)] * (drafted - len(draft))),
        num_accepted=len(kept), emitted=(*kept, emitted[-1]), verify_width=drafted + 1, provisional=True,
    )  # fmt: skip


def not_known(token: EmittedToken) -> EmittedToken:
    return replace(token, verdict="unknown")
