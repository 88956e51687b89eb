"""Reads and writes recorded drafts: xz-compressed JSON, a line for each answer. Confidences are base64 of one byte each
(255 is certain); further choices follow in the same way, all second ones, then all third. ``said`` then holds the
choice that the text takes at each position, or 255."""

from __future__ import annotations

import json
import lzma
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from engine.lab.judging.play import RecordedChoices, RecordedDraft
from engine.lab.judging.record import DraftRecording

CONFIDENCE_STEPS = 255
NONE_SAID = 255
_CHANCES = tuple(byte / CONFIDENCE_STEPS for byte in range(CONFIDENCE_STEPS + 1))
"""The confidence of each byte."""


def save_recordings(path: Path, recordings: Iterable[DraftRecording]) -> None:
    lines = "".join(json.dumps(_line(recording)) + "\n" for recording in recordings)
    path.write_bytes(lzma.compress(lines.encode()))


def load_recordings(path: Path) -> list[DraftRecording]:
    """Reads a file of recordings. Raises ``OSError``, or ``ValueError`` when the file holds something else."""
    try:
        return [_recording(json.loads(line)) for line in lzma.decompress(path.read_bytes()).splitlines()]
    except (lzma.LZMAError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a file of recorded drafts") from error


def _line(recording: DraftRecording) -> dict[str, Any]:
    anchors = recording.anchors
    line = {
        "domain": recording.domain,
        "temperature": recording.temperature,
        "prompt_length": recording.prompt_length,
        "drafted": [len(anchor.confidences) for anchor in anchors],
        "right": [anchor.num_right for anchor in anchors],
        "confidences": _encoded(value for anchor in anchors for value in anchor.confidences),
    }
    return line | _further(recording.blocks) if recording.blocks else line


def _further(blocks: Sequence[RecordedChoices]) -> dict[str, Any]:
    first, *others = zip(*(position for block in blocks for position in block.chances), strict=True)
    said = bytes(NONE_SAID if choice < 0 else choice for block in blocks for choice in block.taken_choices)
    assert len(said) == len(first)
    return {"further": [_encoded(chances) for chances in others], "said": b64encode(said).decode()}


def _recording(line: dict[str, Any]) -> DraftRecording:
    confidences = _decoded(line["confidences"])
    anchors = tuple(
        RecordedDraft(confidences[place], right)
        for place, right in zip(_places(line["drafted"]), line["right"], strict=True)
    )
    return DraftRecording(line["domain"], line["temperature"], line["prompt_length"], anchors, tuple(_blocks(line)))


def _blocks(line: dict[str, Any]) -> Iterator[RecordedChoices]:
    if "said" in line:
        planes = (_decoded(line["confidences"]), *map(_decoded, line["further"]))
        chances = tuple(zip(*planes, strict=True))
        said = tuple(-1 if byte == NONE_SAID else byte for byte in b64decode(line["said"]))
        for place in _places(line["drafted"]):
            yield RecordedChoices(chances[place], said[place])


def _places(lengths: Sequence[int]) -> Iterator[slice]:
    """The slice of each draft, where drafts of these lengths stand one behind the other."""
    return (slice(start, end) for start, end in pairwise(accumulate(lengths, initial=0)))


def _encoded(chances: Iterable[float]) -> str:
    return b64encode(bytes(round(CONFIDENCE_STEPS * chance) for chance in chances)).decode()


def _decoded(chances: str) -> tuple[float, ...]:
    return tuple(map(_CHANCES.__getitem__, b64decode(chances)))
