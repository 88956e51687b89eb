"""The recordings that come with the program, and how one of them, or a conversation, is found by what a user types."""

from __future__ import annotations

from pathlib import Path

from ..sessions.archive import list_sessions
from ..sessions.session_file import check_head
from ..sessions.sessions import SUFFIX
from .recording import HOW, RecordingError

RECORDINGS = Path(__file__).parents[2] / "traces"
DEMO = "demo"
"""Another name for the recording that shows the most in the least time."""
DEMO_RECORDING = "code"
SHOWN = {
    "chat-sampled": "small talk, drawn by chance at temperature 0.8",
    "code": "a quicksort, a binary search; it is called demo, too",
    "code-sampled": "a quicksort, a stack, drawn by chance at temperature 0.8",
    "gpu": "a page with a drone swarm, by the tiny pair on an H200",
    "html": "the same page, on an ordinary processor",
    "lesson": "the answers that the lesson is about",
    "maths": "three sums in words",
}
"""What each of them shows."""


def bundled_recordings() -> dict[str, Path]:
    """The files of the bundled recordings by their names, alphabetically."""
    return {path.stem: path for path in sorted(RECORDINGS.glob(f"*{SUFFIX}"))}


def find_recording(words: str) -> Path:
    """The file called ``words``, else the bundled recording, else the one conversation of this machine that has them in
    its id or name. :class:`RecordingError` for none, several, and one that can't be read."""
    path = Path(words)
    if not path.is_file():
        bundled = bundled_recordings()
        path = bundled.get(DEMO_RECORDING if words == DEMO else words) or _conversation(words)
    try:
        with path.open("rb") as file:
            check_head(path, file.readline())
    except OSError as error:
        raise RecordingError(f"{path} can't be read: {error.strerror}.", "Choose another file.") from None
    except ValueError as error:
        raise RecordingError(str(error), HOW) from None
    return path


def _conversation(words: str) -> Path:
    """The one conversation that has ``words`` in its id or name."""
    matching = [each for each in list_sessions() if words in each.id or words.casefold() in each.name.casefold()]
    exact = [each for each in matching if words in (each.id, each.name)]
    if len(exact or matching) == 1:
        return (exact or matching)[0].path
    if matching:
        several = f"{len(matching)} conversations have {words!r} in their name."
        raise RecordingError(several, "Write more of it: dflash-chat sessions lists them.")
    known = ", ".join([DEMO, *bundled_recordings()])
    hint = f"Bundled recordings: {known}. dflash-chat sessions lists conversations."
    raise RecordingError(f"There is no file, recording or conversation {words!r}.", hint)


def latest_recording() -> Path:
    """The conversation in which something was last said. Raises :class:`RecordingError` where there is none."""
    latest = next(iter(list_sessions()), None)
    if latest is None:
        raise RecordingError("There is no conversation to replay yet.", "dflash-chat starts one.")
    return latest.path
