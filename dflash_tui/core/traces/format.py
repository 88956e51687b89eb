"""What writers and readers of traces agree on. FORMAT.md says the same in words, for readers in other languages."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

from engine.events import EngineError, EngineReady, PrefillDone, TurnFinished, TurnStarted

FORMAT_VERSION = 9
"""What is written and read."""
MAGIC = b"dflash-trace "
"""A file begins with this, the version in decimal digits, and a newline. Frames follow."""
SUFFIX = ".dft"
DICTIONARY = (
    b'"kind":"usage""weights""device""generation""message":"","hint":"","fatal":false,"turn":{"event":"EngineError"'
    b'"reason":"stopped""error""context""length"google/gemma-4-26B-A4B-it","drafter":"z-lab/-DFlash","device":"NVIDIA '
    b'H200","dtype":"bfloat16","max_block_size":16,"max_context":32768"flash_attn"+"triton"source":"history"Now write '
    b'a "create a single-file HTML animation ofHow many What is "Why is "Hello, who are you?"block_size":"auto"8,'
    b'{"program":"dflash-chat","version":"0.1.0","created":"2026-11-21T0:00+00:00","source":"engine","versions":'
    b'"Python 3.11.7, torch 2.13.0+cpu, triton 3.6.0, transformers 5.23.0"}\n{"event":"EngineReady","target":'
    b'"dflash-demo","drafter":"dflash-demo-DFlash","device":"cpu","dtype":"float32","max_block_size":16,"max_context":8192,'
    b'"load_seconds":1.,"banner":"A tiny demo model (about 7 million parameters). It knows six topics: small Python '
    b"programs, single-file HTML animations, arithmetic word problems, short explanations of this program and of basic "
    b'computing, small talk, and saying when it doesn\'t know.","attention_backend":"sdpa",'
    b'"draft_attention_backend":"sdpa","target_hash":"","drafter_hash":""}\n{"event":"TurnFinished","turn":2,'
    b'"reason":"stop"}\n{"event":"TurnStarted","turn":1,"num_prompt_tokens":3,"num_reused_tokens":4,"settings":'
    b'{"block_size":16,"verify":"all","temperature":0.0,"top_p":1.0,"top_k":0,"seed":0,"max_new_tokens":1024,'
    b'"speculation":true,"thinking":false},"question":"Write a in Python"}\n{"event":"PrefillDone","turn":1,'
    b'"milliseconds":2'
)
"""The preset dictionary of what is deflated: mostly words of every trace, so that they cost short ones nothing."""
SYNC = b"\0\0\xff\xff"
"""What a flushed deflate block ends with. Frames leave it out."""


class Frame(IntEnum):
    """The first byte of a frame. Its length follows as a number of seven bits a byte, then its content."""

    END = 0
    """Kind of the last frame; a file without it was cut short."""
    LINES = 1
    """Kind of a frame with deflated lines of JSON: events other than steps. The first one is the header."""
    ROUNDS = 4
    """Kind of a frame with a block of rounds (:mod:`..records.blocks`)."""


JsonEvent = EngineReady | TurnStarted | PrefillDone | TurnFinished | EngineError
"""Events that are stored as JSON. ``LoadProgress`` and ``Notice`` are left out."""


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """What was running when the trace began. Model, hashes and card stand in the ``EngineReady`` event after it."""

    program: str = "dflash-chat"
    version: str = ""
    created: str = ""
    """ISO 8601, local time with its offset."""
    source: str = "engine"
    """What the events came from: ``engine``, or ``history`` when the trace was written afterwards."""
    versions: str = ""
    """The versions of what computed, such as Python and torch, separated by commas."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TraceHeader:
        """Make a header from a JSON object; unknown keys are ignored, and so are values that are no text."""
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in data.items() if key in known and isinstance(value, str)})
