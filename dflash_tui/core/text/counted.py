"""A count with its noun: the one place that knows which is which."""


def counted(count: int, what: str) -> str:
    """A count with its noun, such as ``1 line``, ``2,300 lines`` or ``2 passes``."""
    return f"{count:,} {what}{'' if count == 1 else 'es' if what.endswith('s') else 's'}"
