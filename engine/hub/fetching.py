"""How missing models are to be fetched, and how the caller hears of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fetching:
    """Whether and how to fetch what isn't on this machine."""

    offline: bool = False
    refresh: bool = False
    """Whether the hub is asked for a newer revision even of what is here already."""
    progress: Callable[[int, int, float], None] = lambda done, total, rate: None
    """Called several times a second with (bytes here, bytes of all files in question, bytes per second)."""
    cancelled: Callable[[], bool] = lambda: False
    """Asked several times a second; once true, ``find_pair`` raises ``FetchCancelled``."""


class FetchCancelled(Exception):
    """Raised when somebody asked to stop. What was fetched is kept, and the next time goes on from there."""
