"""Loads checkpoints: finds files, checks tensors against the config, reads them. Models are built on ``meta`` first, so
their modules are the list of what a checkpoint must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..commands import AttentionBackend, WeightFormat
from ..errors import DeviceFailure, Option, UsageFailure, WeightsFailure
from ..files.headers import Headers, lone_tensors, read_headers, same_bytes
from ..files.json_fields import DOWNLOAD_AGAIN, read_json
from ..files.pointers import refuse_pointer
from ..files.tensors import read_tensors
from ..models.attention_backends import choose_backends
from ..models.dflash.config import DFlashConfig
from ..models.drafter import Drafter
from ..models.drafter_formats import refuse_unread_drafter
from ..models.family import EMBEDDED, DrafterConfig, Family, TargetConfig
from ..models.layers import merge_projections
from ..models.merged_weights import Together
from ..models.packed import hold
from ..models.registry import drafter_config_of, family_of, text_config
from ..models.target import TargetModel
from .assembly import Assembly, held
from .layout import EMBEDDING, HEAD, Layout, Names, layout_of, plain_layout, tensor_names
from .own_tables import draft_tokens, in_files, in_memory, left_on_disk, with_own_tables
from .refusals import refuse_tensors
from .stored_format import Files, read_files

TIED = {"tie_word_embeddings": True}

Progress = Callable[[str, int, int], None]
"""Called with (phase, bytes done, bytes in all) while weights are read."""


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
    """Reads a target's config. Raises ``WeightsFailure`` for one that is damaged or describes another architecture."""
    return _read_target(folder, read_json(folder / "config.json"))[1]


def _read_target(folder: Path, config: dict[str, Any]) -> tuple[Family, TargetConfig]:
    family, generation = family_of(config), folder / "generation_config.json"
    refuse_pointer(generation)
    if _ties_head(folder, family, config):
        nested = {"text_config": {**text_config(config), **TIED}} if "text_config" in config else {}
        config = {**config, **TIED, **nested}
    return family, family.read_config(config, read_json(generation) if generation.exists() else None)


def _ties_head(folder: Path, family: Family, config: dict[str, Any]) -> bool:
    """Whether the files tie the head to the embedding although a config says that it is a tensor of its own: some tools
    that pack a model store both, and a config's parts may disagree."""
    ties = [section.get("tie_word_embeddings", True) for section in (config, text_config(config))]
    if all(ties) or not HEAD.startswith(tuple(family.skipped_tensors)):
        return False
    headers = read_files(folder).headers
    head, embedding = (headers.get(name) for name in (HEAD, tensor_names(family, headers)(EMBEDDING)))
    if head is None:
        return any(section.get("tie_word_embeddings") is True for section in (config, text_config(config)))
    return embedding is not None and same_bytes(head, embedding)


def read_drafter_config(folder: Path, target: TargetConfig, target_folder: Path | None = None) -> DrafterConfig:
    """Reads a drafter's config, and if the target's folder is given (``target_folder``) by its files which tables are
    its own. Raises ``WeightsFailure`` also for a drafter that was made for another target, and where a target's files
    lack the one that their config tells of."""
    config = drafter_config_of(read_json(folder / "config.json")).beside(target)
    config.check(target)
    if config.among and not drafter_headers(folder, config):
        raise WeightsFailure(
            f"config.json in {folder} tells of a drafter among its tensors ({config.among}*), and there is none:"
            " whoever packed this checkpoint left it out.",
            ("Take the original, or a copy that has it. Or draft otherwise: ", Option("drafter", "dflash"), "."),
        )
    if target_folder is None or config.among:
        return config
    return with_own_tables(config, drafter_headers(folder, config), target, in_files(target_folder))


def drafter_headers(folder: Path, config: DrafterConfig) -> Headers:
    """The drafter's tensors in a folder, which may be its target's; raises ``WeightsFailure`` for packed ones and for
    those of formats that are not read."""
    headers = {name: header for name, header in read_headers(folder).items() if name.startswith(config.among)}
    if not config.among:  # a target's have been looked at
        refuse_tensors(headers, read_json(folder / "config.json"), None)
        refuse_unread_drafter(headers)
    return headers | lone_tensors(folder, headers, config.elsewhere)


def target_on_meta(
    folder: Path,
    device: torch.device,
    attention: AttentionBackend = "auto",
    weights: WeightFormat | None = "bf16",
) -> TargetModel:
    """A target with sizes and no memory, as ``load_target`` would load it on the device; raises what that raises before
    it reads a weight. For ``bf16`` the config is enough."""
    if weights == "bf16":
        return _shape(read_target_config(folder), device, attention)
    model, files, layout = _model_and_layout(folder, device, attention, weights)
    _planned[folder, weights] = files, layout
    layout.hold_shapes(model)
    return model


_planned: dict[tuple[Path, WeightFormat | None], tuple[Files, Layout]] = {}
"""Layouts of targets on ``meta`` that are not loaded yet: with tensors for each expert one takes a second."""


def _model_and_layout(
    folder: Path, device: torch.device, attention: AttentionBackend, weights: WeightFormat | None
) -> tuple[TargetModel, Files, Layout]:
    files = read_files(folder, weights)
    family, config = _read_target(folder, files.config)
    model = _shape(config, device, attention)
    planned_for, layout = _planned.get((folder, weights), (None, None))
    if layout is None or planned_for != files:
        layout = layout_of(folder, files, model, family, weights)
    return model, files, layout


