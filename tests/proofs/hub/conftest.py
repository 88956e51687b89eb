"""The fixtures of ``tests/hub``."""

from __future__ import annotations

from tests.hub.conftest import computer, hub

__all__ = ["computer", "hub"]
