"""Decides which tensors of a checkpoint make up each parameter of a target, and as which kind of weight it is held. All
is checked by the files' headers, before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..commands import WeightFormat
from ..errors import Option, UsageFailure, WeightsFailure
from ..files.headers import BLOCKS, FLOATS, Headers, TensorHeader, opened, same_bytes
from ..files.json_fields import DOWNLOAD_AGAIN
from ..files.pinned_reader import DTYPES
from ..kernels.weights.fp8 import Fp8Weight
from ..kernels.weights.int4 import GROUPS, Int4Weight
from ..kernels.weights.mxfp4 import GROUP, Mxfp4Weight
from ..kernels.weights.panels import DEPTH, ROWS
from ..models.drafter import Drafter
from ..models.family import Family
from ..models.layers import AttentionModule
from ..models.packed import hold, packable
from ..models.target import TargetModel
from .grid import scales_of
from .refusals import advice, declared_block, declared_weights, quantization_of, refuse
from .stored_format import OF_BLOCKS, Files, format_of

PACKED, SCALE, ZERO_POINT = "_packed", "_scale", "_zero_point"
BLOCKS_4, EXPONENTS = "_blocks", "_scales"
ENDINGS = ("", PACKED, SCALE, OF_BLOCKS, ZERO_POINT, BLOCKS_4, EXPONENTS)
"""What follows a weight's name in the names of its tensors."""
SCALES = ("BF16", "F16", "F32")
"""Dtypes that scales may have."""
UNREAD = (
    "_shape", ".input_scale", ".output_scale", ".q_scale", ".k_scale", ".v_scale",
    "rotary_emb.inv_freq", "rotary_emb.original_inv_freq", "rotary_emb.cos_cached", "rotary_emb.sin_cached",
)  # fmt: skip
"""Endings of tensors that stay on disk: the config has shapes and rotary frequencies, nothing rounds activations."""

IN_BLOCKS = "F8_E4M3 in blocks"
"""Of numbers that have a scale for each block, and become floats while they are read."""
Piece = tuple[int | None, tuple[int, int], str]
"""Expert, rows and name of a weight that is a parameter, or a part of one: as in ``Part``."""

NOT_OF_TEXT = ("rope_freqs.", "v.", "mm.", "a.")
"""Beginnings of tensor names in a GGUF file that are computed from the config, or that text doesn't need."""
META = torch.device("meta")
NAMES = {dtype: name for name, dtype in DTYPES.items()}
EMBEDDING = "embed_tokens.weight"
BLOCK = 32
"""Neighbours that share a scale in Q4_0, and in the INT4 that is made here."""
SAMPLED_ROWS = 64
"""Rows of a weight that are looked at to learn whether it lies on a grid."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of weight with all that its size depends on."""

    format: WeightFormat
    group: int = 0
    scales: str = ""
    """INT4: the scales' dtype, as safetensors calls it."""


PLAIN = Kind("bf16")


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor of a checkpoint and its place in a parameter."""

    tensor: str
    ending: str
    expert: int | None = None
    rows: tuple[int, int] = (0, 0)
    """Rows of the expert that it holds: the first, and the one behind the last."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A parameter as the files store it."""

    kind: Kind
    dtype: str
    """The dtype of plain numbers, by its name in safetensors."""
    shape: tuple[int, ...]
    parts: tuple[Part, ...]
    interleaved: int = 0
    """If not 0, how many rows each of its heads has; rows of a head's two halves alternate."""
    transposed: bool = False
    """Whether its rows are columns in the file."""
    block: tuple[int, int] = (1, 1)
    """Of numbers ``IN_BLOCKS``: rows and columns that share a scale."""
    order: Tensor | None = None
    """Which of the file's rows each row is: see ``TargetModel.row_order``."""


