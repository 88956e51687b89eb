"""Decides which tensors of a checkpoint make up each parameter of a target, and as which kind of weight it is held. All
is checked by the files' headers, before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..commands import FORMAT_NAMES, MADE_FORMATS, WeightFormat
from ..errors import Option, UsageFailure
from ..files.headers import MERGE, Headers, opened, same_bytes
from ..files.pinned_reader import DTYPES
from ..kernels.weights.panels import DEPTH, ROWS
from ..models.drafter import Drafter
from ..models.family import Family
from ..models.layers import AttentionModule
from ..models.merged_weights import groups_in
from ..models.packed import hold, packable
from ..models.target import TargetModel
from .file_formats import BLOCK, ENDINGS, FP8_IN_BLOCKS, file_format_of, tensors_of, wrong
from .grid import scales_of
from .refusals import refuse
from .stored_format import Files, format_of
from .stored_weight import PLAIN, FileFormat, StorageKind, Stored, StoredPart, WeightsConfig

UNREAD = (
    "_shape", ".input_scale", ".output_scale", ".q_scale", ".k_scale", ".v_scale",
    "rotary_emb.inv_freq", "rotary_emb.original_inv_freq", "rotary_emb.cos_cached", "rotary_emb.sin_cached",
)  # fmt: skip
"""Endings of tensors that stay on disk: the config has shapes and rotary frequencies, nothing rounds activations."""

TensorPiece = tuple[int | None, tuple[int, int], str]
"""Expert, rows and name of a weight that is a parameter, or a part of one: as in ``StoredPart``."""

NOT_OF_TEXT = ("rope_freqs.", "v.", "mm.", "a.")
"""Beginnings of tensor names in a GGUF file that are computed from the config, or that text doesn't need."""
META = torch.device("meta")
NAMES = {dtype: name for name, dtype in DTYPES.items()}
EMBEDDING, HEAD = "embed_tokens.weight", "lm_head.weight"
ALIKE = "Save the checkpoint again with all experts in one format."
SAMPLED_ROWS = 64
"""Rows of a weight that are looked at to learn whether it lies on a grid."""


@dataclass(frozen=True, slots=True)
class Layout:
    """All parameters of a target, by name."""

    headers: Headers
    stored: dict[str, Stored]
    held: dict[str, StorageKind]

    @property
    def nbytes(self) -> int:
        """Bytes that are read from disk."""
        return sum(
            self.headers[stored_part.tensor].nbytes for stored in self.stored.values() for stored_part in stored.parts
        )

    def hold_shapes(self, model: TargetModel) -> None:
        """Makes a model on ``meta`` hold the kinds of weights that it will have."""
        for name, kind in self.held.items():
            if kind != PLAIN:
                hold(model, name, kind.allocate(self.stored[name].shape, META))


def layout_of(folder: Path, files: Files, model: TargetModel, family: Family, weights: WeightFormat | None) -> Layout:
    """The layout of a checkpoint whose target is given on ``meta``. ``weights``: how to hold what may be packed, None:
    as it is stored. Raises ``WeightsFailure`` for tensors that are missing, superfluous or not as they should be."""
    name_of = tensor_names(family, files.headers)
    skipped = tuple(outside + begin for outside in set(PLACES.values()) for begin in family.skipped_tensors)
    names = Names(name_of, skipped, family.expert_tensors, transposed=family.transposed)
    if files.gguf:
        if family.gguf is None:
            refuse("a GGUF file of a family that the engine reads from safetensors alone", files.config, None)
        names = Names(family.gguf.tensor_name, NOT_OF_TEXT, interleaved=family.gguf.interleaved)
    stored = _TensorFinder(folder, files.headers, names, files.config).find_all(model)
    return Layout(files.headers, stored, _kinds(model, files.headers, stored, weights))


PLACES = {
    "model.": "",
    "": "",
    "model.language_model.": "",
    "language_model.model.": "language_model.",
    "language_model.": "",
    "base_model.model.model.": "base_model.model.",
}
"""How the names of a text model's tensors, and of its head, may begin, as it was saved alone, inside of another or
bare."""


def tensor_names(family: Family, headers: Headers) -> Callable[[str], str]:
    """What makes a tensor's name of a parameter's: ``save_pretrained`` names the tensors of a text model by what it was
    saved in. The family's own names where the embedding is not found by others."""
    bare = family.tensor_name(EMBEDDING)
    if any(bare + ending in headers for ending in ("", "_packed")):
        return family.tensor_name
    begin = next((begin for begin in PLACES if begin + EMBEDDING in headers), None)
    if begin is None or not bare.endswith(EMBEDDING):
        return family.tensor_name
    usual = bare.removesuffix(EMBEDDING)
    outside = next((each for each in (PLACES[begin], *PLACES.values()) if each + HEAD in headers), PLACES[begin])

    def name_of(parameter: str) -> str:
        name = family.tensor_name(parameter)
        return begin + name.removeprefix(usual) if name.startswith(usual) else outside + name

    return name_of


