"""Writes checkpoints with random weights at the published sizes, in bf16 or packed as they are published: made on the
device tensor by tensor, written in shards."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.commands import WeightFormat
from engine.lab.bench.weights import random_tensor
from engine.models.drafter import Drafter
from engine.models.packed import packable
from engine.models.target import TargetModel
from support.packed_checkpoints import FP8_CONFIG, fp8, in_int32, int4, int4_config

GROUP = 32
"""Neighbours that share a scale."""
SHARD_BYTES = 5_000_000_000
DISK_SHARE = 0.9
"""The share of the free disk that a checkpoint may take."""
PROBE_BYTES = 1_000_000_000


def writable_bytes(folder: Path, seconds: float) -> int:
    """Bytes that fit on the disk and can be written in ``seconds``, judging by one file that is written and deleted."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / "probe"
    block = os.urandom(1 << 20)
    started = time.perf_counter()
    with probe.open("wb") as file:
        for _ in range(PROBE_BYTES >> 20):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    rate = PROBE_BYTES / (time.perf_counter() - started)
    probe.unlink()
    return min(int(shutil.disk_usage(folder).free * DISK_SHARE), int(rate * seconds))


def write_checkpoint(
    folder: Path,
    config: dict[str, Any],
    model: TargetModel | Drafter,
    name_of: Callable[[str], str],
    device: torch.device,
    weights: WeightFormat = "bf16",
) -> tuple[int, float]:
    """Writes a model that stands on ``meta`` as random shards with an index, a target's in some format. ``name_of``:
    what a parameter is called in the file. Returns bytes and seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    said = {"fp8": FP8_CONFIG, "int4": int4_config(GROUP)}.get(weights)
    (folder / "config.json").write_text(json.dumps(config | ({"quantization_config": said} if said else {})))
    started = time.perf_counter()
    packed = set(packable(model)) if weights != "bf16" and isinstance(model, TargetModel) else set()
    shapes = [(name, tuple(parameter.shape)) for name, parameter in model.named_parameters()]
    shards = list(_shards(shapes))
    weight_map: dict[str, str] = {}
    total, generator = 0, torch.Generator(device).manual_seed(0)
    for number, shard in enumerate(shards, start=1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        tensors: dict[str, Tensor] = {}
        for name, shape in shard:
            made = random_tensor(name, shape, generator, torch.bfloat16, model.branch_ends)
            parts = _packed(made, weights) if name in packed else {"": made}
            tensors |= {name_of(name) + ending: part.cpu() for ending, part in parts.items()}
        save_file(tensors, folder / file)
        _flush(folder / file)
        weight_map |= dict.fromkeys(tensors, file)
        total += sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return total, time.perf_counter() - started


def _packed(weight: Tensor, weights: WeightFormat) -> dict[str, Tensor]:
    """The tensors as which compressed-tensors stores a weight [..., rows, depth], by the ends of their names."""
    matrices = [weight] if weight.ndim == 2 else list(weight)  # one after the other: fp32 takes room
    if weights == "fp8":
        made = [fp8(matrix.float())[:2] for matrix in matrices]
        numbers, scales = ([each[part] for each in made] for part in (0, 1))
        return {"": _stacked(numbers, weight), "_scale": _stacked(scales, weight)}
    quarters = [int4(matrix.float(), GROUP, negative=False)[:2] for matrix in matrices]
    packed = [in_int32(numbers) for numbers, _ in quarters]
    return {"_packed": _stacked(packed, weight), "_scale": _stacked([scale for _, scale in quarters], weight)}


def _stacked(parts: list[Tensor], weight: Tensor) -> Tensor:
    return parts[0].contiguous() if weight.ndim == 2 else torch.stack(parts)


def _num_bytes(tensor: tuple[str, tuple[int, ...]]) -> int:
    return 2 * torch.Size(tensor[1]).numel()


def _shards(shapes: Iterable[tuple[str, tuple[int, ...]]]) -> Iterator[list[tuple[str, tuple[int, ...]]]]:
    shard: list[tuple[str, tuple[int, ...]]] = []
    size = 0
    for tensor in shapes:
        if shard and size + _num_bytes(tensor) > SHARD_BYTES:
            yield shard
            shard, size = [], 0
        shard.append(tensor)
        size += _num_bytes(tensor)
    yield shard


def _flush(path: Path) -> None:
    """Writes a file to the disk and out of the page cache, so that loading reads the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
