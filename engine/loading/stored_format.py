"""In which format a folder's weights are stored, by its tensors' names and headers: no torch, no weight is read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ..commands import WeightFormat
from ..files.headers import Headers, read_headers
from ..files.json_fields import read_json
from .refusals import refuse_config, refuse_tensors

GROUPS = (32, 64, 128)
"""How many neighbours of an INT4 weight may share a scale."""


@dataclass(frozen=True, slots=True)
class StoredFormat:
    """How the weights of a checkpoint's layers lie in its files."""

    weights: WeightFormat
    """``bf16`` stands for floats of any size. In a mixture the one with the most bytes besides those."""
    group: int = 0
    """INT4: how many neighbours share a scale."""
    scales: str = ""
    """INT4: the scales' dtype, as safetensors calls it: BF16, F16 or F32."""

    def __str__(self) -> str:
        if self.weights == "int4":
            return f"INT4 in groups of {self.group}"
        return {"bf16": "bf16", "fp8": "FP8"}[self.weights]


def stored_format(folder: Path, room: int | None = None) -> StoredFormat:
    """What a folder holds. Raises ``WeightsFailure`` for a damaged checkpoint, and for a format that the engine can't
    compute with: it names the format, and what would work instead in ``room`` (bytes free on the device; None: any)."""
    config = read_json(folder / "config.json")
    headers = read_headers(folder)
    refuse_tensors(headers, config, room)
    refuse_config(config, room)
    return format_of(headers)


def format_of(headers: Headers) -> StoredFormat:
    """The format of tensors that are none of those that are refused."""
    sizes: Counter[WeightFormat] = Counter()
    for name, header in headers.items():
        if name.endswith("_packed") and header.dtype == "I32":
            sizes["int4"] += header.nbytes
        elif header.dtype == "F8_E4M3":
            sizes["fp8"] += header.nbytes
    if not sizes:
        return StoredFormat("bf16")
    weights = sizes.most_common(1)[0][0]
    return _int4(headers) if weights == "int4" else StoredFormat(weights)


def _int4(headers: Headers) -> StoredFormat:
    """By the largest packed tensor."""
    packed = {name: header for name, header in headers.items() if name.endswith("_packed")}
    largest = max(packed, key=lambda name: packed[name].nbytes)
    scales = headers.get(largest.removesuffix("_packed") + "_scale")
    if scales is None or not scales.shape or not scales.shape[-1]:
        return StoredFormat("int4")
    return StoredFormat("int4", packed[largest].shape[-1] * 8 // scales.shape[-1], scales.dtype)
