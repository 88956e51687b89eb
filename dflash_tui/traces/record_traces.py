"""``python -m dflash_tui.traces.record_traces``: runs a pair and writes the bundled recordings, five on the CPU with
the bundled pair; the sixth is recorded on a GPU (``--device cuda``) and copied."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

from dflash_tui.core.advice import as_command
from dflash_tui.core.replay.bundled import RECORDINGS as FOLDER
from dflash_tui.core.replay.recording import read_recording
from dflash_tui.core.sessions.sessions import SUFFIX, SessionLog
from engine.commands import AUTO, MAX_BLOCK_SIZE, Ask, Close, EngineOptions, GenerationSettings, Message
from engine.events import EngineError, EngineReady, Event, TurnFinished
from engine.service import EngineService

GREEDY = GenerationSettings(block_size=MAX_BLOCK_SIZE, max_new_tokens=1024)
SAMPLED = replace(GREEDY, temperature=1.0, seed=1)


WARM_UP = Message("user", "Hi")
WARM_UP_TOKENS = 16


class RecordingError(Exception):
    """There is no recording. ``str()`` is why."""


class Answering:
    """A loaded engine. ``loading`` is what it said until it was ready."""

    def __init__(self, options: EngineOptions) -> None:
        self._inbox: SimpleQueue[Event] = SimpleQueue()
        self._engine = EngineService(options, self._inbox.put, as_command)
        self._engine.start()
        self.loading = self._until(EngineReady)

    def answer(self, turn: int, messages: tuple[Message, ...], settings: GenerationSettings) -> list[Event]:
        """Everything that the engine says of one turn. Raises :class:`RecordingError` when it fails."""
        self._engine.send(Ask(turn, messages, settings, compares=True))
        return self._until(TurnFinished)

    def warm_up(self, settings: GenerationSettings) -> None:
        """Answer something short, so that the next turn meets a warm engine whose caches hold nothing of it."""
        self.answer(0, (WARM_UP,), replace(settings, max_new_tokens=WARM_UP_TOKENS))

    def close(self) -> None:
        self._engine.send(Close())
        self._engine.join()

    def _until(self, last: type[Event]) -> list[Event]:
        events: list[Event] = []
        while not events or not isinstance(events[-1], last):
            events.append(self._inbox.get())
            if isinstance(events[-1], EngineError):
                raise RecordingError(events[-1].message)
        return events


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recording to make: questions of one conversation."""

    questions: tuple[str, ...]
    settings: GenerationSettings = GREEDY
    device: str = "cpu"


RECORDINGS: dict[str, Recipe] = {
    "code": Recipe(("Write a quicksort in Python", "Now write a binary search in Python")),
    "code-sampled": Recipe(("Write a quicksort in Python", "Write a stack class in Python"), SAMPLED),
    "html": Recipe(("create a single-file HTML animation of a drone swarm",)),
    "maths": Recipe(
        (
            "Ben has 12 apples and buys 7 more. How many apples does he have?",
            "What is 17 + 26?",
            "Sara has 5 bags with 6 apples each. How many apples does she have?",
        )
    ),
    "chat-sampled": Recipe(
        ("Hello, who are you?", "What is speculative decoding?", "Why is the draft a block?", "Thank you!"), SAMPLED
    ),
    "gpu": Recipe(
        ("create a single-file HTML animation of a drone swarm",), replace(GREEDY, block_size=AUTO), device="cuda"
    ),
}
"""The recordings to make, by the name under which they are replayed."""


def main() -> None:
    """Records the bundled recordings that belong to a device. Raises :class:`RecordingError`."""
    parser = ArgumentParser(prog="python -m dflash_tui.traces.record_traces", description=main.__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", choices=RECORDINGS, nargs="+", default=list(RECORDINGS), help="just these")
    parser.add_argument("--into", type=Path, default=FOLDER, metavar="FOLDER", help="where the files go")
    wanted = parser.parse_args()
    with closing(Answering(EngineOptions(device=wanted.device))) as engine:
        for name in wanted.only:
            if RECORDINGS[name].device != wanted.device:
                continue
            path: Path = wanted.into / f"{name}{SUFFIX}"
            _record(path, RECORDINGS[name], engine)
            made, size = read_recording(path), path.stat().st_size
            tokens = made.steps.num_tokens
            print(f"{name:<14}{size:>7} bytes  {tokens:>5} tokens  {size / tokens:.1f} bytes/token", file=sys.stderr)


def _record(path: Path, recording: Recipe, engine: Answering) -> None:
    engine.warm_up(recording.settings)
    path.unlink(missing_ok=True)
    log = SessionLog.record_into(path)
    log.record(engine.loading[-1])
    messages: tuple[Message, ...] = ()
    for turn, question in enumerate(recording.questions, start=1):
        messages = (*messages, Message("user", question))
        for event in engine.answer(turn, messages, recording.settings):
            log.record(event)
            if isinstance(event, TurnFinished):
                messages = (*messages, Message("assistant", event.text))
    log.close()
    if log.failure is not None:
        raise RecordingError(log.failure)


if __name__ == "__main__":
    main()
