"""A dense target's pass on a CPU that holds its weights in 4 bits, in as few operations as PyTorch has for it; it also
runs rows of a prompt. ``modules.PreNormTarget`` defines it, and runs every other target.

An operation costs 3 to 6 us there beside its work, in a model as small as SmolLM2 more than what it computes. So no
module is called, and a norm divides behind its product: rows are rounded to bf16 at any scale alike, and what is left
of the norm is one number for each row. Queries, keys and values then pass one table together, which turns what turns,
scales queries and leaves values alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...kernels.reference.attention import sdpa_attention
from ...kernels.reference.rope import rope_table
from ...kernels.toolchain.jit import MAX_ROWS
from ...kernels.weights.kinds import weight_of
from ...kernels.weights.q4 import Q4Weight
from ...kernels.weights.weight import Weight
from ...kv_cache.cache import Cache
from ..family import EMBEDDED
from ..layers import GatedMLP, RMSNorm
from ..target import TargetOutput
from .modules import PreNormDecoderLayer, PreNormTarget

_ROUNDED = torch.bfloat16
"""The dtype of rows in products."""
_WIDE = torch.float64
"""The dtype in which attention adds up: rows are rounded behind it, and what sums in another order change isn't seen
then."""


class _HostLayer(NamedTuple):
    attention_scale: Tensor
    """fp32 [hidden]: the weight of the norm, times the root of the hidden size."""
    qkv: Weight
    output: Weight
    mlp_scale: Tensor
    gate_up: Weight
    down: Weight


class HostPass:
    """The pass of one target, whose weights stay what they are."""

    def __init__(self, target: PreNormTarget):
        """``target`` must be one that this pass ``suits``."""
        self._target, self._kind = target, target.config.attention[0]
        self._layers = [_layer(layer) for layer in target.layers]
        eps = target.config.hidden_size * target.config.rms_norm_eps
        self._least = torch.tensor(sqrt(eps), dtype=_WIDE)
        """``hypot`` of this and a row's norm is what the row is divided by."""

    @staticmethod
    def suits(target: PreNormTarget) -> bool:
        """Whether this pass does all that the target's layers do, and all their products are by weights in 4 bits."""
        config, kind = target.config, target.config.attention[0]
        plain = not (kind.biases or kind.sinks or config.head_norms) and kind.window is None and config.moe is None
        return (
            plain
            and config.activation == "silu"
            and set(config.attention) == {kind}
            and target.cache_dtype is _WIDE
            and all(isinstance(weight, Q4Weight) for layer in target.layers for weight in _weights(layer))
        )

    def __call__(self, ids: Tensor, start: int, cache: Cache, taps: Sequence[int] = ()) -> TargetOutput:
        """See ``TargetModel.forward``."""
        n, kind = len(ids), self._kind
        num_heads, num_kv, head_dim = kind.num_heads, kind.num_kv_heads, kind.head_dim
        cosines, sines = self._table(cache.positions(start, start + n))
        mask = _mask(n, start, num_heads // num_kv) if 1 < n <= MAX_ROWS else None
        x = self._target.embed(ids)
        tapped: dict[int, Tensor] = {EMBEDDED: self._target.embedded(ids, x)}
        for index, (layer, layer_cache) in enumerate(zip(self._layers, cache.attention, strict=True)):
            heads = layer.qkv.linear((x * layer.attention_scale).to(_ROUNDED)).div(self._size(x)).view(n, -1, head_dim)
            turned = torch.addcmul(heads * cosines, heads.roll(head_dim // 2, -1), sines)
            q, k, v = torch.split(turned, [num_heads, num_kv, num_kv], dim=1)
            k, v = layer_cache.extend(start, k, v)
            if n > MAX_ROWS:
                mixed = sdpa_attention(q, k, v, causal=True, window=None, scale=1.0)
            else:
                mixed = _attend(q, k, v, mask)
            x = x + layer.output.linear(mixed.to(_ROUNDED))
            both = layer.gate_up.linear((x * layer.mlp_scale).to(_ROUNDED)).div(self._size(x).float())
            gate, up = both.chunk(2, dim=-1)
            x.add_(layer.down.linear(F.silu(gate).mul_(up).to(_ROUNDED)))
            if index in taps:
                tapped[index] = x
        features = torch.cat([tapped[index] for index in taps], dim=-1) if taps else None
        return TargetOutput(self._target.norm(x), features)

    def _size(self, x: Tensor) -> Tensor:
        """[n, 1]: the divisor of the norm of rows x, times the root of the hidden size."""
        size: Tensor = torch.linalg.vector_norm(x, 2, -1, True, dtype=_WIDE)
        return size.hypot_(self._least)

    def _table(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines for the queries, keys and values of rows at ``positions``, [n, heads + 2 * kv_heads,
        head_dim] each: those of queries times the scale of scores; values aren't turned."""
        kind = self._kind
        cos, sin = (table.to(_WIDE) for table in rope_table(positions, self._target.frequencies))
        scales = torch.ones(kind.num_heads + kind.num_kv_heads, 1, dtype=_WIDE)
        scales[: kind.num_heads] = kind.scale
        values = torch.ones(len(positions), kind.num_kv_heads, kind.head_dim, dtype=_WIDE)
        return torch.cat((cos * scales, values), dim=1), torch.cat((sin * scales, values.zero_()), dim=1)


def _weights(layer: nn.Module) -> tuple[Weight | None, ...]:
    """The weights of a layer's products, merged and whole, in order."""
    assert isinstance(layer, PreNormDecoderLayer) and isinstance(layer.mlp, GatedMLP)
    output, down = weight_of(layer.self_attn.o_proj), weight_of(layer.mlp.down_proj)
    return layer.self_attn.together, output, layer.mlp.together, down


def _layer(layer: nn.Module) -> _HostLayer:
    qkv, output, gate_up, down = _weights(layer)
    assert isinstance(layer, PreNormDecoderLayer) and qkv and output and gate_up and down
    scales = _scale(layer.input_layernorm), _scale(layer.post_attention_layernorm)
    return _HostLayer(scales[0], qkv, output, scales[1], gate_up, down)


def _scale(norm: RMSNorm) -> Tensor:
    return norm.weight.detach().float() * sqrt(len(norm.weight))


def _mask(n: int, start: int, group: int) -> Tensor:
    """[group * n, start + n]: added to the scores of grouped rows, 0 where a row sees a key."""
    hidden = torch.full((n, n), float("-inf"), dtype=_WIDE).triu_(1)
    return F.pad(hidden, (start, 0)).repeat(group, 1)


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """``sdpa_attention`` of scaled queries, few enough to hold all scores; a single one needs no ``mask``."""
    n, heads, head_dim = q.shape
    if mask is None:
        scores = torch.bmm(q.view(len(k), -1, head_dim), k.mT)
        return torch.bmm(scores.softmax(-1), v).view(1, -1)
    rows = q.view(n, len(k), -1, head_dim).permute(1, 2, 0, 3).reshape(len(k), -1, head_dim)
    mixed = torch.bmm(torch.baddbmm(mask, rows, k.mT).softmax(-1), v)
    return mixed.view(heads, n, head_dim).transpose(0, 1).reshape(n, -1)
