"""Speculative decoding with DFlash: a Gemma 4 target, a drafter, and the loop that joins them.

    with engine.load("google/gemma-4-26B-A4B-it") as pair:
        for event in pair.generate("Write a haiku", temperature=0.8, seed=1):
            print(engine.text(event), end="", flush=True)

:func:`load` returns a :class:`Pair`; its ``generate`` yields :data:`Event`, its ``answer`` returns the text. Failures
are :class:`EngineFailure`. ``engine.service.EngineService`` is the same behind a thread and a queue, for a screen.
Importing this package imports the standard library alone; ``load`` imports torch.
"""

import os

from .commands import EngineOptions, GenerationSettings, Message
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

# PyTorch reads this when it first asks for memory, and large tensors get pages of 2 MB then. With those of 4 KB a pass
# on a CPU also waits for page tables: on a busy virtual machine longer than for the weights themselves.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
# So many turns its threads (GNU's OpenMP) wait for one another before they sleep. By default it is 300 times as many:
# where another program has taken a core, each of a pass's hundred products waits for milliseconds, and so do others.
# As few turns outlast what PyTorch does between two products; the library takes them itself where cores are too few.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

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
