"""The fixtures of ``tests/attach``."""

from __future__ import annotations

from tests.attach.conftest import attach, serve

__all__ = ["attach", "serve"]
