"""Failures that people meet. Each says what happened and what to do next; the front end picks the exit code."""

from __future__ import annotations

from .events import ErrorKind


class EngineFailure(Exception):
    """A failure with a next step. ``str()`` is what happened."""

    kind: ErrorKind = "generation"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageFailure(EngineFailure):
    """The request can't be served as asked: an empty prompt, a prompt longer than the context."""

    kind = "usage"


class WeightsFailure(EngineFailure):
    """Weights are missing, truncated, or not what their config says."""

    kind = "weights"


class DeviceFailure(EngineFailure):
    """No usable GPU, or not enough memory."""

    kind = "device"