def _shape(config: TargetConfig, device: torch.device, attention: AttentionBackend) -> TargetModel:
    """A target on ``meta`` of which nothing is packed yet."""
    backends = choose_backends(attention, config.attention, device, compute_dtype(device))
    with torch.device("meta"):
        model = config.build().to(compute_dtype(device))
    model.use_attention(backends)
    return model


def drafter_shape(config: DrafterConfig, device: torch.device, attention: AttentionBackend = "auto") -> Drafter:
    """A drafter on ``meta`` of which nothing is packed yet."""
    backends = choose_backends(attention, config.layers, device, compute_dtype(device))
    with torch.device("meta"):
        model = config.build()
    model.use_attention(backends)
    return model


def load_target(
    folder: Path,
    device: torch.device,
    progress: Progress,
    attention: AttentionBackend = "auto",
    weights: WeightFormat | None = None,
) -> TargetModel:
    """Loads a target's text model, without vision or audio. ``weights``: the format in which its layers are held, None
    for that of the files. Raises ``WeightsFailure`` for a damaged, unknown or unreadable checkpoint, ``UsageFailure``
    for an attention backend that can't run every layer, and for packed weights that would have to be packed
    otherwise."""
    model, _, layout = _model_and_layout(folder, device, attention, weights)
    _planned.clear()
    _load(model, layout, device, lambda done, total: progress("target", done, total))
    model.prepare()
    if device.type == "cpu":
        merge_projections(model, model.read_together)
    return model


def load_drafter(
    folder: Path,
    target: TargetModel,
    progress: Progress,
    attention: AttentionBackend = "auto",
    noise_embed_scale: float | None = None,
) -> Drafter:
    """Loads a drafter for its target. Raises ``WeightsFailure`` when they don't belong together, ``UsageFailure`` as
    ``load_target``. ``noise_embed_scale`` replaces the scale of a DFlash drafter's input embeddings."""
    config = read_drafter_config(folder, target.config)
    if noise_embed_scale is not None:
        if not isinstance(config, DFlashConfig):
            scale = Option("noise_embed_scale", noise_embed_scale)
            raise UsageFailure((scale, " is for DFlash drafters, and this is another."), ("Leave it out.",))
        config = replace(config, embedding_scale=noise_embed_scale)
    device, headers = target.device, drafter_headers(folder, config)
    if not config.among:
        config = with_own_tables(config, headers, target.config, in_memory(target))
    model = drafter_shape(config, device, attention).to(compute_dtype(device))
    config_json = read_json(folder / "config.json") if config.among else {}
    experts = family_of(config_json).expert_tensors if config_json else {}
    names = Names(config.tensor_name(headers), left_on_disk(config), experts)
    layout = plain_layout(folder, headers, model, names, config_json)
    _load(model, layout, device, lambda done, total: progress("drafter", done, total))
    if model.token_ids is not None:
        model.token_ids = draft_tokens(config, headers, target.config).to(device)
    brings = config.tables.embedding and EMBEDDED in config.target_layer_ids
    target.drafters_embedding = model.embed_tokens.weight.detach() if brings else None
    model.prepare()
    if device.type == "cpu":
        merge_projections(model, model.read_together)
    return model


def _load(
    model: TargetModel | Drafter, layout: Layout, device: torch.device, progress: Callable[[int, int], None]
) -> None:
    """Reads all parameters of a model on ``meta`` and packs each as soon as it is whole: no second copy is ever
    held."""
    dtype = compute_dtype(device)
    done, total = 0, layout.nbytes
    where = {
        stored_part.tensor: (name, stored_part)
        for name, stored in layout.stored.items()
        for stored_part in stored.parts
    }
    begun: dict[str, Assembly] = {}
    on_gpu = device.type == "cuda" and isinstance(model, TargetModel)
    together = Together(model, model.read_together if on_gpu else ())
    extremes: dict[str, Tensor] = {}
    for tensor_name, tensor in read_tensors({tensor: layout.headers[tensor] for tensor in where}, device):
        name, stored_part = where[tensor_name]
        assembly = begun.setdefault(name, Assembly(name, layout.stored[name], dtype))
        if (weight := assembly.add(stored_part, tensor)) is not None:
            del begun[name]
            if isinstance(weight, Tensor):
                extremes[name] = torch.stack(weight.aminmax()).float()  # without the copy that a sum in fp32 would make
            hold(model, name, held(weight, layout.held[name], model.get_parameter(name).dtype))
            together.loaded(name)
        done += tensor.nbytes
        progress(done, total)
    _refuse_nan(extremes)
    model.requires_grad_(False).eval()


def _refuse_nan(extremes: dict[str, Tensor]) -> None:
    """Raises ``WeightsFailure`` for weights with infinities or NaN: then an extreme isn't finite either."""
    finite = torch.stack(list(extremes.values())).isfinite().all(-1).tolist() if extremes else []
    if wrong := [name for name, fine in zip(extremes, finite, strict=True) if not fine]:
        more = f", as {len(wrong) - 1} others do" if len(wrong) > 1 else ""
        what = f"The weights are damaged: {wrong[0]} holds values that are no numbers{more}."
        raise WeightsFailure(what, DOWNLOAD_AGAIN)
