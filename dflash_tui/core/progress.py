"""How far loading is, in words: the same ones on the screen and on stderr."""

from __future__ import annotations

from engine.events import LoadProgress


def describe_amount(progress: LoadProgress) -> str:
    """How much of the whole is done, and for a download its rate and the time left; empty when the whole is unknown."""
    if progress.total <= 0:
        return ""
    if progress.unit == "bytes":
        return describe_bytes(progress.done, progress.total) + _describe_pace(progress)
    return f"{progress.done} of {progress.total}"


def describe_bytes(done: int, total: int) -> str:
    """How much of a whole, in a unit that suits the whole."""
    return f"{done / 1e9:.1f} of {total / 1e9:.1f} GB" if total >= 1e9 else f"{done / 1e6:.0f} of {total / 1e6:.0f} MB"


def _describe_pace(progress: LoadProgress) -> str:
    rate = progress.bytes_per_second
    if rate <= 0 or progress.done >= progress.total:
        return ""
    seconds = round((progress.total - progress.done) / rate)
    left = f"{seconds} s" if seconds < 60 else f"{seconds // 60} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
    return f" ({progress.done / progress.total:.0%}) · {rate / 1e6:.1f} MB/s · {left} left"