@dataclass(frozen=True, slots=True)
class Layout:
    """All parameters of a target, by name."""

    headers: Headers
    stored: dict[str, Stored]
    held: dict[str, Kind]

    @property
    def nbytes(self) -> int:
        """Bytes that are read from disk."""
        return sum(self.headers[part.tensor].nbytes for stored in self.stored.values() for part in stored.parts)

    def hold_shapes(self, model: TargetModel) -> None:
        """Makes a model on ``meta`` hold the kinds of weights that it will have."""
        for name, kind in self.held.items():
            shape = self.stored[name].shape
            if kind.format == "fp8":
                hold(model, name, Fp8Weight.allocate(*shape, device=META))
            elif kind.format == "int4":
                scales = DTYPES[kind.scales]
                hold(model, name, Int4Weight.allocate(*shape, device=META, group=kind.group, scales=scales))
            elif kind.format == "mxfp4":
                hold(model, name, Mxfp4Weight.allocate(*shape, device=META))


def layout_of(folder: Path, files: Files, model: TargetModel, family: Family, weights: WeightFormat | None) -> Layout:
    """The layout of a checkpoint whose target is given on ``meta``. ``weights``: how to hold what may be packed, None:
    as it is stored. Raises ``WeightsFailure`` for tensors that are missing, superfluous or not as they should be."""
    name_of = tensor_names(family, files.headers)
    skipped = tuple(family.skipped_tensors)
    names = Names(name_of, skipped, family.expert_tensors, transposed=family.transposed)
    if files.gguf:
        if family.gguf is None:
            refuse("a GGUF file of a family that the engine reads from safetensors alone", files.config, None)
        names = Names(family.gguf.tensor_name, NOT_OF_TEXT, interleaved=family.gguf.interleaved)
    stored = _Finder(folder, files.headers, names, files.config).find_all(model)
    return Layout(files.headers, stored, _kinds(model, files.headers, stored, weights))


def tensor_names(family: Family, headers: Headers) -> Callable[[str], str]:
    """What makes a tensor's name of a parameter's: checkpoints of the text model alone may have other names."""
    alone = family.tensor_name_alone
    if alone is None or family.tensor_name(EMBEDDING) in headers or alone(EMBEDDING) not in headers:
        return family.tensor_name
    return alone


def plain_layout(folder: Path, headers: Headers, model: nn.Module, names: Names, config: Mapping[str, Any]) -> Layout:
    """The layout of a model that holds floats and whose tensors are named by ``names``."""
    stored = _Finder(folder, headers, names, config).find_all(model)
    return Layout(headers, stored, dict.fromkeys(stored, PLAIN))


@dataclass(frozen=True, slots=True)
class Names:
    """How a checkpoint names its tensors, by its ``Family``."""

    of: Callable[[str], str]
    skipped: tuple[str, ...]
    experts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    interleaved: tuple[str, ...] = ()
    transposed: tuple[str, ...] = ()


