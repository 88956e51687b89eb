"""Reads the tensors of a checkpoint to a device, as they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from .headers import TensorHeader, opened
from .pinned_reader import read_staged, stored_tensors


def read_tensors(headers: Mapping[str, TensorHeader], device: torch.device) -> Iterator[tuple[str, Tensor]]:
    """Yields tensors by name, in the order in which they are stored. On a CPU safetensors files are mapped, without
    another copy."""
    stored = stored_tensors(headers)
    if device.type == "cuda" or any(tensor.path.suffix == ".gguf" for tensor in stored):
        yield from read_staged(stored, device)
        return
    for path in sorted({tensor.path for tensor in stored}):
        with opened(path, "pt") as file:
            for tensor in stored:
                if tensor.path == path:
                    yield tensor.name, file.get_tensor(tensor.name)
