"""The fixtures of ``tests/engine``."""

from __future__ import annotations

from tests.engine.conftest import _one_thread, _only_live_rows, bundled_pair, dense_pair, moe_pair, unstopped_pair

__all__ = ["_one_thread", "_only_live_rows", "bundled_pair", "dense_pair", "moe_pair", "unstopped_pair"]
