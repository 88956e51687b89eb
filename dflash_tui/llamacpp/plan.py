"""Plans how llama.cpp runs a model on this machine: what drafts, how much context, and the line that says so."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from engine.errors import DeviceFailure, Option, UsageFailure, WeightsFailure
from engine.files.gguf_header import GgufHeader, read_header
from engine.machine import cores

from .machine import Machine

Drafting = Literal["draft-dflash", "draft-dspark", "draft-mtp", "draft-eagle3", "draft-simple", "ngram-simple", "none"]
"""The kind of drafts, by llama.cpp's names."""

OVERHEAD = 512 << 20
"""Bytes that a server takes beside weights and caches."""
USUAL_CONTEXT, LEAST_CONTEXT = 32_768, 2_048
"""Tokens of context where the user names none: as many as the model takes and as fit, between these two."""
CACHE_BYTES = 2
"""Bytes of a cached number, which is fp16."""
LOOKUP_MATCH, LOOKUP_LENGTH = 6, 12
"""For drafts by lookup: how many tokens in a row must have been seen before, and how many of those that followed then
are drafted."""
MTP_LENGTH, SIMPLE_LENGTH = 3, 8
"""Longest drafts, in tokens, of what drafts one token after the other."""
COMPANIONS = ("dflash", "dspark", "mtp", "draft", "assistant", "eagle")
"""Words in the name of a file that drafts for another."""
MOST_LOOKED_AT = 16
"""The most files beside the target whose headers are read."""

GPU_BUILD = "pip install --force-reinstall xllamacpp --index-url https://xorbitsai.github.io/xllamacpp/whl/vulkan"
GPU_PLACES = {"NVIDIA": "/dev/nvidia0", "AMD": "/dev/kfd"}
"""The device files by which Linux shows that a card's driver is there."""

_NO_CHAT = {
    "clip": "the part of a model that sees images",
    "bert": "a model for searching",
    "nomic-bert": "a model for searching",
    "t5encoder": "a model for searching",
    "gemma-embedding": "a model for searching",
}
_DRAFTERS: dict[str, Drafting] = {
    "dflash": "draft-dflash",
    "dflash-draft": "draft-dflash",
    "eagle3": "draft-eagle3",
    "gemma4-assistant": "draft-mtp",
}
"""How a GGUF drafts whose architecture does nothing else."""


@dataclass(frozen=True, slots=True)
class LlamaPlan:
    """What the child is started with."""

    model: GgufHeader
    drafter: GgufHeader | None
    drafting: Drafting
    draft_length: int
    context: int
    gpus: tuple[str, ...]
    """GPUs that take as many layers as fit; with none, all layers stay on the processor."""
    threads: int
    """How many threads compute; 0 lets llama.cpp count the processor's cores."""
    version: str
    """The version of the package that llama.cpp came in."""
    remarks: tuple[str, ...] = ()
    """Sentences on what the user could improve."""

    @property
    def drafter_name(self) -> str | None:
        """The name to show of what drafts; None where nothing does."""
        if self.drafter is not None:
            return self.drafter.name
        names = {"ngram-simple": "lookup in the text so far", "draft-mtp": "the model's own MTP layers"}
        return names.get(self.drafting)

    def line(self) -> str:
        """The plan as a command line, as one would type it for llama.cpp's own server."""
        words = ["llama-server", "-m", self.model.path.name, "-c", str(self.context), "-np", "1"]
        words += [] if self.gpus else ["-ngl", "0"]
        words += ["-t", str(self.threads)] if self.threads else []
        words += ["--spec-type", self.drafting] if self.drafting != "none" else []
        if self.drafter is not None:
            words += ["-md", self.drafter.path.name]
        if self.drafting.startswith("draft"):
            words += ["--spec-draft-n-max", str(self.draft_length)]
        return " ".join(words)

    def orders(self, key: str) -> dict[str, Any]:
        """The message to the child that starts the server, as JSON."""
        return {
            "model": str(self.model.path),
            "drafter": "" if self.drafter is None else str(self.drafter.path),
            "drafting": self.drafting,
            "draft_length": self.draft_length,
            "lookup": [LOOKUP_MATCH, LOOKUP_LENGTH],
            "context": self.context,
            "gpu": bool(self.gpus),
            "threads": self.threads,
            "key": key,
        }


