"""Says in words why llama.cpp failed, from its exit code and its log."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from dflash_tui.core.platforms import WINDOWS
from engine.errors import DeviceFailure, EngineFailure, UsageFailure, WeightsFailure

INSTALL = 'pip install "dflash-chat[gguf]"'
UPDATE = "pip install --upgrade xllamacpp"
ILLEGAL_ON_WINDOWS = 0xC000001D
_LEVEL = re.compile(r"^\S+ [EW] (?P<said>.*)$")

LOGGED: Sequence[tuple[str, type[EngineFailure], str, str]] = (
    (
        r"unknown model architecture: '(?P<what>[^']*)'",
        WeightsFailure,
        "The installed llama.cpp doesn't know the architecture {what}.",
        f"A newer one may: {UPDATE}",
    ),
    (
        r"not within the file bounds|corrupted or incomplete|failed to read key-value pairs|invalid magic",
        WeightsFailure,
        "The model's file is cut short or damaged.",
        "Fetch it again.",
    ),
    (
        r"missing tensor '(?P<what>[^']*)'|(?:wrong number of|wrong shape).*tensor",
        WeightsFailure,
        "The model's file is not what its architecture needs: {said}",
        f"It may be made for a newer llama.cpp: {UPDATE}",
    ),
    (
        r"out of memory|bad_alloc|failed to allocate|unable to allocate|cannot allocate memory|OutOfDeviceMemory"
        r"|failed to fit|insufficient memory",
        DeviceFailure,
        "The memory is too small for this model.",
        "Try less context (--context 4096), a smaller quantisation, or the model without a drafter (--draft none).",
    ),
    (
        r"(?:could not|couldn't|failed to) bind|address already in use",
        DeviceFailure,
        "llama.cpp found no free port on 127.0.0.1.",
        "Try again; a firewall or another program may hold them all.",
    ),
    (
        r"draft.*(?:vocab|not compatible|mismatch|failed)|(?:vocab|mismatch).*draft",
        WeightsFailure,
        "The drafter doesn't fit the target: {said}",
        "Name another with --draft, or none: --draft none.",
    ),
)
"""A pattern of the log, the failure it stands for, and its two sentences. The first that is found counts."""


def missing_package() -> EngineFailure:
    return UsageFailure("A GGUF needs llama.cpp, which is not installed.", INSTALL)


def failed_to_import(error: str) -> EngineFailure:
    return DeviceFailure(f"llama.cpp is installed, and can't be loaded: {error}.", f"Install it again: {INSTALL}")


def reason_of(code: int | None, log: Sequence[str]) -> EngineFailure:
    """Why the child failed. ``code``: its exit code, None while it runs; ``log``: the last lines that it wrote."""
    if code in (-getattr(signal, "SIGILL", 4), ILLEGAL_ON_WINDOWS):
        return DeviceFailure(
            "The installed llama.cpp was built for another processor: it met an instruction that this one lacks.",
            "Build it for this machine: pip install --force-reinstall --no-binary xllamacpp xllamacpp",
        )
    for line in log:
        for pattern, kind, message, hint in LOGGED:
            if match := re.search(pattern, line, re.IGNORECASE):
                return kind(message.format(what=match.groupdict().get("what") or "", said=_without_prefix(line)), hint)
    if code == -getattr(signal, "SIGKILL", 9):
        return DeviceFailure(
            "llama.cpp was ended from outside; where the memory ran out, the system did it.",
            "Try less context (--context 4096) or a smaller quantisation.",
        )
    last = next((_without_prefix(line) for line in reversed(log) if _LEVEL.match(line)), "")
    text = f": {last}" if last else "."
    how = f" (signal {-code})" if code is not None and code < 0 and not WINDOWS else ""
    return EngineFailure(f"llama.cpp failed{how}{text}", "Ask again; its log has more (dflash-chat doctor says where).")


def _without_prefix(line: str) -> str:
    """A line of the log without its time and level."""
    match = _LEVEL.match(line)
    return (match["said"] if match else line).strip()
