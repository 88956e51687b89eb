"""What was recorded once: the costs of rounds on an H200 (``costs.json``), and the bundled drafter's drafts behind
every token of 144 held-out answers, with their texts (``drafts.xz``, ``texts.xz``). The scripts that recorded them are
in the history: ``measure/engine`` of 3cb23c57."""

from __future__ import annotations

import json
import lzma
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch

from engine.kernels.toolchain.jit import MAX_ROWS
from engine.lab.bench.shapes import read_shape
from engine.lab.judging.play import RecordedChoices, RecordedDraft
from engine.measured.costs import every_width
from engine.models.dflash.config import DFlashConfig
from engine.speculation.costs import CostTable, RoundCosts

HERE = Path(__file__).parent
CONFIDENCE_STEPS, NONE_SAID = 255, 255
_CHANCES = tuple(byte / CONFIDENCE_STEPS for byte in range(CONFIDENCE_STEPS + 1))
"""The confidence of each byte."""
BYTES_PER_MS = 3.3e9
"""Three quarters of the rate at which an H200's memory copies, which passes of large products reach."""
KEEP_MS = 0.003
"""Milliseconds of a launch that copies 34 KB."""
LOOKUP_MS = 0.03
"""Milliseconds of searching 32 000 tokens; shorter texts take less."""
LONG = 32_000
"""Tokens before the prompts of long texts."""


def recorded_tables() -> dict[str, CostTable]:
    """Cost tables of rounds whose drafts are chains, by shape and routing, such as ``26B-A4B uniform``."""
    return _tables("draft_ms", "verify_ms")


def tree_tables() -> dict[str, CostTable]:
    """Cost tables of rounds whose drafts are trees, for the dense models, on which ``auto`` verifies trees."""
    return _tables("grow_ms", "tree_ms")


def _tables(draft: str, verify: str) -> dict[str, CostTable]:
    return {
        f"{shape} {routing}": _table(shape, list(rounds), draft, verify)
        for shape, found in json.loads((HERE / "costs.json").read_text()).items()
        for routing, rounds in groupby(sorted(found["rounds"], key=_routing), _routing)
        if verify in found["rounds"][0]
    }


def _routing(entry: dict[str, Any]) -> str:
    return str(entry["routing"])


def _table(shape: str, rounds: list[dict[str, Any]], draft: str, verify: str) -> CostTable:
    contexts = sorted({each["context"] for each in rounds})
    costs = (_costs(shape, [e for e in rounds if e["context"] == context], draft, verify) for context in contexts)
    return CostTable(tuple(contexts), tuple(costs))


def _costs(shape: str, rounds: list[dict[str, Any]], draft: str, verify: str) -> RoundCosts:
    told = _ingest_ms(shape)
    lookup = MAX_ROWS * (told - KEEP_MS) + LOOKUP_MS
    drafts = median(each[draft] for each in rounds if each["width"] > 1)
    return RoundCosts(drafts, every_width({each["width"]: each[verify] for each in rounds}), told, lookup)


def _ingest_ms(shape: str) -> float:
    """Milliseconds for the drafter to take a token in: a sixteenth of reading the weights, and the copy that keeps it
    till then."""
    drafter = read_shape(shape).drafter
    assert isinstance(drafter, DFlashConfig)
    hidden, taps = drafter.hidden_size, len(drafter.target_layer_ids)
    keys_values = sum(2 * layer.num_kv_heads * layer.head_dim for layer in drafter.layers)
    weights = hidden * (taps * hidden + keys_values) * torch.bfloat16.itemsize
    return weights / BYTES_PER_MS / MAX_ROWS + KEEP_MS


@dataclass(frozen=True, slots=True)
class DraftRecording:
    """One answer, with the choices of the draft that stood behind every one of its tokens."""

    domain: str
    """What kind of text it is."""
    temperature: float
    prompt_length: int
    blocks: tuple[RecordedChoices, ...]
    anchors: tuple[RecordedDraft, ...]
    """The chains of their first choices."""


@cache
def recorded_drafts() -> tuple[DraftRecording, ...]:
    """The recorded drafts, read once by each worker: a line of JSON for each answer, with a byte for each chance."""
    return tuple(_recording(json.loads(line)) for line in _lines("drafts.xz"))


def recorded_texts() -> list[tuple[list[int], list[int]]]:
    """The ids of the prompt and of the answer of each recording."""
    return [tuple(json.loads(line)) for line in _lines("texts.xz")]


def _lines(name: str) -> list[bytes]:
    return lzma.decompress((HERE / name).read_bytes()).splitlines()


def _recording(line: dict[str, Any]) -> DraftRecording:
    blocks = tuple(_blocks(line))
    anchors = tuple(block.chain() for block in blocks)
    return DraftRecording(line["domain"], line["temperature"], line["prompt_length"], blocks, anchors)


def _blocks(line: dict[str, Any]) -> Iterator[RecordedChoices]:
    chances = tuple(zip(_decoded(line["confidences"]), *map(_decoded, line["further"]), strict=True))
    said = tuple(-1 if byte == NONE_SAID else byte for byte in b64decode(line["said"]))
    for place in _places(line["drafted"]):
        yield RecordedChoices(chances[place], said[place])


def _places(lengths: Sequence[int]) -> Iterator[slice]:
    """The slice of each draft, where drafts of these lengths stand one behind the other."""
    return (slice(start, end) for start, end in pairwise(accumulate(lengths, initial=0)))


def _decoded(chances: str) -> tuple[float, ...]:
    return tuple(map(_CHANCES.__getitem__, b64decode(chances)))
