"""Recorded drafts on disk.

A file is lines of JSON, compressed with xz: one line an answer, with its confidences as base64 of one byte each
(255 is certain).
"""

from __future__ import annotations

import json
import lzma
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from .play import Anchor

CONFIDENCE_STEPS = 255


@dataclass(frozen=True, slots=True)
class Recording:
    """One answer, with the draft that stood behind every token of it."""

    domain: str
    """What kind of text it is."""
    temperature: float
    prompt_length: int
    anchors: tuple[Anchor, ...]


def save_recordings(path: Path, recordings: Iterable[Recording]) -> None:
    lines = "".join(json.dumps(_line(recording)) + "\n" for recording in recordings)
    path.write_bytes(lzma.compress(lines.encode()))


def load_recordings(path: Path) -> list[Recording]:
    """Raises ``OSError``, or ``ValueError`` when the file holds something else."""
    try:
        return [_recording(json.loads(line)) for line in lzma.decompress(path.read_bytes()).splitlines()]
    except (lzma.LZMAError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a file of recorded drafts") from error


def _line(recording: Recording) -> dict[str, Any]:
    anchors = recording.anchors
    confidences = bytes(round(CONFIDENCE_STEPS * value) for anchor in anchors for value in anchor.confidences)
    return {
        "domain": recording.domain,
        "temperature": recording.temperature,
        "prompt_length": recording.prompt_length,
        "drafted": [len(anchor.confidences) for anchor in anchors],
        "right": [anchor.num_right for anchor in anchors],
        "confidences": b64encode(confidences).decode(),
    }


def _recording(line: dict[str, Any]) -> Recording:
    values = [byte / CONFIDENCE_STEPS for byte in b64decode(line["confidences"])]
    ends = accumulate(line["drafted"], initial=0)
    anchors = tuple(
        Anchor(tuple(values[start:end]), right)
        for (start, end), right in zip(pairwise(ends), line["right"], strict=True)
    )
    return Recording(line["domain"], line["temperature"], line["prompt_length"], anchors)
