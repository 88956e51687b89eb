"""Makes models hold packed weights: the same modules with the tensors of another kind of weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from ..commands import WeightFormat
from ..kernels.prefill.products import product
from ..kernels.weights.host_products import FLOATS, HOST_MAKERS, NIBBLES, HostProducts
from ..kernels.weights.integers import IntegerWeight
from ..kernels.weights.kinds import PACKED, HeldWeight, format_of, hold_in
from ..kernels.weights.panels import DEPTH, ROWS
from ..kernels.weights.plain import PlainWeight
from ..kernels.weights.q4 import Q4Weight
from ..kernels.weights.weight import Weight
from .family import TargetConfig
from .layers import merge_projections
from .target import TargetModel

META = torch.device("meta")


class PackedLinear(nn.Module):
    """A linear layer whose weight may be of any kind."""

    weight: HeldWeight

    def __init__(self, weight: Weight, bias: nn.Parameter | None):
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.bias = bias
        self.weight = HeldWeight(weight)

    def forward(self, x: Tensor) -> Tensor:
        out = product(x, self.weight.weight)
        return out if self.bias is None else out + self.bias


def packable(model: TargetModel) -> Iterator[str]:
    """Names of the parameters that may be packed: those of all products but the head's and the router's, which choose,
    and are small."""
    routers = {
        id(parameter) for router in model.routers if isinstance(router, nn.Module) for parameter in router.parameters()
    }
    for name, parameter in model.layers.named_parameters():
        if parameter.ndim >= 2 and id(parameter) not in routers and not name.endswith(("bias", *model.never_packed)):
            yield f"layers.{name}"


def packed_in(model: TargetModel, weights: WeightFormat) -> Iterator[str]:
    """Names of the parameters that a format packs."""
    for name in packable(model) if weights != "bf16" else ():
        *outer, rows, depth = model.get_parameter(name).shape
        if rows % ROWS == 0 and depth % DEPTH == 0 and (outer or not PACKED[weights].experts_only):
            yield name


def packed_weights(model: TargetModel) -> Iterator[Weight]:
    return (module.weight for module in model.layers.modules() if isinstance(module, HeldWeight))


def disable_fused_unpacking(*models: nn.Module) -> None:
    """Makes the weights of these models be unpacked before they multiply many rows: for where the kernel that does both
    was seen to be wrong. Passes that hold them already don't know."""
    for model in models:
        for module in model.modules():
            if isinstance(module, HeldWeight):
                module.weight = replace(module.weight, inside=False)


def format_of_target(model: TargetModel) -> WeightFormat:
    """The format of a model's packed weights, "bf16" where there are none. Files hold at most one format beside
    bf16."""
    return next((format_of(weight) for weight in packed_weights(model)), "bf16")


def hold(model: nn.Module, name: str, weight: Weight) -> None:
    path, _, last = name.rpartition(".")
    owner = model.get_submodule(path)
    if isinstance(owner, nn.Linear) and not isinstance(weight, PlainWeight):
        parent, _, attribute = path.rpartition(".")
        setattr(model.get_submodule(parent), attribute, PackedLinear(weight, owner.bias))
    else:
        hold_in(owner, last, weight)


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
    for name, parameter in flat.items() if products.on_levels == NIBBLES else ():
        if (weight := Q4Weight.of(parameter)) is None:
            packed.clear()
            break
        packed[name] = weight
    make = HOST_MAKERS[products.others]
    for name, parameter in flat.items():
        if (held := packed[name] if packed else make(parameter)) is not None:
            hold(model, name, held)
    _multiply_by(model, HOST_MAKERS[products.head](model.head))
    merge_projections(model, model.read_together)
    model.when_settled()
    return "int4" if packed else "float32" if products.others == FLOATS else "int8"


def gives_same_bits_by_any_threads(model: TargetModel) -> bool:
    """Whether all of a model's products on a CPU have the same bits with any number of threads: they are of few bits
    and added up in one order, or in fp64 and rounded."""
    return model.packed_head is not None and not isinstance(model.packed_head, PlainWeight) and not model.routers


def hold_shapes_in_fewer_bits(model: TargetModel, in_levels: bool) -> int:
    """Makes a target on ``meta`` hold what ``hold_in_fewer_bits`` would. ``in_levels``: whether all its matrices lie on
    16 levels, and are held so. Returns the bytes of the floats that are packed, which exist until all are."""
    flat = _flat(model)
    in_levels = in_levels and all(Q4Weight.takes(*parameter.shape) for parameter in flat.values())
    kind = Q4Weight if in_levels else IntegerWeight
    for name, parameter in flat.items():
        hold(model, name, kind.allocate(*parameter.shape, device=META))
    _multiply_by(model, IntegerWeight.allocate(*model.head.shape, device=META))
    return sum(parameter.nbytes for parameter in flat.values())


def _flat(model: TargetModel) -> dict[str, Tensor]:
    """The packable parameters by name, except stacked experts."""
    parameters = {name: model.get_parameter(name).detach() for name in packable(model)}
    return {name: parameter for name, parameter in parameters.items() if parameter.ndim == 2}


def _multiply_by(model: TargetModel, head: Weight | None) -> None:
    model.packed_head = head
    model.cache_dtype = torch.float64


def shape_of(config: TargetConfig, dtype: torch.dtype, weights: WeightFormat) -> TargetModel:
    """A target of this shape on ``meta`` whose weights are in a format: it tells what memory a loaded one takes."""
    with META:
        model = config.build().to(dtype)
    for name in list(packed_in(model, weights)):
        hold(model, name, PACKED[weights].allocate(*model.get_parameter(name).shape, device=META))
    return model
