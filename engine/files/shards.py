"""Which files hold a checkpoint's weights: one ``model.safetensors``, or shards that an index names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import WeightsFailure
from .json_fields import read_json

SINGLE_FILE, INDEX = "model.safetensors", "model.safetensors.index.json"


def missing_weights(folder: Path) -> str | None:
    """The first weight file that a checkpoint's folder lacks, None when it has them all."""
    names = shard_names(folder / INDEX) if is_sharded(folder) else [SINGLE_FILE]
    return next((name for name in names if not (folder / name).exists()), None)


def is_sharded(folder: Path) -> bool:
    """Whether an index says where a checkpoint's tensors are. Where there is one whole file, too, that is the model, as
    it is for ``transformers``: saving a model again may leave an old index behind."""
    return (folder / INDEX).exists() and not (folder / SINGLE_FILE).is_file()


def shard_names(index: Path) -> list[str]:
    """The weight files that a sharded checkpoint's index names. Raises ``WeightsFailure`` for a damaged index."""
    return sorted(set(read_weight_map(index).values()))


def read_weight_map(index: Path) -> dict[str, str]:
    """Which file beside the index holds each tensor. Raises ``WeightsFailure`` for a damaged index."""
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map or not all(map(_is_file_name, weight_map.values())):
        raise WeightsFailure(f"{index} doesn't say which file holds which tensor.", "Download the checkpoint again.")
    return weight_map


def _is_file_name(value: Any) -> bool:
    """Whether a value names a file in the same folder, or in a folder inside it; other paths could lead anywhere."""
    return (
        isinstance(value, str)
        and not any(sign in value for sign in "\0\\:")
        and all(name not in ("", "..") for name in value.split("/"))
        and not value.endswith(".")
    )