def make_plan(
    target: Path, drafter: Path | None, machine: Machine, context: int | None, device: str, *, drafts: bool = True
) -> LlamaPlan:
    """Plans a target. ``drafter``: None takes one that lies beside the target. ``drafts``: False goes without any.
    ``device``: as in ``EngineOptions``. Raises an ``EngineFailure`` for files that can't be used, or not on this
    machine."""
    model = checked_target(read_header(target))
    chosen = read_header(drafter) if drafter is not None else None
    if chosen is not None:
        check_match(model, chosen)
    elif drafts:
        chosen = companion(model)
    remarks = _about_gpus(machine, device)
    if drafter is None and chosen is not None and not _fits(model, chosen, machine):
        remarks, chosen = (*remarks, f"{chosen.path.name} is left out: the memory is too small for both."), None
    drafting, length = _drafting(model, chosen) if drafts else ("none", 0)
    return LlamaPlan(
        model,
        chosen,
        drafting,
        length,
        _context(model, chosen, machine, context),
        () if device == "cpu" else machine.gpus,
        threads(),
        machine.version,
        remarks,
    )


def _about_gpus(machine: Machine, device: str) -> tuple[str, ...]:
    """Remarks about GPUs. Raises ``DeviceFailure`` where one was asked for and there is none."""
    if machine.gpus or device == "cpu":
        return ()
    unused = next((name for name, path in GPU_PLACES.items() if Path(path).exists()), None)
    how = f"its build for Vulkan drives most: {GPU_BUILD}"
    if device != "auto":
        raise DeviceFailure("The installed llama.cpp sees no GPU.", how[0].upper() + how[1:])
    return () if unused is None else (f"The installed llama.cpp leaves the {unused} GPU alone; {how}",)


def checked_target(model: GgufHeader) -> GgufHeader:
    """Returns the header as it is. Raises ``WeightsFailure`` for a file that holds no model to chat with."""
    name, architecture = model.path.name, model.architecture
    if architecture in _DRAFTERS:
        raise WeightsFailure(
            f"{name} is a drafter ({architecture}): it drafts for another model.",
            ("Name the model first: MODEL.gguf ", Option("drafter", name)),
        )
    what = _NO_CHAT.get(architecture) or (None if model.vocabulary else "without a vocabulary")
    if what is not None:
        raise WeightsFailure(
            f"{name} is {what} ({architecture or 'no architecture'}).", "Name the file with the model."
        )
    return model


def check_match(model: GgufHeader, drafter: GgufHeader) -> None:
    """Raise ``WeightsFailure`` for a drafter that was made for another target."""
    problem = mismatch(model, drafter)
    if problem:
        raise WeightsFailure(
            f"{drafter.path.name} drafts for another target than {model.path.name}: {problem}.",
            ("Name the one that was made for it; without ", Option("drafter"), " the text so far is looked up."),
        )


def mismatch(model: GgufHeader, drafter: GgufHeader) -> str:
    """Why the two are no pair; empty when they may be one."""
    width = model.count("embedding_length")
    reads = drafter.count("target_hidden_size") or drafter.count("embedding_length_out")
    if drafter.architecture == "dflash" and not reads:
        reads = drafter.count("embedding_length")
    if drafter.architecture in _DRAFTERS and reads and width and reads != width:
        return f"it reads states of {reads} numbers, the target's have {width}"
    deepest = max((layer for layer in drafter.of("target_layers") or () if isinstance(layer, int)), default=0)
    if deepest > model.count("block_count"):
        return f"it reads layer {deepest}, the target has {model.count('block_count')}"
    if drafter.vocabulary and drafter.vocabulary != model.vocabulary:
        return f"it knows {drafter.vocabulary} tokens, the target {model.vocabulary}"
    return ""


def companion(model: GgufHeader) -> GgufHeader | None:
    """A drafter that lies beside the target and was made for it; None where there is none."""
    companions = [path for path in sorted(model.path.parent.glob("*.gguf")) if is_companion(path.name)]
    for path in companions[:MOST_LOOKED_AT]:
        try:
            header = read_header(path)
        except WeightsFailure:
            continue  # it can't be read: half a download, for one
        if path != model.path and header.architecture in _DRAFTERS and not mismatch(model, header):
            return header
    return None


