"""``--trace FILE``: the run is recorded on the engine's own thread, on its way to whoever shows it."""

from __future__ import annotations

from pathlib import Path

from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import Emit, Happening, Source, SourceFactory, events_only

from .problems import Problem, show_problem


def open_trace(path: Path | None) -> SessionLog | None:
    """The trace to record into, if one was asked for. Raises :class:`Problem` when it exists or can't be created."""
    if path is None:
        return None
    try:
        return SessionLog.record_into(path)
    except FileExistsError:
        exists = f"{path} exists already, and recordings are never overwritten."
        raise Problem(exists, "Choose another --trace.") from None
    except OSError as error:
        raise Problem(f"{path} can't be written: {error.strerror}.", "Choose another file with --trace.") from None


def recorded(source: SourceFactory, trace: SessionLog | None) -> SourceFactory:
    """The same source, with everything that it says written down first."""
    if trace is None:
        return source
    record = events_only(trace.record)

    def create(emit: Emit) -> Source:
        def both(happening: Happening) -> None:
            record(happening)
            emit(happening)

        return source(both)

    return create


def finish_trace(trace: SessionLog | None) -> None:
    """Close the file. A disk that was full is told of, and changes no exit code: the answer is whole."""
    if trace is not None:
        trace.close()
        if trace.failure is not None:
            show_problem(Problem(trace.failure, "Make room, and ask again."))
