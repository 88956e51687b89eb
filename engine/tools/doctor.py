"""Examines what this machine has for the engine, and what is in the way. Only ``examine`` imports torch; no network is
used."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from ..commands import Method
from ..errors import EngineFailure, Fetch, Reinstall, Text, WeightsFailure
from ..events import ErrorKind
from ..files.json_fields import read_json
from ..files.shards import missing_weights
from ..hub import environment
from ..hub.pairs import BUNDLED_PAIR, kind_of
from ..machine import cores, memory_bytes
from ..models.drafter_formats import drafter_reader
from ..models.family import DrafterConfig
from .gpus import driver_says

Standing = Literal["ok", "note", "broken"]

NEEDED_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "huggingface_hub")
OPTIONAL_PACKAGES = ("triton", "flash_attn")
TRITON_KNOWN = {
    "3.6.0": "Known good: the kernels were checked and measured with it.",
    "3.7.1": "Known good: rounds are as fast as with 3.6.0, INT4's prompts perhaps a fifth slower.",
}
"""By version, what is known of Triton: with these the tests interpret and compile the kernels."""
TRITON_UNKNOWN = f"Nobody has tried the kernels with this Triton. Known good: {', '.join(TRITON_KNOWN)}."
HEADS = (("target", 256), ("target", 512), ("drafter", 128))
"""Sizes of attention heads in the published pairs."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact. ``value`` can be written as JSON; ``hint`` says what to do about a fact that isn't ``ok``."""

    section: str
    name: str
    value: Any
    standing: Standing = "ok"
    hint: Text = ""
    kind: ErrorKind = "device"
    """The kind of failure to which a ``broken`` fact leads."""


def examine() -> Iterator[Finding]:
    """Yields every fact about packages, devices, attention backends and models; slow ones come as they are known."""
    yield from packages()
    yield from _machine()
    yield from _gpus()
    yield from _attention()
    yield from models()


def packages() -> Iterator[Finding]:
    yield Finding("versions", "python", platform.python_version())
    for name in NEEDED_PACKAGES:
        installed = version_of(name)
        if installed is None:
            yield Finding("versions", name, None, "broken", (Reinstall(), ": make chat."))
        else:
            yield Finding("versions", name, installed)
    for name in OPTIONAL_PACKAGES:
        version = version_of(name)
        hint = triton_hint(version) if name == "triton" and version else ""
        yield Finding("versions", name, version, "note" if hint == TRITON_UNKNOWN else "ok", hint)


def triton_hint(installed: str) -> str:
    """What is known of a version of Triton; a build of its own (``3.7.1+git``) is that version."""
    return TRITON_KNOWN.get(installed.partition("+")[0], TRITON_UNKNOWN)


def _machine() -> Iterator[Finding]:
    yield Finding("machine", "system", f"{platform.system()} {platform.release()} {platform.machine()}")
    yield Finding("machine", "cpu_cores", os.cpu_count())
    if (usable := cores()) != os.cpu_count():
        yield Finding("machine", "usable_cores", usable)
    yield Finding("machine", "memory_bytes", memory_bytes() or None)


def _gpus() -> Iterator[Finding]:
    """What the driver sees, then what torch can use: a GPU that only the driver knows runs nothing."""
    seen = _driver_gpus()
    yield Finding("gpu", "driver", seen[0]["driver"] if seen else None)
    try:
        import torch
    except (ImportError, OSError) as error:
        yield Finding("gpu", "torch", str(error), "broken", (Reinstall(), ": make chat."))
        return
    yield Finding("gpu", "torch_cuda", torch.version.cuda)
    usable = torch.cuda.is_available()
    if seen and not usable:
        hint = "torch can't use the GPU: install a CUDA build of torch that suits the driver (make clean; make chat)."
        yield Finding("gpu", "usable", False, "note", hint)
    elif not usable:
        yield Finding("gpu", "usable", False, "note", "No NVIDIA GPU: the CPU runs the bundled pair well.")
    else:
        yield Finding("gpu", "usable", True)
    for index in range(torch.cuda.device_count() if usable else 0):
        free, total = torch.cuda.mem_get_info(index)
        major, minor = torch.cuda.get_device_capability(index)
        name = torch.cuda.get_device_name(index)
        facts = {"name": name, "capability": f"{major}.{minor}", "free_bytes": free, "total_bytes": total}
        facts |= _pace(index, free)
        yield Finding("gpu", f"cuda:{index}", facts)


def _pace(index: int, free: int) -> dict[str, int]:
    """What a GPU's memory was measured to read in a second: the ceiling of every token without speculation."""
    import torch

    from ..measured.ceiling import BESIDE_BYTES, memory_pace

    pace = memory_pace(torch.device("cuda", index)) if free > 3 * BESIDE_BYTES else None
    return {} if pace is None else {"read_per_second_bytes": round(pace)}


