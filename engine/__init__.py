"""Speculative decoding with DFlash: a target of any family, a drafter, and the loop that joins them.

    with engine.load("google/gemma-4-26B-A4B-it") as pair:
        for event in pair.generate("Write a haiku", temperature=0.8, seed=1):
            print(engine.text(event), end="", flush=True)

:func:`load` returns a :class:`Pair`; its ``generate`` yields :data:`Event`, its ``answer`` returns the text. Failures
are :class:`EngineFailure`. ``engine.service.EngineService`` is the same behind a thread and a queue, for a screen.
Importing this package imports the standard library alone; ``load`` imports torch.
"""

from .commands import EngineOptions, GenerationSettings, Message
from .environment import set_pytorch_variables
from .errors import DeviceFailure, EngineFailure, UsageFailure, WeightsFailure
from .events import (
    DraftToken,
    EmittedToken,
    EngineReady,
    Event,
    LoadProgress,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
)
from .library import Pair, load, text

set_pytorch_variables()

__all__ = [
    "DeviceFailure",
    "DraftToken",
    "EmittedToken",
    "EngineFailure",
    "EngineOptions",
    "EngineReady",
    "Event",
    "GenerationSettings",
    "LoadProgress",
    "Message",
    "Pair",
    "PrefillDone",
    "Step",
    "TurnFinished",
    "TurnStarted",
    "TurnStatistics",
    "UsageFailure",
    "WeightsFailure",
    "load",
    "text",
]