def plain_layout(folder: Path, headers: Headers, model: nn.Module, names: Names, config: Mapping[str, Any]) -> Layout:
    """The layout of a model that holds floats and whose tensors are named by ``names``."""
    stored = _TensorFinder(folder, headers, names, config).find_all(model)
    return Layout(headers, stored, dict.fromkeys(stored, PLAIN))


@dataclass(frozen=True, slots=True)
class Names:
    """How a checkpoint names its tensors, by its ``Family``."""

    of: Callable[[str], str]
    skipped: tuple[str, ...]
    experts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    interleaved: tuple[str, ...] = ()
    transposed: tuple[str, ...] = ()


class _TensorFinder:
    """Finds the tensors of a model's parameters."""

    def __init__(self, folder: Path, headers: Headers, names: Names, config: Mapping[str, Any]):
        self._folder, self._headers, self._names, self._weights_config = folder, headers, names, WeightsConfig(config)
        self._used: set[str] = set()
        self._absent: list[str] = []
        self._bases = {name.removesuffix(ending) for name in headers for ending in ENDINGS if name.endswith(ending)}
        """What tensors' names may begin with: looking each of ten thousand experts up in every format takes longer."""

    def find_all(self, model: nn.Module) -> dict[str, Stored]:
        """Where each parameter is stored. Raises ``WeightsFailure`` for tensors that are missing, superfluous or not as
        they should be."""
        stored = {name: self._find(name, tuple(parameter.shape)) for name, parameter in model.named_parameters()}
        self._check_all_used()
        if isinstance(model, TargetModel):
            self._refuse_own_head()
        present = {name: each for name, each in stored.items() if each is not None}
        for name in present if self._names.interleaved else ():
            if name.endswith(self._names.interleaved):
                attention = model.get_submodule(name.rsplit(".", 2)[0])
                assert isinstance(attention, AttentionModule)
                present[name] = replace(present[name], interleaved=attention.config.head_dim)
        if isinstance(model, TargetModel | Drafter):
            orders = {name: model.row_order(name) for name in present}
            present |= {
                name: replace(present[name], order=order) for name, order in orders.items() if order is not None
            }
        return present

    def _find(self, name: str, shape: tuple[int, ...]) -> Stored | None:
        """Where one parameter is stored; None for a missing one."""
        whole = self._names.of(name)
        split = self._split_names(name, shape)
        if not any(base in self._bases and tensors_of(base, self._headers) for _, _, base in split):
            return self._one(name, [(None, (0, 0), whole)], shape)
        if tensors_of(whole, self._headers):
            raise wrong(f"The checkpoint has {whole} twice: for all experts at once, and for each by itself.")
        return self._one(name, split, shape)

    def _refuse_own_head(self) -> None:
        """Raises ``WeightsFailure`` for a head of its own in a checkpoint whose config ties it to the embedding."""
        name = next((begin + HEAD for begin in PLACES.values() if begin + HEAD in self._headers), "")
        embedding = self._headers.get(self._names.of(EMBEDDING))
        own = name and name not in self._used and embedding is not None
        if own and embedding is not None and not same_bytes(self._headers[name], embedding):
            raise wrong(
                f"The checkpoint in {self._folder} has an output head of its own ({name}), and its config says that the"
                " embedding is the head (tie_word_embeddings)."
            )

    def _check_all_used(self) -> None:
        unread = (name for name in self._headers.keys() - self._used if not name.startswith(self._names.skipped))
        surplus = [name for name in unread if not name.endswith(UNREAD) and not self._is_copy(name)]
        if len(self._absent) > len(self._used) and surplus:
            raise wrong(
                f"The checkpoint in {self._folder} names its tensors otherwise than its family: it lacks"
                f" {min(self._absent)} and {len(self._absent) - 1} more, and has {min(surplus)} and"
                f" {len(surplus) - 1} more.",
                "Take the checkpoint as it was published, or save it again with save_pretrained of transformers.",
            )
        if self._absent and all(name.endswith(HEAD) for name in self._absent):
            raise wrong(
                f"The checkpoint in {self._folder} has no output head ({self._absent[0]}), and its config says that the"
                " embedding is none (tie_word_embeddings).",
                "Save it again with its head (AutoModelForCausalLM of transformers), or take it as it was published.",
            )
        if adapter := min((name for name in surplus if ".lora_" in name), default=""):
            raise wrong(
                f"The checkpoint in {self._folder} holds an adapter (LoRA) among its tensors: {adapter}.", MERGE
            )
        for names, what in ((self._absent, "lacks"), (surplus, "has, against its config,")):
            if names:
                raise wrong(f"The checkpoint in {self._folder} {what} {len(names)} tensors, the first is {min(names)}.")

    def _is_copy(self, name: str) -> bool:
        """Whether a tensor holds the keys again as values, as in some GGUF files' layers without values."""
        keys = self._headers.get(name.replace("attn_v", "attn_k"))
        return name.endswith("attn_v.weight") and keys is not None and same_bytes(self._headers[name], keys)

    def _split_names(self, name: str, shape: tuple[int, ...]) -> list[TensorPiece]:
        """(Expert, rows, tensor) of each part of a parameter that stacks experts which have tensors of their own."""
        for stem, endings in self._names.experts.items():
            if name.endswith(stem):
                rows = shape[1] // len(endings)
                path = name.removesuffix(stem)
                return [
                    (expert, (index * rows, (index + 1) * rows), self._names.of(path + each.format(expert)))
                    for expert in range(shape[0])
                    for index, each in enumerate(endings)
                ]
        return []

    def _one(self, name: str, pieces: list[TensorPiece], shape: tuple[int, ...]) -> Stored | None:
        parts: list[StoredPart] = []
        kinds: dict[tuple[FileFormat, StorageKind, str], str] = {}
        transposed = False
        for expert, rows, base in pieces:
            tensors = tensors_of(base, self._headers)
            if not tensors:
                self._absent.append(base)
                continue
            whole = shape if expert is None else (rows[1] - rows[0], shape[-1])
            if transposed := "" in tensors and name.endswith(self._names.transposed):
                whole = (*whole[:-2], whole[-1], whole[-2])
            kinds.setdefault(file_format_of(base, tensors, whole, self._weights_config), base)
            parts += [StoredPart(base + ending, ending, expert, rows) for ending in tensors]
            self._used.update(base + ending for ending in tensors)
        if len(kinds) > 1:
            first, second = list(kinds.values())[:2]
            raise wrong(f"{first} and {second} are parts of one weight, and stored in different formats.", ALIKE)
        if not kinds:
            return None
        return Stored(*next(iter(kinds)), shape, tuple(parts), transposed=transposed, block=self._weights_config.block)


