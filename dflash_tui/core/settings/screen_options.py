"""How the screen should look and be steered, beyond its colours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .config import Entry


@dataclass(frozen=True, slots=True)
class ScreenOptions:
    """What the user asked of the screen."""

    ascii: bool = False
    """Draw with the 95 characters that every terminal has."""
    reduced_motion: bool = False
    """Nothing blinks, glides or plays by itself."""
    mouse: bool = True
    """Clicks and the wheel are the program's; without, the terminal selects text with them."""
    keys: Mapping[str, Entry] = field(default_factory=dict)
    """Keys instead of an action's own, by its id; where they were written is for the messages."""
