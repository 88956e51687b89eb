"""A stand-in for a server: what its stream says of a scripted answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dflash_tui.core.source import Capabilities, Emit, Feature
from engine.events import (
    DraftToken,
    EngineReady,
    Event,
    Notice,
    Step,
    TurnFinished,
    TurnStarted,
)
from support.scripted_engine import ScriptedEngine

BLOCK = "The server chose its block size when it was started."
SECRET = "The server doesn't tell what was drafted."
FIXED = "This server takes a temperature, and nothing else."
REFUSED: dict[Feature, str] = {
    "block_size": BLOCK, "seed": FIXED, "speculation": FIXED, "thinking": FIXED, "draft_probabilities": SECRET,
}  # fmt: skip
ADDRESS, DIALECT = "http://gpu-box:8000", "vLLM 0.33.0"
ADVICE = Notice("This vLLM tells no rounds.", "vllm serve ... --per-request-spec-decode-metrics detailed")


class ScriptedServer(ScriptedEngine):
    """Says what a server's stream says: texts, and how many of how many were accepted."""

    def __init__(
        self, emit: Emit, *, refused: dict[Feature, str] = REFUSED, notice: bool = False, told: bool = True,
        address: str = ADDRESS, round_seconds: float = 0.002, **options: Any,
    ) -> None:  # fmt: skip
        self.capabilities = Capabilities(refused, local=False)
        """``told``: whether it tells its rounds."""
        self._rounds, self._notice, self._address = told, notice, address
        self._told: Callable[[Event], None] = emit
        super().__init__(self._tell, round_seconds=round_seconds, **options)

    def _tell(self, event: Event) -> None:
        match event:
            case EngineReady():
                event = replace(
                    event, drafter=None, device=self._address, server=self._address, dialect=DIALECT, times="arrival",
                    banner="",
                )  # fmt: skip
            case TurnStarted():
                event = replace(event, settings={"temperature": event.settings["temperature"]})
            case Step():
                event = replace(as_told(event) if self._rounds else untold(event), time=round(event.time, 6))
            case TurnFinished() if self._notice:
                self._told(ADVICE)
        self._told(event)


def as_told(event: Step) -> Step:
    """A round of which only texts and counts are known."""
    kept = event.num_accepted
    draft = tuple(
        DraftToken(None, token.text if place < kept else None, None) for place, token in enumerate(event.draft)
    )
    emitted = tuple(replace(token, id=None, probability=None) for token in event.emitted)
    return replace(event, draft=draft, emitted=emitted, draft_ms=None, verify_ms=None)


def untold(event: Step) -> Step:
    """A piece of text, of which nothing else is known."""
    emitted = tuple(replace(token, id=None, probability=None, verdict="unknown") for token in event.emitted)
    return replace(event, draft=(), num_accepted=0, verify_width=1, emitted=emitted, draft_ms=None, verify_ms=None)
