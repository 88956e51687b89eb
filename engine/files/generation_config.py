"""What a checkpoint's makers say of sampling, in its ``generation_config.json``."""

from __future__ import annotations

from pathlib import Path

from ..errors import WeightsFailure
from .json_fields import Fields, read_json

RANGES = {"temperature": (0.0, 2.0), "top_p": (0.0, 1.0), "top_k": (0.0, 1e6), "repetition_penalty": (0.0, 10.0)}
"""Fields that are told, each above the first and at most the second; ``repetition_penalty`` isn't computed here."""


def published_sampling(folder: Path) -> dict[str, float] | None:
    """The fields of ``RANGES`` in a checkpoint's generation_config.json that change what is sampled; None where it says
    that nothing is (``do_sample``), or says none of them. What is damaged is left out: only advice hangs on it."""
    try:
        fields = Fields(read_json(folder / "generation_config.json"), "generation_config.json")
    except WeightsFailure:
        return None
    if fields.raw("do_sample") is not True:
        return None
    values: dict[str, float] = {}
    for name, (low, high) in RANGES.items():
        value = fields.raw(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and low < value <= high:
            values[name] = int(value) if name == "top_k" else float(value)
    if values.get("repetition_penalty") == 1.0:
        del values["repetition_penalty"]
    return values or None
