"""From a name to a running pair: find files, check tensors against the config, load. Models are built on ``meta``
first, so their modules are the list of what a checkpoint must hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ..commands import AttentionBackend
from ..errors import DeviceFailure, Option, WeightsFailure
from ..files.json_fields import read_json
from ..files.pinned_reader import DTYPES, read_staged, stored_tensors
from ..files.shards import INDEX, SINGLE_FILE, read_weight_map
from ..hub.pairs import NO_DRAFTER
from ..models.attention_backends import choose_backends
from ..models.dflash.config import DrafterConfig
from ..models.dflash.modules import DFlashDrafter
from ..models.family import Family, TargetConfig
from ..models.registry import drafter_config_of, family_of
from ..models.target import TargetModel

BORROWED = ("lm_head.",)
"""A drafter uses the target's: its own, should its file hold one, stays on disk."""

OWN_DRAFTER = ("Name the target's own drafter with ", Option("drafter"))

Progress = Callable[[str, int, int], None]
"""Told (phase, bytes done, bytes in all) while weights are read."""


def pick_device(wanted: str) -> torch.device:
    """``auto`` is the GPU when there is one. Raises ``DeviceFailure`` when ``cuda`` is asked for and missing."""
    if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        hint = ("Check nvidia-smi, or use ", Option("device", "cpu"), ".")
        raise DeviceFailure("No usable NVIDIA GPU: torch sees none.", hint)
    return torch.device("cuda", torch.cuda.current_device())


def compute_dtype(device: torch.device) -> torch.dtype:
    """bf16 on a GPU. fp32 on the CPU, where bf16 is no faster and flips near-ties between one row and sixteen."""
    return torch.float32 if device.type == "cpu" else torch.bfloat16


def read_target_config(folder: Path) -> TargetConfig:
    """Raises ``WeightsFailure`` for a config that is damaged or describes another architecture."""
    return _read_target(folder)[1]


def _read_target(folder: Path) -> tuple[Family, TargetConfig]:
    config, generation = read_json(folder / "config.json"), folder / "generation_config.json"
    family = family_of(config)
    return family, family.read_config(config, read_json(generation) if generation.exists() else None)


def read_drafter_config(folder: Path, target: TargetConfig) -> DrafterConfig:
    """Raises ``WeightsFailure`` also for a drafter that was made for another target."""
    config = drafter_config_of(read_json(folder / "config.json"))
    _check_match(config, target)
    return config


def target_shape(config: TargetConfig, device: torch.device, attention: AttentionBackend = "auto") -> TargetModel:
    """A target on ``meta``; ``UsageFailure`` for an attention backend that can't run every layer."""
    backends = choose_backends(attention, config.attention, device, compute_dtype(device), "attention_backend")
    with torch.device("meta"):
        model = config.build()
    model.use_attention(backends)
    return model


def drafter_shape(config: DrafterConfig, device: torch.device, attention: AttentionBackend = "auto") -> DFlashDrafter:
    """The same of a drafter."""
    backends = choose_backends(attention, config.layers, device, compute_dtype(device), "draft_attention_backend")
    with torch.device("meta"):
        model = config.build()
    model.use_attention(backends)
    return model


def load_target(
    folder: Path, device: torch.device, progress: Progress, attention: AttentionBackend = "auto"
) -> TargetModel:
    """Loads a target's text model, no vision or audio. ``WeightsFailure`` for a damaged or unknown checkpoint,
    ``UsageFailure`` for an attention backend that can't run every layer."""
    family, config = _read_target(folder)
    model = target_shape(config, device, attention)
    names = {family.tensor_name(name): name for name, _ in model.named_parameters()}
    skipped = family.skipped_tensors
    _load_weights(model, folder, names, skipped, device, lambda done, total: progress("target", done, total))
    model.prepare()
    return model


def load_drafter(
    folder: Path,
    target: TargetModel,
    progress: Progress,
    attention: AttentionBackend = "auto",
    noise_embed_scale: float | None = None,
) -> DFlashDrafter:
    """Loads a DFlash drafter beside its target. ``WeightsFailure`` when they don't belong together, ``UsageFailure`` as
    ``load_target``. ``noise_embed_scale`` replaces the scale of its input embeddings."""
    config = read_drafter_config(folder, target.config)
    if noise_embed_scale is not None:
        config = replace(config, embedding_scale=noise_embed_scale)
    device = target.device
    model = drafter_shape(config, device, attention)
    names = {name: name for name, _ in model.named_parameters()}
    _load_weights(model, folder, names, BORROWED, device, lambda done, total: progress("drafter", done, total))
    model.prepare()
    return model


