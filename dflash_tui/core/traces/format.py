"""What writers and readers of traces agree on. FORMAT.md says the same in words, for readers in other languages."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

from engine.events import EngineError, EngineReady, PrefillDone, TurnFinished, TurnStarted

FORMAT_VERSION = 1
MAGIC = b"dflash-trace "
"""A file begins with this, the version in decimal digits, and a newline. A zlib stream of frames follows."""
SUFFIX = ".dft"
DICTIONARY = (
    b'{"program":"dflash-chat","version":"0.1.0","created":"2026-11-","source":"history","versions":"Python 3.1, torch '
    b'2.1, triton 3.,transformers 5."}'
    b'{"event":"EngineError","kind":"usage""weights""device""generation","message":"","hint":"","fatal":false,"turn":'
    b'{"event":"EngineReady","target":"google/gemma-4-26B-A4B-it","drafter":"z-lab/-DFlash","device":"NVIDIA H200"'
    b'"cpu","dtype":"bfloat16""float32","max_block_size":16,"max_context":32768,"load_seconds":0.,"banner":"A tiny '
    b'demo model. It knows a little about short Python programs, animated HTML pages, word problems with numbers, "'
    b',"attention_backend":"sdpa","draft_attention_backend":"flash_attn","target_hash":"","drafter_hash":"'
    b'{"event":"TurnFinished","turn":1,"reason":"stopped""error""context""length""stop"}'
    b'{"event":"TurnStarted","turn":1,"num_prompt_tokens":,"num_reused_tokens":0,"settings":{"block_size":16,'
    b'"temperature":1.0,"top_p":1.0,"top_k":0,"seed":0,"max_new_tokens":1024,"speculation":true,"thinking":false},'
    b'"question":"Write a in Python"}{"event":"PrefillDone","turn":1,"milliseconds":'
)
"""What the zlib stream's preset dictionary is: mostly words of every trace, so that they cost short ones nothing."""


class Frame(IntEnum):
    """The first byte of a frame. Its length follows as a number of seven bits a byte, then its content."""

    END = 0
    """Nothing follows; a file without it was cut short."""
    HEADER = 1
    """A JSON object: see :class:`TraceHeader`. The first frame."""
    EVENT = 2
    """A JSON object: an event other than a step."""
    STEP = 3
    """A packed step."""


JsonEvent = EngineReady | TurnStarted | PrefillDone | TurnFinished | EngineError
"""Events that are stored as JSON. ``LoadProgress`` is left out."""


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """What was running when the trace began. Model, hashes and card stand in the ``EngineReady`` event after it."""

    program: str = "dflash-chat"
    version: str = ""
    created: str = ""
    """ISO 8601, local time with its offset."""
    source: str = "engine"
    """Where the events came from: ``engine``, or ``history`` when the trace was written afterwards."""
    versions: str = ""
    """Of what computed: Python, torch, and the like, separated by commas."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TraceHeader:
        """Unknown keys are ignored, and so are values that are no text."""
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in data.items() if key in known and isinstance(value, str)})
