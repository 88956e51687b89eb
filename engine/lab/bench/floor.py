"""Computes the bytes that each pass can't avoid reading: every touched weight once, and the keys and values in
sight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...kernels.weights.int8 import Int8Weight
from ...layer_config import AttentionConfig, DeltaConfig
from ...measured.ceiling import weight_bytes
from ...models.target import TargetModel
from .shapes import Shape

META = torch.device("meta")


@dataclass(frozen=True, slots=True)
class Floor:
    """Bytes that a pair's passes read, in its compute dtype. Activations are left out: kilobytes beside gigabytes."""

    shape: Shape
    itemsize: int
    body: int
    """Bytes of the target's weights without experts and embedding."""
    expert: int
    """Bytes of one expert of every layer."""
    head: int
    """Bytes of the output head. Of a separate embedding only one row is read for each token."""
    draft_head: int
    """Bytes of the head, or of its 8-bit copy, as drafting reads it."""
    drafter: int
    """Bytes of the drafter's weights, in 16 or 8 bits as they are read."""

    def verify(self, experts: float, context: int) -> float:
        """Bytes of one target pass over a block's rows, or over one row. ``experts``: distinct experts touched, mean
        over layers."""
        cached = self._keys_values(self.shape.target.attention, context) + self._states()
        return self.body + experts * self.expert + self.head + cached

    def draft(self, context: int) -> float:
        """Bytes of taking in the last round's features, then of one pass of the drafter and the head."""
        if self.shape.drafter is None:
            return 0.0
        return self.drafter + self.draft_head + self._keys_values(self.shape.drafter.layers, context)

    def prefill(self, rows: int, chunk: int) -> float:
        """Bytes of a prompt in chunks, each of which touches every expert; the head runs once."""
        chunks = -(-rows // chunk)
        num_experts = self.shape.target.moe.num_experts if self.shape.target.moe else 0
        return chunks * (self.body + num_experts * self.expert) + self.head

    def _states(self) -> int:
        """Bytes of the states of layers that recur, each read and written once, in fp32."""
        layers = [layer for layer in self.shape.target.layers if isinstance(layer, DeltaConfig)]
        return sum(2 * 4 * layer.values * layer.key_dim for layer in layers)

    def _keys_values(self, layers: Iterable[AttentionConfig], context: int) -> int:
        return self.itemsize * sum(
            2 * layer.num_kv_heads * layer.head_dim * min(context, layer.window or context) for layer in layers
        )


def floor_of(shape: Shape, target: TargetModel, drafts_in_8_bits: bool = False) -> Floor:
    """The floor of a shape, from the weights of a target and of the shape's drafter; nothing is allocated."""
    dtype, head, weights = target.dtype, target.head, weight_bytes(target)
    with META:
        drafter = nn.Module() if shape.drafter is None else shape.drafter.build().to(dtype)
    own_head = shape.drafter is not None and shape.drafter.tables.head  # then among its weights
    read = [part for name, part in drafter.named_parameters() if not name.startswith("embed_tokens.")]
    return Floor(
        shape=shape,
        itemsize=dtype.itemsize,
        body=weights.body,
        expert=weights.expert,
        head=weights.head,
        draft_head=0 if own_head else _in_8_bits(head) if drafts_in_8_bits else head.nbytes,
        drafter=sum(_in_8_bits(part) if drafts_in_8_bits else part.nbytes for part in read),
    )


def _in_8_bits(tensor: Tensor) -> int:
    """Bytes of an 8-bit copy; norms are read as they are."""
    return Int8Weight.allocate(*tensor.shape, device=META).nbytes if tensor.ndim == 2 else tensor.nbytes