def _check_match(drafter: DrafterConfig, target: TargetConfig) -> None:
    depth = len(target.layers)
    trained_on = drafter.num_target_layers
    if drafter.hidden_size != target.hidden_size or (trained_on is not None and trained_on != depth):
        raise WeightsFailure(
            f"This drafter was made for a target of {trained_on or '?'} layers of width {drafter.hidden_size};"
            f" this one has {depth} of width {target.hidden_size}.",
            (*OWN_DRAFTER, ", or go without one: ", Option("drafter", NO_DRAFTER), "."),
        )
    if any(index >= depth for index in drafter.target_layer_ids):
        raise WeightsFailure(
            f"This drafter reads target layers {list(drafter.target_layer_ids)}, the target has only {depth}.",
            (*OWN_DRAFTER, "."),
        )
    if drafter.vocab_size not in (None, target.vocab_size) or drafter.mask_token_id >= target.vocab_size:
        raise WeightsFailure(
            f"This drafter was made for a vocabulary of {drafter.vocab_size or '?'} tokens with {drafter.mask_token_id}"
            f" for its mask; this target's has {target.vocab_size}.",
            (*OWN_DRAFTER, "."),
        )


def _load_weights(
    model: nn.Module,
    folder: Path,
    names: dict[str, str],
    skipped: tuple[str, ...],
    device: torch.device,
    progress: Callable[[int, int], None],
) -> None:
    """Checks a checkpoint's names and shapes, then loads tensor by tensor. ``names`` maps tensors to parameters;
    prefixes in ``skipped`` stay on disk."""
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    expected = {tensor: shapes[name] for tensor, name in names.items()}
    where = _locate_tensors(folder)
    dtype = compute_dtype(device)
    done, total = 0, _check_tensors(folder, expected, skipped, where)
    tensors: dict[str, Tensor] = {}
    for name, tensor in _read_tensors(where, list(expected), device):
        tensors[names[name]] = tensor.to(dtype)
        done += tensor.nbytes
        progress(done, total)
    model.load_state_dict(tensors, assign=True)
    model.requires_grad_(False).eval()


def _locate_tensors(folder: Path) -> dict[str, Path]:
    """Which file holds each tensor: by the index of a sharded checkpoint, or the one file there is."""
    index = folder / INDEX
    if index.exists():
        names = read_weight_map(index)
        missing = sorted({shard for shard in names.values() if not (folder / shard).exists()})
        if missing:
            raise WeightsFailure(
                f"{len(missing)} of the checkpoint's files are missing from {folder}, the first is {missing[0]}.",
                "Download the checkpoint again; what is there already is kept.",
            )
        return {name: folder / shard for name, shard in names.items()}
    single = folder / SINGLE_FILE
    if not single.exists():
        raise WeightsFailure(f"There are no weights in {folder}.", "The folder must hold model.safetensors.")
    with _open(single) as file:
        return dict.fromkeys(file.keys(), single)


def _check_tensors(
    folder: Path, expected: dict[str, tuple[int, ...]], skipped: tuple[str, ...], where: dict[str, Path]
) -> int:
    """Compares names and shapes with the config; returns how many bytes there are to read."""
    absent = sorted(expected.keys() - where.keys())
    surplus = sorted(name for name in where.keys() - expected.keys() if not name.startswith(skipped))
    for names, what in ((absent, "lacks"), (surplus, "has, against its config,")):
        if names:
            raise WeightsFailure(
                f"The checkpoint in {folder} {what} {len(names)} tensors, the first is {names[0]}.",
                "Config and weights must belong together; download the checkpoint again.",
            )
    total = 0
    for name, shape, dtype in _read_headers(where, list(expected)):
        if shape != expected[name] or dtype not in DTYPES:
            raise WeightsFailure(
                f"{name} is {dtype}{list(shape)}, the config asks for floating-point {list(expected[name])}.",
                "Config and weights must belong together; download the checkpoint again.",
            )
        total += torch.Size(shape).numel() * DTYPES[dtype].itemsize
    return total


def _read_headers(where: dict[str, Path], names: list[str]) -> Iterator[tuple[str, tuple[int, ...], str]]:
    for path in sorted({where[name] for name in names}):
        with _open(path) as file:
            for name in names:
                if where[name] == path:
                    tensor = file.get_slice(name)
                    yield name, tuple(tensor.get_shape()), tensor.get_dtype()


def _read_tensors(where: dict[str, Path], names: list[str], device: torch.device) -> Iterator[tuple[str, Tensor]]:
    """The tensors on the device, as they are stored. A CPU maps the files: it needs no other copy."""
    paths = sorted({where[name] for name in names})
    if device.type == "cuda":
        parts = (stored_tensors(path, [name for name in names if where[name] == path]) for path in paths)
        yield from read_staged(chain.from_iterable(parts), device)
        return
    for path in paths:
        with _open(path) as file:
            for name in names:
                if where[name] == path:
                    yield name, file.get_tensor(name)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise WeightsFailure(
            f"{path.name} is damaged or incomplete ({error}).", f"Delete {path} and download the checkpoint again."
        ) from None
