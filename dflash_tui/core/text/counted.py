"""A count with its noun, and milliseconds: the one place that knows how they are written."""


def counted(count: int, what: str) -> str:
    """A count with its noun, such as ``1 line``, ``2,300 lines`` or ``2 passes``."""
    return f"{count:,} {what}{'' if count == 1 else 'es' if what.endswith('s') else 's'}"


def ms_text(part: float, whole: float) -> str:
    """A part of ``whole`` milliseconds as a number, as exact as the whole needs: ``4.2``, of less than two ``0.13``."""
    return f"{part:.{1 if whole >= 2 else 2}f}"
