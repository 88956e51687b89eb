"""Checkpoints with random weights at the published sizes: made on the device tensor by tensor, written in shards."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from engine.bench.weights import random_tensor
from engine.models.dflash.modules import DFlashDrafter
from engine.models.target import TargetModel

SHARD_BYTES = 5_000_000_000
DISK_SHARE = 0.9
"""Of the free disk, what a checkpoint may take."""
PROBE_BYTES = 1_000_000_000


def writable_bytes(folder: Path, seconds: float) -> int:
    """What fits on the disk and can be written in that time, judging by one file that is written and deleted."""
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
    folder: Path, config: dict[str, Any], model: TargetModel | DFlashDrafter, prefix: str, device: torch.device
) -> tuple[int, float]:
    """Writes a model that stands on ``meta`` as random shards with an index. Returns bytes and seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    started = time.perf_counter()
    shapes = [(prefix + name, tuple(parameter.shape)) for name, parameter in model.named_parameters()]
    shards = list(_shards(shapes))
    weight_map: dict[str, str] = {}
    generator = torch.Generator(device).manual_seed(0)
    for number, shard in enumerate(shards, start=1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        ends = model.branch_ends
        tensors = {name: random_tensor(name, shape, generator, torch.bfloat16, ends).cpu() for name, shape in shard}
        save_file(tensors, folder / file)
        _flush(folder / file)
        weight_map |= {name: file for name, _ in shard}
    total = sum(map(_num_bytes, shapes))
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return total, time.perf_counter() - started


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
    """To the disk and out of the page cache, so that loading reads the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
