"""How a caller wants missing models to be fetched, and how it hears of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fetching:
    """How to come by what isn't on this machine."""

    offline: bool = False
    refresh: bool = False
    """Asks the hub for a newer revision also of what is here already."""
    progress: Callable[[int, int, float], None] = lambda done, total, rate: None
    """Told (bytes here, bytes of all files in question, bytes per second) several times a second."""
    cancelled: Callable[[], bool] = lambda: False
    """Asked several times a second; once true, ``find_pair`` raises ``FetchCancelled``."""


class FetchCancelled(Exception):
    """Somebody asked to stop. What was fetched is kept, and the next time goes on from there."""
