"""Checkpoints that a test changes, and what is said of those that are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.errors import WeightsFailure

Tensors = dict[str, Tensor]


def copied(source: Path, folder: Path) -> Path:
    """A checkpoint's files in another folder, which is returned."""
    for path in source.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def edit_config(folder: Path, section: str = "", **changes: Any) -> None:
    """None takes a field away. ``section``: of the config, such as text_config, if not its top level."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    edited = config[section] if section else config
    edited.update(changes)
    for name in [name for name in changes if edited[name] is None]:
        del edited[name]
    path.write_text(json.dumps(config))


def edit_tensors(folder: Path, change: Callable[[Tensors], object]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    whole = {name: part.contiguous() for name, part in tensors.items()}
    save_file(whole, folder / "model.safetensors", metadata={"format": "pt"})


def refusal(step: Callable[[], object]) -> str:
    """What is said of a checkpoint that a step refuses. There is always a hint."""
    with pytest.raises(WeightsFailure) as caught:
        step()
    assert str(caught.value) and caught.value.hint
    return str(caught.value)