def _kinds(
    model: TargetModel, headers: Headers, stored: dict[str, Stored], weights: WeightFormat | None
) -> dict[str, StorageKind]:
    """The kind of weight as which each parameter is held."""
    in_files = format_of(headers).weights
    packs = {name: stored[name] for name in packable(model)}
    wanted = None if weights == in_files else weights
    whole = {name: each for name, each in packs.items() if not (each.shape[-2] % ROWS or each.shape[-1] % DEPTH)}
    if wanted not in (None, "bf16") and not whole:
        raise UsageFailure(
            f"This checkpoint has no weights that can be held in {FORMAT_NAMES[wanted]}: none is whole blocks of {ROWS}"
            f" rows and {DEPTH} columns.",
            ("Leave them as they are: ", Option("weights", "auto"), "."),
        )
    own_scales = _scales_of_own_grid(headers, whole.values()) if wanted == "int4" and in_files == "bf16" else "BF16"
    kinds = {name: _kind_of(each, wanted, own_scales) if name in packs else PLAIN for name, each in stored.items()}
    kinds |= dict.fromkeys(packs.keys() - whole.keys(), PLAIN)
    for paths in groups_in(model, model.read_together):
        together = [name for path in paths if (name := f"{path}.weight") in kinds]
        if len({kinds[name] for name in together}) > 1:  # floats can stand for all of them, exactly
            kinds.update(dict.fromkeys(together, PLAIN))
    return kinds


def _scales_of_own_grid(headers: Headers, stored: Iterable[Stored]) -> str:
    """The scales' dtype where floats become INT4, by a sample of those weights that may lie on a grid."""
    largest = max(stored, key=lambda each: prod(each.shape))
    if largest.file is FP8_IN_BLOCKS:
        return "BF16"
    first = largest.parts[0]
    with opened(headers[first.tensor].path, "pt") as file:
        rows = file.get_slice(first.tensor)
        sample = rows[:1, :SAMPLED_ROWS] if len(rows.get_shape()) == 3 else rows[:SAMPLED_ROWS]
    return NAMES[scales_of(sample) or torch.bfloat16]


def _kind_of(stored: Stored, weights: WeightFormat | None, own_scales: str) -> StorageKind:
    if weights is None or weights == stored.kind.format:
        return stored.kind
    if weights == "bf16":
        return PLAIN
    if weights not in MADE_FORMATS:
        raise UsageFailure(
            f"This checkpoint isn't in {FORMAT_NAMES[weights]}, which is read where it is published, and not made.",
            ("Leave the weights as they are: ", Option("weights", "auto"), "."),
        )
    if stored.kind.format != "bf16":
        raise UsageFailure(
            f"This checkpoint's weights are {stored.kind.format.upper()};"
            f" rounding them again to {weights.upper()} would only lose.",
            ("Leave them as they are, ", Option("weights", stored.kind.format), ", or name a checkpoint in bf16."),
        )
    return StorageKind("int4", BLOCK, own_scales) if weights == "int4" else StorageKind(weights)
