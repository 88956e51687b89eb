"""Refuses formats with which the engine doesn't compute: each is named before anything is loaded, with what works
instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from ..errors import Load, Text, WeightsFailure
from ..files.gguf import Gguf, in_llama_cpp
from ..files.headers import BLOCKS, FLOATS, Headers, TensorHeader
from ..models.registry import find_family, text_config

READ = (
    "The engine reads bf16, FP8 with a scale per row or block, and INT4 in groups of 32, 64 or 128 without zero points."
)

METHODS = {
    "aqlm": "AQLM",
    "auto-round": "AutoRound",
    "autoround": "AutoRound",
    "awq": "AWQ",
    "bitnet": "BitNet",
    "bitsandbytes": "bitsandbytes",
    "eetq": "EETQ",
    "fbgemm_fp8": "FP8 of FBGEMM",
    "gptq": "GPTQ",
    "higgs": "HIGGS",
    "hqq": "HQQ",
    "intel/auto-round": "AutoRound",
    "mxfp4": "MXFP4",
    "paroquant": "ParoQuant",
    "quanto": "Quanto",
    "quark": "Quark",
    "spqr": "SpQR",
    "torchao": "torchao",
    "vptq": "VPTQ",
}
"""``quant_method`` of config.json, and what people call it."""

ENDINGS = {
    ".absmax": "bitsandbytes",
    ".SCB": "bitsandbytes",
    ".qweight": "GPTQ or AWQ",
    ".theta": "ParoQuant",
    ".pairs": "ParoQuant",
    "_g_idx": "INT4 with its columns in an order of their own (activation ordering)",
    "_global_scale": "NVFP4 (compressed-tensors)",
    ".weight_scale_2": "NVFP4 (ModelOpt)",
    ".bitmask": "2:4 sparse",
    "_blocks": "MXFP4",
}
"""Endings of tensor names that only one format has."""
ANY_ENDING = tuple(ENDINGS)

FOUR_BIT_FLOATS = {"F8_E4M3": "NVFP4", "U8": "MXFP4", "F8_E8M0": "MXFP4"}
"""Formats of packed floats, by the dtype of their scales."""


def refuse_tensors(headers: Headers, config: Mapping[str, Any], room: int | None) -> None:
    """Raises ``WeightsFailure`` where tensors show a format that is not read. ``config.json`` only helps to name it:
    the tensors are what is there. ``room``: bytes free on the device."""
    for name in _signs_of_formats(headers):
        method = str(quantization_of(config).get("quant_method", "")).lower()
        refuse(METHODS.get(method, name), config, room)


def refuse_gguf(path: Path, file: Gguf, config: Mapping[str, Any]) -> None:
    """Raises ``WeightsFailure`` for a GGUF file whose matrices are neither Q4_0 nor floats, nor blocks that the model's
    family unpacks (the embedding may have more bits), and for one of another family than ``config.json`` says."""
    family = find_family(config)
    gguf = None if family is None else family.gguf
    if gguf is not None and file.architecture != gguf.architecture:
        raise WeightsFailure(
            f"{path.name} is a model of the architecture {file.architecture!r};"
            f" config.json beside it describes {gguf.architecture!r}.",
            "Leave files of one model in a folder.",
        )
    for name, header in file.tensors.items():
        any_block = name == "token_embd.weight" or (gguf is not None and gguf.unpacked)
        if header.dtype not in (*FLOATS, "Q4_0", *(BLOCKS if any_block else ())):
            reads = f"{', '.join(BLOCKS)} and floats" if any_block else "Q4_0, as in Google's QAT"
            raise WeightsFailure(
                f"{path.name} is {header.dtype} (in {name}), which the engine doesn't compute with.",
                (f"Of GGUF files the engine reads {reads}. ", *in_llama_cpp(path)),
            )


def refuse_config(config: Mapping[str, Any], packed: bool, room: int | None) -> None:
    """Raises ``WeightsFailure`` for what a config says and tensors can't show: rotated rows, and packed numbers of
    other sizes or with zero points. Beside floats, such words may only say what a model was trained for, and are
    allowed."""
    quantization = quantization_of(config)
    if quantization.get("transform_config"):
        refuse("a compressed-tensors checkpoint whose rows are rotated (transform_config)", config, room)
    for weights in declared_weights(quantization) if packed else ():
        bits, kind = weights.get("num_bits"), weights.get("type", "int")
        if kind == "int" and bits != 4 and isinstance(bits, int):
            refuse(f"INT{bits}", config, room)
        if kind == "int" and weights.get("symmetric") is False:
            refuse("INT4 with zero points (asymmetric)", config, room)
        if kind == "float" and bits != 8 and isinstance(bits, int):
            refuse("NVFP4" if weights.get("group_size") == 16 else "MXFP4", config, room)


def refuse(name: str, config: Mapping[str, Any], room: int | None) -> NoReturn:
    raise WeightsFailure(f"This checkpoint is {name}, which the engine doesn't compute with.", advice(config, room))


def advice(config: Mapping[str, Any], room: int | None) -> Text:
    """What would work instead, of the model that a config describes, in ``room`` bytes."""
    family, text = find_family(config), text_config(config)
    shape = (text.get("hidden_size"), text.get("num_hidden_layers"))
    pairs = () if family is None else family.pairs
    copies = [copy for pair in pairs if (pair.hidden_size, pair.num_layers) == shape for copy in pair.copies]
    fitting = [copy for copy in copies if room is None or copy.nbytes < room]
    if not copies:
        return READ
    if not fitting:
        return (READ, f" None of this model's copies fits in {(room or 0) / 1e9:.0f} GB; a smaller model would.")
    words: list[Any] = [READ, " Of this model there are "]
    for number, copy in enumerate(fitting):
        words += [", " if number else "", Load(copy.name), f" ({copy.nbytes / 1e9:.0f} GB)"]
    return (*words, ".")


def quantization_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of ``config.json`` about quantisation; empty where there is none."""
    for section in (config, text_config(config)):
        quantization = section.get("quantization_config") or section.get("compression_config")
        if isinstance(quantization, Mapping):
            return quantization
    return {}


def declared_weights(quantization: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields what compressed-tensors' groups say of their weights."""
    groups = quantization.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping):
            yield weights


def declared_block(quantization: Mapping[str, Any]) -> tuple[int, int]:
    """Rows and columns of FP8 that share a scale; those of all that is published where nothing is said of it."""
    match quantization.get("weight_block_size"):
        case [int(rows), int(columns)] if rows > 0 and columns > 0:
            return rows, columns
    return 128, 128


def _signs_of_formats(headers: Headers) -> Iterator[str]:
    for name, header in headers.items():
        if name.endswith(ANY_ENDING):
            yield next(ENDINGS[ending] for ending in ANY_ENDING if name.endswith(ending))
        if sign := _by_dtype(name, header, headers):
            yield sign


def _by_dtype(name: str, header: TensorHeader, headers: Headers) -> str | None:
    if header.dtype == "U32" and name.endswith(".weight"):
        return "MLX"
    if header.dtype == "I8" and name.endswith(".weight"):
        return "INT8"
    if header.dtype == "F8_E5M2":
        return "FP8 of the kind E5M2"
    if header.dtype == "U8" and name.endswith(("_packed", ".weight")):
        scales = headers.get(name.removesuffix("_packed") + "_scale")
        return FOUR_BIT_FLOATS.get("" if scales is None else scales.dtype, "packed in bytes")
    return None