def is_companion(name: str) -> bool:
    """Whether a file's name says that it drafts for another."""
    return any(word in name.lower() for word in COMPANIONS)


def threads() -> int:
    """Threads for llama.cpp: as ``OMP_NUM_THREADS`` says, or the cores that the process may use where those aren't all;
    otherwise 0."""
    variable = os.environ.get("OMP_NUM_THREADS", "")
    if variable.isdigit() and int(variable) > 0:
        return int(variable)
    allowed = cores()
    return allowed if allowed < (os.cpu_count() or 0) else 0


def _drafting(model: GgufHeader, drafter: GgufHeader | None) -> tuple[Drafting, int]:
    if drafter is None:
        if model.count("nextn_predict_layers"):
            return "draft-mtp", MTP_LENGTH
        return "ngram-simple", LOOKUP_LENGTH
    kind = _DRAFTERS.get(drafter.architecture, "draft-simple")
    if kind == "draft-simple":
        return kind, SIMPLE_LENGTH
    if kind == "draft-dflash" and "markov_w1.weight" in drafter.tensors:
        return "draft-dspark", drafter.count("block_size") or MTP_LENGTH
    block = drafter.count("block_size")
    return kind, block - 1 if block > 1 else MTP_LENGTH


def _fits(model: GgufHeader, drafter: GgufHeader | None, machine: Machine, context: int = LEAST_CONTEXT) -> bool:
    return memory_needed((model, drafter), context) <= machine.memory


def memory_needed(models: Iterable[GgufHeader | None], context: int) -> int:
    """Bytes that a server takes: the models' weights, caches for ``context`` tokens, and ``OVERHEAD``."""
    return OVERHEAD + sum(model.num_bytes + cache_bytes(model, context) for model in models if model is not None)


def _context(model: GgufHeader, drafter: GgufHeader | None, machine: Machine, wanted: int | None) -> int:
    most = model.count("context_length") or USUAL_CONTEXT
    if wanted is not None and wanted > most:
        raise UsageFailure(
            f"{model.path.name} takes {most} tokens at most, not {wanted}.", ("Try ", Option("max_context", most))
        )
    context = wanted or min(most, USUAL_CONTEXT)
    least = wanted or min(most, LEAST_CONTEXT)
    while context > least and not _fits(model, drafter, machine, context):
        context = max(context // 2, least)
    if not _fits(model, drafter, machine, context):
        needed = memory_needed((model, drafter), context)
        raise DeviceFailure(
            f"{model.path.name} needs {needed / 1e9:.1f} GB with {context} tokens of context, and"
            f" {machine.memory / 1e9:.1f} GB are free.",
            "Close other programs, or choose a smaller model or quantisation.",
        )
    return context


def cache_bytes(model: GgufHeader, context: int) -> int:
    """Bytes of keys and values of ``context`` tokens, as far as the header tells; layers with a window keep no more
    than it spans."""
    layers = model.count("block_count")
    heads = _per_layer(model.of("attention.head_count_kv", model.of("attention.head_count", 0)), layers)
    window = model.count("attention.sliding_window")
    sliding = _per_layer(model.of("attention.sliding_window_pattern", False), layers) if window else [0] * layers
    queries = max(_per_layer(model.of("attention.head_count", 0), 1)[0], 1)
    usual = model.count("embedding_length") // queries
    wide = (model.count("attention.key_length") or usual) + (model.count("attention.value_length") or usual)
    narrow = model.count("attention.key_length_swa") + model.count("attention.value_length_swa") or wide
    return CACHE_BYTES * sum(
        number * (narrow * min(context, window) if slides else wide * context)
        for number, slides in zip(heads, sliding, strict=True)
    )


def _per_layer(value: Any, layers: int) -> list[int]:
    """The values of a header's key for each layer; the file may hold one number for all. A pattern may be a period
    instead: then it is taken that no layer slides."""
    if isinstance(value, list):
        return [int(each) for each in value[:layers]] + [0] * (layers - len(value))
    return [int(value) if not isinstance(value, bool) else 0] * layers
