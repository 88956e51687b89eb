"""The fixtures of ``tests/llamacpp``."""

from __future__ import annotations

from tests.llamacpp.conftest import pair

__all__ = ["pair"]