def _attention() -> Iterator[Finding]:
    """The attention backends, whether each runs here, and which ``auto`` picks: one that could run need not be
    picked."""
    try:
        from ..loading.checkpoint import compute_dtype, pick_device
        from ..models.attention_backends import BACKENDS, TRITON, auto_choice
    except (ImportError, OSError):  # without torch, which was reported already
        return
    device = pick_device("auto")
    for name, backend in BACKENDS.items():
        reason = backend.why_not(min(size for _, size in HEADS), device, compute_dtype(device))
        hint = "" if reason is None else f"{reason[0].upper()}{reason[1:]}."
        yield Finding("attention", name, reason is None, hint=hint)
    picked = {f"{role} {size}": auto_choice(size, device, compute_dtype(device)) for role, size in HEADS}
    yield Finding("attention", "auto", picked)
    reason = TRITON.why_not(max(size for _, size in HEADS), device, compute_dtype(device))
    yield Finding("attention", "rounds", "on the GPU" if reason is None else f"by the host: {reason}")


def models() -> Iterator[Finding]:
    yield _bundled_pair()
    try:
        environment.require_settings()
        from huggingface_hub import constants

        from ..hub.blobs import cache_directory
        from ..hub.download import cached_models, free_bytes, is_offline
        from ..hub.failures import read_token, require_token
    except (ImportError, OSError):  # reported already
        return
    except WeightsFailure as failure:
        yield Finding("models", "hub", str(failure), "broken", failure.hint, "weights")
        return
    yield Finding("models", "hub", constants.ENDPOINT)
    yield Finding("models", "offline", is_offline())
    try:
        require_token()  # whether the hub accepts the token would need the network
        yield Finding("models", "access_token", read_token() is not None)
    except WeightsFailure as failure:
        yield Finding("models", "access_token", str(failure), "broken", failure.hint, "weights")
    yield Finding("models", "cache", str(cache_directory()))
    yield Finding("models", "cache_free_bytes", free_bytes())
    for model in cached_models():
        facts: dict[str, object] = {"size_bytes": model.num_bytes, "whole": model.whole}
        hint: Text = "" if model.whole else ("Unfinished: ", Fetch(model.name))
        try:
            if (method := method_of(model.name)) is not None:
                facts["drafts"] = method
            if config := drafter_config_in(model.name):
                facts["rounds"] = rounds_of(config)
        except WeightsFailure as failure:
            hint = hint or str(failure)
        yield Finding("models", model.name, facts, "note" if hint else "ok", hint)


def method_of(name: str) -> Method | None:
    """How a drafter in the cache guesses, by its config; None for what is no drafter. Raises ``WeightsFailure`` for one
    that isn't read."""
    config = drafter_config_in(name)
    return kind_of(name) if config is None else config.method


def drafter_config_in(name: str) -> DrafterConfig | None:
    """The config of a drafter in the cache, None for what is none; raises as ``method_of``."""
    from ..hub.download import cached_folder

    folder = cached_folder(name)
    if folder is None or not (folder / "config.json").is_file():
        return None
    reader = drafter_reader(config := read_json(folder / "config.json"))
    return None if reader is None else reader(config)


def rounds_of(config: DrafterConfig) -> str:
    """Who runs the rounds in which a drafter drafts here, as far as it decides that."""
    from ..loading.checkpoint import compute_dtype, pick_device
    from ..models.attention_backends import why_host_rounds

    device = pick_device("auto")
    reason = why_host_rounds("auto", config.layers, device, compute_dtype(device))
    return "on the GPU" if reason is None else f"by the host: {reason}"


def _bundled_pair() -> Finding:
    folders = (BUNDLED_PAIR / "target", BUNDLED_PAIR / "drafter")
    try:
        name = read_json(BUNDLED_PAIR / "about.json").get("name")
        missing = [folder.name for folder in folders if missing_weights(folder)]
    except EngineFailure as failure:
        return Finding("models", "bundled_pair", str(failure), "broken", failure.hint, "weights")
    if missing:
        hint = (Reinstall(), ".")
        return Finding("models", "bundled_pair", f"{missing[0]} has no weights", "broken", hint, "weights")
    return Finding("models", "bundled_pair", name)


def _driver_gpus() -> list[dict[str, str]]:
    """The driver's own list: name and driver version of each GPU."""
    rows = [line.split(", ") for line in driver_says("name,driver_version", 10.0)]
    return [{"name": row[0], "driver": row[1]} for row in rows if len(row) == 2]


def version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