class _Finder:
    """Finds the tensors of a model's parameters."""

    def __init__(self, folder: Path, headers: Headers, names: Names, config: Mapping[str, Any]):
        self._folder, self._headers, self._names, self._config = folder, headers, names, config
        self._used: set[str] = set()
        self._absent: list[str] = []
        declared = [each.get("group_size") for each in declared_weights(quantization_of(config))]
        self._groups = {size for size in declared if isinstance(size, int) and size > 0}
        self._block = declared_block(quantization_of(config))

    def find_all(self, model: nn.Module) -> dict[str, Stored]:
        """Where each parameter is stored. Raises ``WeightsFailure`` for tensors that are missing, superfluous or not as
        they should be."""
        stored = {name: self._find(name, tuple(part.shape)) for name, part in model.named_parameters()}
        self._check_all_used()
        found = {name: each for name, each in stored.items() if each is not None}
        for name in found if self._names.interleaved else ():
            if name.endswith(self._names.interleaved):
                attention = model.get_submodule(name.rsplit(".", 2)[0])
                assert isinstance(attention, AttentionModule)
                found[name] = replace(found[name], interleaved=attention.config.head_dim)
        if isinstance(model, TargetModel | Drafter):
            orders = {name: model.row_order(name) for name in found}
            found |= {name: replace(found[name], order=order) for name, order in orders.items() if order is not None}
        return found

    def _find(self, name: str, shape: tuple[int, ...]) -> Stored | None:
        """Where one parameter is stored; None for a missing one."""
        whole = self._names.of(name)
        split = self._split_names(name, shape)
        if not any(self._tensors(base) for _, _, base in split):
            return self._one(name, [(None, (0, 0), whole)], shape)
        if self._tensors(whole):
            raise _wrong(f"The checkpoint has {whole} twice: for all experts at once, and for each by itself.")
        return self._one(name, split, shape)

    def _check_all_used(self) -> None:
        unread = (name for name in self._headers.keys() - self._used if not name.startswith(self._names.skipped))
        surplus = [name for name in unread if not name.endswith(UNREAD) and not self._is_copy(name)]
        for names, what in ((self._absent, "lacks"), (surplus, "has, against its config,")):
            if names:
                raise _wrong(
                    f"The checkpoint in {self._folder} {what} {len(names)} tensors, the first is {min(names)}."
                )

    def _is_copy(self, name: str) -> bool:
        """Whether a tensor holds the keys again as values, as in some GGUF files' layers without values."""
        keys = self._headers.get(name.replace("attn_v", "attn_k"))
        return name.endswith("attn_v.weight") and keys is not None and same_bytes(self._headers[name], keys)

    def _split_names(self, name: str, shape: tuple[int, ...]) -> list[Piece]:
        """(Expert, rows, tensor) of each part of a parameter that stacks experts which have tensors of their own."""
        for stem, endings in self._names.experts.items():
            if name.endswith(stem):
                rows = shape[1] // len(endings)
                path = name.removesuffix(stem)
                return [
                    (expert, (part * rows, (part + 1) * rows), self._names.of(path + each.format(expert)))
                    for expert in range(shape[0])
                    for part, each in enumerate(endings)
                ]
        return []

    def _tensors(self, base: str) -> dict[str, TensorHeader]:
        """The tensors of a weight, by the endings of their names."""
        found = {ending: self._headers[base + ending] for ending in ENDINGS if base + ending in self._headers}
        if found.keys() - {BLOCKS_4, EXPONENTS} and BLOCKS_4 not in found:
            found.pop(EXPONENTS, None)  # without values it belongs to no weight: a superfluous tensor
        return found

    def _one(self, name: str, pieces: list[Piece], shape: tuple[int, ...]) -> Stored | None:
        parts: list[Part] = []
        kinds: dict[tuple[Kind, str], str] = {}
        transposed = False
        for expert, rows, base in pieces:
            tensors = self._tensors(base)
            if not tensors:
                self._absent.append(base)
                continue
            whole = shape if expert is None else (rows[1] - rows[0], shape[-1])
            if transposed := "" in tensors and name.endswith(self._names.transposed):
                whole = (*whole[:-2], whole[-1], whole[-2])
            kinds.setdefault(self._kind(base, tensors, whole), base)
            parts += [Part(base + ending, ending, expert, rows) for ending in tensors]
            self._used.update(base + ending for ending in tensors)
        if len(kinds) > 1:
            first, second = list(kinds.values())[:2]
            raise _wrong(f"{first} and {second} are parts of one weight, and stored in different formats.")
        if not kinds:
            return None
        return Stored(*next(iter(kinds)), shape, tuple(parts), transposed=transposed, block=self._block)

    def _kind(self, base: str, tensors: dict[str, TensorHeader], shape: tuple[int, ...]) -> tuple[Kind, str]:
        """Checks the tensors of one piece of shape (outer..., rows, depth); returns its kind and dtype."""
        if "" in tensors and PACKED in tensors:
            raise _wrong(f"The checkpoint names {base} in two formats: as {tensors['']} and packed.")
        if ZERO_POINT in tensors:
            raise _wrong(f"{base} has zero points, which a symmetric weight has not.", self._advice)
        if BLOCKS_4 in tensors or EXPONENTS in tensors:
            self._check_mxfp4(base, dict(tensors), shape)
            return Kind("mxfp4"), ""
        if PACKED not in tensors and "" not in tensors:
            raise _wrong(f"The checkpoint has the scales of {base}, but not its numbers.")
        numbers = tensors.get(PACKED) or tensors[""]
        if numbers.dtype in BLOCKS:
            return self._of_blocks(base, numbers, shape)
        if OF_BLOCKS in tensors:
            self._check_fp8_blocks(base, tensors, shape)
            return PLAIN, IN_BLOCKS
        packed = PACKED in tensors or numbers.dtype == "F8_E4M3"
        if packed and SCALE not in tensors:
            raise _wrong(f"The checkpoint lacks the scales of {base}, which is {numbers}.")
        if not packed and SCALE in tensors:
            raise _wrong(f"The checkpoint has scales for {base}, which is not packed but {numbers}.")
        if not packed:
            if numbers.shape != shape or numbers.dtype not in FLOATS:
                raise _wrong(f"{base} is {numbers}, the config asks for floating-point {list(shape)}.")
            return PLAIN, numbers.dtype
        scales = tensors[SCALE]
        if scales.dtype not in SCALES:
            raise _wrong(f"The scales of {base} are {scales}, which is none of {', '.join(SCALES)}.")
        if PACKED in tensors:
            return Kind("int4", self._group(base, numbers, scales, shape), scales.dtype), ""
        self._check_fp8(base, numbers, scales, shape)
        return Kind("fp8"), ""

    def _of_blocks(self, base: str, numbers: TensorHeader, shape: tuple[int, ...]) -> tuple[Kind, str]:
        """Checks blocks of a GGUF file; returns kind and dtype."""
        if numbers.shape != shape or shape[-1] % BLOCKS[numbers.dtype][0]:
            raise _wrong(f"{base} is {numbers}, the config asks for {list(shape)}.")
        return (Kind("int4", BLOCK, "F16"), "Q4_0") if numbers.dtype == "Q4_0" else (PLAIN, numbers.dtype)

    def _group(self, base: str, numbers: TensorHeader, scales: TensorHeader, shape: tuple[int, ...]) -> int:
        *outer, depth = shape
        if numbers.dtype != "I32" or numbers.shape != (*outer, depth // 8) or depth % 8:
            raise _wrong(
                f"{base} is packed as {numbers}, the config asks for I32{[*outer, depth // 8]}, 8 numbers in each."
            )
        if scales.shape[:-1] != tuple(outer) or not scales.shape[-1]:
            raise _wrong(f"The scales of {base} are {scales}, the config asks for some for each of {list(outer)} rows.")
        count = scales.shape[-1]
        if depth % count or depth // count not in GROUPS:
            each = f"groups of {depth // count}" if depth % count == 0 else "no whole groups"
            if odd := [group for group in sorted(self._groups) if depth % group]:
                each += f"; the config's {odd[0]} do not divide {depth}"
            raise _wrong(f"The rows of {base} have {depth} numbers and {count} scales: {each}.", self._advice)
        group = depth // count
        if self._groups and group not in self._groups:
            said = " or ".join(map(str, sorted(self._groups)))
            raise _wrong(f"The scales of {base} are for groups of {group} numbers, the config says {said}.")
        return group

    def _check_fp8(self, base: str, numbers: TensorHeader, scales: TensorHeader, shape: tuple[int, ...]) -> None:
        if numbers.shape != shape:
            raise _wrong(f"{base} is {numbers}, the config asks for F8_E4M3{list(shape)}.")
        outer = shape[:-1]
        one_for_all = len(shape) == 2 and scales.shape in ((), (1,))
        if one_for_all or scales.shape in (outer, (*outer, 1)):
            return
        if len(scales.shape) == len(shape) and scales.shape[-1] > 1:
            block = [-(-size // count) for size, count in zip(shape[-2:], scales.shape[-2:], strict=True) if count]
            refuse(f"FP8 in blocks of {' by '.join(map(str, block))}", self._config, None)
        raise _wrong(f"The scales of {base} are {scales}, the config asks for one for each of {list(outer)} rows.")

    def _check_fp8_blocks(self, base: str, tensors: dict[str, TensorHeader], shape: tuple[int, ...]) -> None:
        numbers, scales = tensors.get("", tensors[OF_BLOCKS]), tensors[OF_BLOCKS]
        if numbers.shape != shape or numbers.dtype != "F8_E4M3" or len(tensors) > 2:
            raise _wrong(f"{base} is {numbers} and has scales of blocks, the config asks for F8_E4M3{list(shape)}.")
        wanted = *shape[:-2], *(-(-size // step) for size, step in zip(shape[-2:], self._block, strict=False))
        if scales.shape != wanted or scales.dtype not in SCALES:
            raise _wrong(f"The scales of {base} are {scales}, the config asks for F32{list(wanted)}.")

    def _check_mxfp4(self, base: str, tensors: dict[str, TensorHeader], shape: tuple[int, ...]) -> None:
        *outer, depth = shape
        groups = (*outer, depth // GROUP)
        for ending, what, each in ((BLOCKS_4, "blocks", (*groups, GROUP // 2)), (EXPONENTS, "scales", groups)):
            if ending not in tensors:
                raise _wrong(f"The checkpoint lacks the {what} of {base}, which is in MXFP4.")
            found = tensors.pop(ending)
            if found.dtype != "U8" or found.shape != each or depth % GROUP:
                raise _wrong(f"The {what} of {base} are {found}, the config asks for U8{list(each)}.")
        if tensors:
            raise _wrong(
                f"The checkpoint names {base} in two formats: in MXFP4, and as {next(iter(tensors.values()))}."
            )

    @property
    def _advice(self) -> Any:
        return advice(self._config, None)


def _kinds(
    model: TargetModel, headers: Headers, stored: dict[str, Stored], weights: WeightFormat | None
) -> dict[str, Kind]:
    """The kind of weight as which each parameter is held."""
    in_files = format_of(headers).weights
    packs = {name: stored[name] for name in packable(model)}
    wanted = None if weights == in_files else weights
    own_scales = _scales_of_own_grid(headers, packs.values()) if wanted == "int4" and in_files == "bf16" else "BF16"
    kinds = {name: _kind_of(each, wanted, own_scales) if name in packs else PLAIN for name, each in stored.items()}
    kinds |= {name: PLAIN for name in packs if stored[name].shape[-2] % ROWS or stored[name].shape[-1] % DEPTH}
    for together in _read_together(model, kinds):
        if len({kinds[name] for name in together}) > 1:  # floats can stand for all of them, exactly
            kinds.update(dict.fromkeys(together, PLAIN))
    return kinds


def _scales_of_own_grid(headers: Headers, stored: Iterable[Stored]) -> str:
    """The scales' dtype where floats become INT4, by a sample of those weights that may lie on a grid."""
    largest = max(stored, key=lambda each: prod(each.shape))
    if largest.dtype == IN_BLOCKS:
        return "BF16"
    part = largest.parts[0]
    with opened(headers[part.tensor].path, "pt") as file:
        rows = file.get_slice(part.tensor)
        sample = rows[:1, :SAMPLED_ROWS] if len(rows.get_shape()) == 3 else rows[:SAMPLED_ROWS]
    return NAMES[scales_of(sample) or torch.bfloat16]


def _kind_of(stored: Stored, weights: WeightFormat | None, own_scales: str) -> Kind:
    if weights is None or weights == stored.kind.format:
        return stored.kind
    if weights == "bf16":
        return PLAIN
    if weights == "mxfp4":
        raise UsageFailure(
            "This checkpoint isn't in MXFP4, which is read where it is published, and not made.",
            ("Leave the weights as they are: ", Option("weights", "auto"), "."),
        )
    if stored.kind.format != "bf16":
        raise UsageFailure(
            f"This checkpoint's weights are {stored.kind.format.upper()};"
            f" rounding them again to {weights.upper()} would only lose.",
            ("Leave them as they are, ", Option("weights", stored.kind.format), ", or name a checkpoint in bf16."),
        )
    if weights == "fp8":
        return Kind("fp8")
    return Kind("int4", BLOCK, own_scales)


def _read_together(model: TargetModel, kinds: Mapping[str, Kind]) -> Iterator[list[str]]:
    for names in model.read_together:
        for name in kinds:
            path, _, leaf = name.removesuffix(".weight").rpartition(".")
            if leaf == names[0]:
                beside = [f"{path}.{each}.weight" for each in names]
                yield [each for each in beside if each in kinds]


def _wrong(message: str, hint: Any = DOWNLOAD_AGAIN) -> WeightsFailure:
    return WeightsFailure(message, hint)
