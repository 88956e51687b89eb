"""Paces that people can follow, as multiples of the recorded one, and what they are called."""

from __future__ import annotations

from math import floor, log10

_ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""What a factor is rounded to, and these times powers of ten: no neighbours are more than a third apart."""

RACE = (8.0, 10.0, 20.0)
"""Seconds that a race takes to watch, whatever the machine: at least, about, and at most."""
REPLAY, SHORT_REPLAY = 20.0, 5.0
"""Seconds that a recording takes to watch which would be over in less than the second number."""


def round_factor(factor: float) -> float:
    scale: float = 10.0 ** floor(log10(factor))
    return scale * min(_ROUND, key=lambda step: abs(step - factor / scale))


def pace_for(seconds: float, wanted: float, shortest: float, longest: float = float("inf")) -> float:
    """The pace at which something that took so many seconds can be followed: its own where that is between
    ``shortest`` and ``longest`` seconds, else one at which it takes about ``wanted``."""
    if seconds <= 0 or shortest <= seconds <= longest:
        return 1.0
    return round_factor(seconds / wanted) if seconds > longest else 1 / round_factor(wanted / seconds)


def race_pace(seconds: float) -> float:
    """For a race whose slowest lane took so many seconds."""
    shortest, wanted, longest = RACE
    return pace_for(seconds, wanted, shortest, longest)


def replay_pace(seconds: float) -> float:
    """The pace at which a recording of ``seconds`` is played if nobody says another."""
    return pace_for(seconds, REPLAY, SHORT_REPLAY)


def pace_words(pace: float) -> str:
    """A pace in words, such as ``slowed 40 times``."""
    if pace == 1:
        return "at its own pace"
    times = max(pace, 1 / pace)
    return f"{'slowed' if pace < 1 else 'sped up'} {f'{times:.3g}' if times < 1000 else f'{times:,.0f}'} times"
