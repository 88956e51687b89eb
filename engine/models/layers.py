"""Modules that models share. Module and parameter names are those of the published tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..kernels.prefill.products import product
from ..kernels.reference.attention import AttentionFunction, sdpa_attention
from ..kernels.reference.moe import experts
from ..kernels.reference.norm import rms_norm, rms_norm_rounded_first
from ..kernels.reference.rope import apply_rope
from ..kernels.weights.kinds import weight_of
from ..kernels.weights.weight import Weight
from ..layer_config import Activation, AttentionConfig, MoeConfig
from .attention_backends import Backend, describe
from .merged_weights import side_by_side

RopeTable = tuple[Tensor, Tensor]
"""Cosines and sines, as ``rope_table`` returns them."""


class LayerShape(Protocol):
    """What a layer needs to know of a model's config."""

    @property
    def hidden_size(self) -> int: ...
    @property
    def rms_norm_eps(self) -> float: ...
    @property
    def intermediate_size(self) -> int: ...
    @property
    def activation(self) -> Activation: ...
    @property
    def moe(self) -> MoeConfig | None: ...


class _Linear(nn.Linear):
    """A linear layer without initial weights, since a checkpoint's take their place. On ``meta``, where models are
    planned, drawing them would go through torch's reference functions in Python."""

    def reset_parameters(self) -> None:
        pass


def linear(inputs: int, outputs: int, bias: bool = False) -> nn.Linear:
    """A projection, without bias unless it says so."""
    return _Linear(inputs, outputs, bias=bias)


def embedding(vocabulary: int, hidden: int) -> nn.Embedding:
    """An embedding without initial weights: drawing them would import torch's compiler, a second of every start."""
    table: nn.Embedding = nn.Embedding.from_pretrained(torch.empty(vocabulary, hidden))  # type: ignore[no-untyped-call]
    return table


class SharedInputModule(nn.Module):
    """A module some of whose projections read the same rows. On a CPU each operation has a price of its own, so once
    ``merge`` has laid their weights together these are one product there."""

    together: Weight | None = None

    def merge(self, *names: str) -> None:
        """Lays the weights of these projections side by side; they keep using them."""
        self.together = side_by_side(*(getattr(self, name) for name in names))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> SharedInputModule:
        """Forgets the merged weights: moving or casting parameters makes new ones, which no longer lie side by side."""
        self.together = None
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def read(self, x: Tensor, *projections: nn.Linear) -> Sequence[Tensor]:
        """Products of rows x with each of ``projections``, which must be all that ``merge`` was given."""
        if self.together is None:
            return [projection(x) for projection in projections]
        # Not by parameters' names, which are different in packed projections.
        return torch.split(product(x, self.together), [projection.out_features for projection in projections], dim=-1)


def merge_projections(model: nn.Module, groups: Sequence[Sequence[str]]) -> None:
    """Merges, in every ``SharedInputModule`` of a model, the projections of each group of names."""
    for module in model.modules():
        for names in groups:
            if isinstance(module, SharedInputModule) and isinstance(getattr(module, names[0], None), nn.Module):
                module.merge(*(name for name in names if getattr(module, name) is not None))


class RMSNorm(nn.Module):
    """RMS norm with a learned weight [size]. ``style``: the order of rounding, see ``kernels/reference/norm.py``."""

    def __init__(self, size: int, eps: float, style: Literal["gemma", "qwen"] = "gemma"):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self.eps = eps
        self._norm = rms_norm if style == "gemma" else rms_norm_rounded_first

    def forward(self, x: Tensor) -> Tensor:
        return self._norm(x, self.weight, self.eps)


class GatedMLP(SharedInputModule):
    """down(act(gate(x)) * up(x)), with tanh-GELU or SiLU."""

    def __init__(self, hidden: int, intermediate: int, activation: Activation):
        super().__init__()
        self.gate_proj = linear(hidden, intermediate)
        self.up_proj = linear(hidden, intermediate)
        self.down_proj = linear(intermediate, hidden)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.read(x, self.gate_proj, self.up_proj)
        gate = F.silu(gate) if self.activation == "silu" else F.gelu(gate, approximate="tanh")
        out: Tensor = self.down_proj(gate * up)
        return out


class Experts(nn.Module):
    """The experts of a layer, stacked: each is a ``GatedMLP``, perhaps with biases."""

    def __init__(self, hidden: int, moe: MoeConfig, activation: Activation):
        super().__init__()
        self.gate_up_proj = nn.Parameter(torch.empty(moe.num_experts, 2 * moe.intermediate_size, hidden))
        self.down_proj = nn.Parameter(torch.empty(moe.num_experts, hidden, moe.intermediate_size))
        self.gate_up_bias, self.down_bias = (
            nn.Parameter(torch.empty(moe.num_experts, size)) if moe.biases else None
            for size in (2 * moe.intermediate_size, hidden)
        )
        self.activation: Activation = activation

    def forward(self, x: Tensor, weights: Tensor, ids: Tensor) -> Tensor:
        gate_up, down = weight_of(self, "gate_up_proj"), weight_of(self, "down_proj")
        biases = None
        if self.gate_up_bias is not None and self.down_bias is not None:
            biases = self.gate_up_bias, self.down_bias
        return experts(x, weights, ids, gate_up, down, self.activation, biases)


class AttentionModule(SharedInputModule):
    """What every attention layer of every model has: its config, and the function that attends."""

    def __init__(self, layer: AttentionConfig):
        super().__init__()
        self.config = layer
        self.attend: AttentionFunction = sdpa_attention
        self.norms: Tensor | None = None
        """[heads + kv_heads, head_dim]: the norm's weight for each head of queries and keys; None before
        ``merge_norms``."""

    def merge(self, *names: str) -> None:
        if not self.config.biases:  # each product adds its own biases
            super().merge(*names)

    def merge_norms(self, q_norm: RMSNorm, k_norm: RMSNorm) -> None:
        """Makes all heads share one norm operation: where products are merged, the number of operations counts."""
        layer = self.config
        weights = q_norm.weight.expand(layer.num_heads, -1), k_norm.weight.expand(layer.num_kv_heads, -1)
        self.norms, self.eps = torch.cat(weights).detach(), q_norm.eps

    def read_merged(
        self, whole: Weight, x: Tensor, rope: RopeTable, norm_values: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Turned queries and keys, and values, [n, heads, head_dim] each, from merged projections. Keys that are values
        as well come last."""
        num_kv = self.config.num_kv_heads
        turning = self.config.num_heads + num_kv
        heads = product(x, whole).view(len(x), -1, self.config.head_dim)
        values = heads
        if self.norms is not None:
            normed = rms_norm(heads, None, self.eps)
            values = normed if norm_values else heads
            turned = apply_rope(normed[:, :turning] * self.norms, rope)
        else:
            turned = apply_rope(heads[:, :turning], rope)
        q, k = torch.split(turned, [self.config.num_heads, num_kv], dim=1)
        return q, k, values.narrow(1, values.shape[1] - num_kv, num_kv)


def use_attention(model: nn.Module, backends: Sequence[Backend]) -> str:
    """Gives each attention layer its backend, in order; returns their names, for people."""
    layers = [module for module in model.modules() if isinstance(module, AttentionModule)]
    for layer, backend in zip(layers, backends, strict=True):
        layer.attend = backend.function
    return describe(backends)
