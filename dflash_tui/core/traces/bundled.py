"""The traces that come with the program, and how a trace is found by what a user types."""

from __future__ import annotations

from pathlib import Path

from .format import SUFFIX
from .reader import TraceError, check_version

TRACES = Path(__file__).parents[2] / "traces"
DEMO = "demo"
"""Another name for the trace that shows the most in the least time."""
DEMO_TRACE = "code"


def bundled_traces() -> dict[str, Path]:
    """By name, alphabetically."""
    return {path.stem: path for path in sorted(TRACES.glob(f"*{SUFFIX}"))}


def find_trace(name: str) -> Path:
    """The file called ``name``, else the bundled trace. :class:`TraceError` for none that can be read."""
    path = Path(name)
    if not path.is_file():
        bundled = bundled_traces()
        found = bundled.get(DEMO_TRACE if name == DEMO else name)
        if found is None:
            known = ", ".join([DEMO, *bundled])
            raise TraceError(
                f"There is no file {name}, and no bundled trace of that name.", f"Bundled traces: {known}."
            )
        path = found
    try:
        with path.open("rb") as file:
            check_version(file, path.name)
    except OSError as error:
        raise TraceError(f"{path} can't be read: {error.strerror}.", "Choose another file.") from None
    return path
