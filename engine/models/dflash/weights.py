"""A drafter's weights as kernels read them: merged, and in 8 bits where a copy fits. That costs a token now and then,
but every draft reads half the bytes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ...kernels.weights.int8 import Int8Weight
from ...kernels.weights.integers import ByteWeight
from ...kernels.weights.kinds import weight_of
from ...kernels.weights.plain import PlainWeight
from ...kernels.weights.weight import Weight
from ..drafter import Drafter
from ..layers import merge_projections
from ..merged_weights import LayerWeights, biases_of, side_by_side
from ..packed import hold
from .modules import DFlashDrafter


def hold_in_8_bits(drafter: Drafter, kind: type[Int8Weight] = Int8Weight) -> None:
    """Makes a drafter hold its products' weights only in 8 bits, packed one after the other: half its memory. What it
    drafts is verified, so texts stay what they are. ``kind``: ``ByteWeight`` also multiplies in 8 bits, on a CPU."""
    for name, parameter in list(drafter.products()):
        hold(drafter, name, kind.of(parameter.detach()))
    if kind is ByteWeight:
        merge_projections(drafter, drafter.read_together)


@dataclass(frozen=True, slots=True)
class DraftWeights:
    """The weights of all products except the head."""

    context: Weight
    """The projection that makes context rows of features."""
    context_kv: Weight
    """[layers * columns, hidden]: keys and values of all layers, one below the other, as context rows need them."""
    layers: tuple[LayerWeights, ...]
    context_kv_bias: Tensor | None
    """[layers * columns]: the biases of ``context_kv``, or None."""

    @classmethod
    def of(cls, drafter: DFlashDrafter, in_8_bits: bool) -> DraftWeights:
        """Lays weights side by side, which the drafter's modules keep using; copies all of them if ``in_8_bits``."""

        def read(weight: Weight) -> Weight:
            return Int8Weight.of(weight.values) if in_8_bits and isinstance(weight, PlainWeight) else weight

        layers, context_kv, projections = [], [], []
        for module in drafter.block_layers:
            attention = module.self_attn
            of_context = [attention.k_proj, *([] if attention.v_proj is None else [attention.v_proj])]
            qkv = side_by_side(attention.q_proj, *of_context)
            context_kv.append(qkv.rows(attention.q_proj.out_features, qkv.shape[0]))
            projections += of_context
            layers.append(LayerWeights.of(attention, module.mlp, read))
        context = type(context_kv[0]).below_one_another(context_kv)
        return cls(read(weight_of(drafter.fc)), read(context), tuple(layers), biases_of(*projections))

    @property
    def nbytes(self) -> int:
        """Bytes that a draft and the ingestion before it read of them."""
        return self.context.nbytes + self.context_kv.nbytes + sum(layer.nbytes for layer in self.layers)
