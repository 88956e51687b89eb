"""Makes models hold packed weights: the same modules with the tensors of another kind of weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from ..commands import WeightFormat
from ..kernels.weights.host_products import FLOATS, HOST_MAKERS, NIBBLES, HostProducts
from ..kernels.weights.int4 import Int4Weight
from ..kernels.weights.integers import IntegerWeight
from ..kernels.weights.kinds import PACKED, format_of, weight_of
from ..kernels.weights.mxfp4 import Mxfp4Weight
from ..kernels.weights.panels import DEPTH, ROWS
from ..kernels.weights.plain import PlainWeight
from ..kernels.weights.q4 import Q4Weight
from ..kernels.weights.weight import Weight
from .family import TargetConfig
from .layers import merge_projections
from .target import TargetModel

META = torch.device("meta")


class PackedLinear(nn.Module):
    """A linear layer whose weight may be of any kind, with that weight's tensors as its parameters."""

    def __init__(self, weight: Weight, bias: nn.Parameter | None):
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.bias = bias
        _set(self, "weight", weight)
        self.whole: Weight | None = None
        """The weight itself, once its parameters stay what they are; None before that."""

    def forward(self, x: Tensor) -> Tensor:
        product = (self.whole or weight_of(self)).linear(x)
        return product if self.bias is None else product + self.bias


def packable(model: TargetModel) -> Iterator[str]:
    """Names of the parameters that may be packed: those of all products but the head's and the router's, which choose,
    and are small."""
    routers = {id(part) for router in model.routers if isinstance(router, nn.Module) for part in router.parameters()}
    for name, parameter in model.layers.named_parameters():
        if parameter.ndim >= 2 and id(parameter) not in routers and not name.endswith(("bias", *model.never_packed)):
            yield f"layers.{name}"


def packed_in(model: TargetModel, weights: WeightFormat) -> Iterator[str]:
    """Names of the parameters that a format packs; in MXFP4 only experts."""
    for name in packable(model) if weights != "bf16" else ():
        *outer, rows, depth = model.get_parameter(name).shape
        if rows % ROWS == 0 and depth % DEPTH == 0 and (outer or weights != "mxfp4"):
            yield name


def packed_weights(model: TargetModel) -> Iterator[Weight]:
    """The weights of a model that are packed, so that their values are whole numbers."""
    for name, parameter in model.layers.named_parameters():
        path, _, last = name.rpartition(".")
        scales = last.endswith(Mxfp4Weight.endings[1])
        if not parameter.is_floating_point() and not scales:
            stem = last.removesuffix(Int4Weight.endings[0]).removesuffix(Mxfp4Weight.endings[0])
            yield weight_of(model.layers.get_submodule(path), stem)


def format_of_target(model: TargetModel) -> WeightFormat:
    """The format of a model's packed weights, "bf16" where there are none. Files hold at most one format beside
    bf16."""
    return next((format_of(weight) for weight in packed_weights(model)), "bf16")


def hold(model: nn.Module, name: str, weight: Weight) -> None:
    """Makes a model hold ``weight`` in place of the parameter ``name``: its tensors are stored under that name with
    each of the kind's endings."""
    path, _, stem = name.rpartition(".")
    owner = model.get_submodule(path)
    if isinstance(weight, PlainWeight):
        setattr(owner, stem, nn.Parameter(weight.values, requires_grad=False))
    elif isinstance(owner, nn.Linear):
        parent, _, attribute = path.rpartition(".")
        setattr(model.get_submodule(parent), attribute, PackedLinear(weight, owner.bias))
    else:
        delattr(owner, stem)
        _set(owner, stem, weight)


def pack(model: TargetModel, make: Callable[[Tensor], Weight]) -> None:
    """Packs all parameters that are ``packable``, one after the other."""
    for name in list(packable(model)):
        hold(model, name, make(model.get_parameter(name).detach()))


def hold_in_fewer_bits(model: TargetModel, products: HostProducts | None = None) -> str:
    """Makes a target on a CPU multiply by weights of 4 bits where its own lie on such levels, else of 8, and its head
    by a packed copy; ``products`` says in which way, which differs by CPU. Stacked experts stay floats. Attention is in
    fp64: rows are rounded behind it, and what sums in another order change must not be seen then. Returns what products
    read, for people."""
    products = products or HostProducts.of_this_cpu()
    flat = _flat(model)
    packed: dict[str, Weight] = {}
    for name, part in flat.items() if products.on_levels == NIBBLES else ():
        if (weight := Q4Weight.of(part)) is None:
            packed.clear()
            break
        packed[name] = weight
    make = HOST_MAKERS[products.others]
    for name, part in flat.items():
        if (held := packed[name] if packed else make(part)) is not None:
            hold(model, name, held)
    _multiply_by(model, HOST_MAKERS[products.head](model.head))
    settle(model, model.read_together)
    model.when_settled()
    return "int4" if packed else "float32" if products.others == FLOATS else "int8"


def gives_same_bits_by_any_threads(model: TargetModel) -> bool:
    """Whether all of a model's products on a CPU have the same bits with any number of threads: they are of few bits
    and added up in one order, or in fp64 and rounded."""
    return model.packed_head is not None and not isinstance(model.packed_head, PlainWeight) and not model.routers


def settle(model: nn.Module, read_together: Sequence[Sequence[str]]) -> None:
    """Merges projections of a model on a CPU and looks each weight up once, for when its weights stay what they are."""
    merge_projections(model, read_together)
    for module in model.modules():
        if isinstance(module, PackedLinear):
            module.whole = weight_of(module)


def hold_shapes_in_fewer_bits(model: TargetModel, in_levels: bool) -> int:
    """Makes a target on ``meta`` hold what ``hold_in_fewer_bits`` would. ``in_levels``: whether all its matrices lie on
    16 levels, and are held so. Returns the bytes of the floats that are packed, which exist until all are."""
    flat = _flat(model)
    in_levels = in_levels and all(Q4Weight.takes(*part.shape) for part in flat.values())
    kind = Q4Weight if in_levels else IntegerWeight
    for name, part in flat.items():
        hold(model, name, kind.allocate(*part.shape, device=META))
    _multiply_by(model, IntegerWeight.allocate(*model.head.shape, device=META))
    return sum(part.nbytes for part in flat.values())


def _flat(model: TargetModel) -> dict[str, Tensor]:
    """The packable parameters by name, except stacked experts."""
    parameters = {name: model.get_parameter(name).detach() for name in packable(model)}
    return {name: part for name, part in parameters.items() if part.ndim == 2}


def _multiply_by(model: TargetModel, head: Weight | None) -> None:
    model.packed_head = head
    model.cache_dtype = torch.float64


def shape_of(config: TargetConfig, dtype: torch.dtype, weights: WeightFormat) -> TargetModel:
    """A target on ``meta`` with weights in a format, as they are made of bf16 or published: it shows what a loaded one
    takes."""
    with META:
        model = config.build().to(dtype)
    for name in list(packed_in(model, weights)):
        hold(model, name, PACKED[weights].allocate(*model.get_parameter(name).shape, device=META))
    return model


def _set(module: nn.Module, stem: str, weight: Weight) -> None:
    tensors = (weight.values, weight.scales) if weight.scales is not None else (weight.values,)
    for ending, tensor in zip(weight.endings, tensors, strict=True):
        module.register_parameter(stem + ending, nn.Parameter(tensor, requires_grad=False))
