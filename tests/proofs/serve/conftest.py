"""The fixtures of ``tests/serve``."""

from __future__ import annotations

from tests.serve.conftest import serve, served

__all__ = ["serve", "served"]
