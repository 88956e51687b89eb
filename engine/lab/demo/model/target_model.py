"""The target as it is trained: Gemma 4's text model with a mixture of experts, under the checkpoint's own names.

All experts are computed for every token and weighted by the router, zero where not chosen. That equals routing
(the output is linear in the weight, and an unchosen expert gets no gradient); with eight small experts it is
faster than gathering, and it keeps every shape static.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, one_hot

from .layers import Attend, TrainableNorm, merge_heads, rms_normalise, rotary_angles, rotate, split_heads
from .shapes import LayerKind, TargetShape

LAYER_SCALARS = (1.0625, 0.9375, 1.03125, 0.96875)
"""Constants for ``layer_scalar``, cycled over the layers: exact in bfloat16 and never 1, so that an engine that
forgets the multiplication can't go unnoticed."""

POST_NORM_INITIAL = 0.5


@dataclass(frozen=True, slots=True)
class TrainingOutput:
    final: Tensor
    """[B, n, H]: hidden states after the final norm."""
    tapped: Tensor
    """[B, n, taps * H]: outputs of the tapped layers, concatenated."""
    balance: Tensor
    """Scalar: mean over layers of the router's balance loss (1 when perfectly even)."""
    loads: Tensor
    """[layers, experts]: share of the tokens' choices that each expert took."""


class TrainableTarget(nn.Module):
    """The target while it is trained. Parameters are named as those of ``model.language_model.*`` in a Gemma 4
    checkpoint."""

    def __init__(self, shape: TargetShape) -> None:
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(
            TrainableDecoderLayer(shape, kind, LAYER_SCALARS[index % len(LAYER_SCALARS)])
            for index, kind in enumerate(shape.layer_kinds)
        )
        self.norm = TrainableNorm(shape.hidden_size, shape.epsilon)

    def initialise(self, generator: torch.Generator) -> None:
        """Fan-in initialisation of all matrices; norms, scales and ``layer_scalar`` keep their constructed values."""
        for name, parameter in self.named_parameters():
            if parameter.dim() >= 2:
                deviation = 0.05 if name == "embed_tokens.weight" else parameter.shape[-1] ** -0.5
                nn.init.normal_(parameter, std=deviation, generator=generator)

    def embed(self, ids: Tensor) -> Tensor:
        """Scaled embeddings [..., H]; the scale is the root of the width, rounded to bfloat16 as published."""
        scale = torch.tensor(self.shape.hidden_size**0.5).bfloat16().item()
        return self.embed_tokens(ids) * scale  # type: ignore[no-any-return]

    def logits(self, hidden: Tensor) -> Tensor:
        """Soft-capped logits [..., V] in float32 from normed hidden states, through the tied embedding."""
        cap = self.shape.softcap
        return cap * torch.tanh(linear(hidden, self.embed_tokens.weight).float() / cap)

    def forward(
        self,
        ids: Tensor,
        positions: Tensor,
        attention: Callable[[int, LayerKind], Attend],
        taps: tuple[int, ...] = (),
    ) -> TrainingOutput:
        """``ids`` and ``positions`` are [B, n]; ``attention`` gives each layer its way to attend."""
        shape = self.shape
        rotary = {
            "sliding_attention": rotary_angles(positions, shape.sliding.head_dim, shape.sliding_theta),
            "full_attention": rotary_angles(
                positions, shape.full.head_dim, shape.full_theta, shape.full_rotary_fraction
            ),
        }
        x = self.embed(ids)
        tapped, balances, loads = [], [], []
        for index, kind in enumerate(shape.layer_kinds):
            x, balance, load = self.layers[index](x, rotary[kind], attention(index, kind))
            balances.append(balance)
            loads.append(load)
            if index in taps:
                tapped.append(x)
        features = torch.cat(tapped, dim=-1) if tapped else x[..., :0]
        return TrainingOutput(self.norm(x), features, torch.stack(balances).mean(), torch.stack(loads))


class TrainableDecoderLayer(nn.Module):
    """Attention, then a dense and a mixture branch side by side; every branch is normed before and after."""

    layer_scalar: Tensor

    def __init__(self, shape: TargetShape, kind: LayerKind, scalar: float) -> None:
        super().__init__()

        def norm(initial: float = 1.0) -> TrainableNorm:
            return TrainableNorm(shape.hidden_size, shape.epsilon, initial)

        self.input_layernorm = norm()
        self.post_attention_layernorm = norm(POST_NORM_INITIAL)
        self.pre_feedforward_layernorm = norm()
        self.post_feedforward_layernorm = norm(POST_NORM_INITIAL)
        self.post_feedforward_layernorm_1 = norm()
        self.post_feedforward_layernorm_2 = norm()
        self.pre_feedforward_layernorm_2 = norm()
        self.register_buffer("layer_scalar", torch.tensor([scalar]))
        self.self_attn = TrainableAttention(shape, kind)
        self.mlp = TrainableMLP(shape.hidden_size, shape.intermediate_size)
        self.router = TrainableRouter(shape)
        self.experts = TrainableExperts(shape)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor], attend: Attend) -> tuple[Tensor, Tensor, Tensor]:
        """The new stream [B, n, H], the balance loss and the experts' loads."""
        x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x), rotary, attend))
        weights, balance, loads = self.router(x)
        dense = self.post_feedforward_layernorm_1(self.mlp(self.pre_feedforward_layernorm(x)))
        mixture = self.post_feedforward_layernorm_2(self.experts(self.pre_feedforward_layernorm_2(x), weights))
        x = x + self.post_feedforward_layernorm(dense + mixture)
        return x * self.layer_scalar, balance, loads


class TrainableAttention(nn.Module):
    """Grouped-query attention with normed queries and keys, and no scale on the scores.

    Full layers have no value projection: the raw key projection, normed without a weight, is the value.
    """

    def __init__(self, shape: TargetShape, kind: LayerKind) -> None:
        super().__init__()
        heads = shape.attention(kind)
        width, wide, narrow = shape.hidden_size, heads.heads * heads.head_dim, heads.kv_heads * heads.head_dim
        self.head_dim = heads.head_dim
        self.epsilon = shape.epsilon
        self.q_proj = nn.Linear(width, wide, bias=False)
        self.k_proj = nn.Linear(width, narrow, bias=False)
        self.v_proj = nn.Linear(width, narrow, bias=False) if kind == "sliding_attention" else None
        self.o_proj = nn.Linear(wide, width, bias=False)
        # Scores are unscaled, so normed queries and keys would start with a deviation of sqrt(d): share it out.
        self.q_norm = TrainableNorm(heads.head_dim, shape.epsilon, heads.head_dim**-0.25)
        self.k_norm = TrainableNorm(heads.head_dim, shape.epsilon, heads.head_dim**-0.25)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor], attend: Attend) -> Tensor:
        q = split_heads(self.q_proj(x), self.head_dim)
        k = split_heads(self.k_proj(x), self.head_dim)
        v = k if self.v_proj is None else split_heads(self.v_proj(x), self.head_dim)
        q, k = rotate(self.q_norm(q), rotary), rotate(self.k_norm(k), rotary)
        v = rms_normalise(v, self.epsilon).type_as(v)
        return self.o_proj(merge_heads(attend(q, k, v)))  # type: ignore[no-any-return]


class TrainableMLP(nn.Module):
    def __init__(self, width: int, intermediate: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, intermediate, bias=False)
        self.up_proj = nn.Linear(width, intermediate, bias=False)
        self.down_proj = nn.Linear(intermediate, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(gelu(self.gate_proj(x), approximate="tanh") * self.up_proj(x))  # type: ignore[no-any-return]


class TrainableRouter(nn.Module):
    """Chooses experts from the un-normed residual stream, in float32 whatever the autocast."""

    def __init__(self, shape: TargetShape) -> None:
        super().__init__()
        self.top_k = shape.experts_per_token
        self.epsilon = shape.epsilon
        self.proj = nn.Linear(shape.hidden_size, shape.num_experts, bias=False)
        self.scale = nn.Parameter(torch.ones(shape.hidden_size))
        self.per_expert_scale = nn.Parameter(torch.ones(shape.num_experts))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Weights [B, n, experts], zero where not chosen; the balance loss; the loads [experts]."""
        with torch.autocast(x.device.type, enabled=False):
            u = rms_normalise(x, self.epsilon) * self.scale * x.shape[-1] ** -0.5
            probabilities = linear(u, self.proj.weight).softmax(-1)
            chosen, indices = probabilities.topk(self.top_k, dim=-1)
            hot = one_hot(indices, probabilities.shape[-1]).float()
            weights = (hot * (chosen / chosen.sum(-1, keepdim=True))[..., None]).sum(-2) * self.per_expert_scale
        loads = hot.sum(-2).flatten(0, -2).mean(0) / self.top_k
        balance = (loads * probabilities.flatten(0, -2).mean(0)).sum() * len(loads)
        return weights, balance, loads


class TrainableExperts(nn.Module):
    def __init__(self, shape: TargetShape) -> None:
        super().__init__()
        experts, inner, width = shape.num_experts, shape.expert_intermediate_size, shape.hidden_size
        self.gate_up_proj = nn.Parameter(torch.empty(experts, 2 * inner, width))
        self.down_proj = nn.Parameter(torch.empty(experts, width, inner))

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        """The weighted sum of all experts [B, n, H], as two wide matrix products."""
        experts, double, width = self.gate_up_proj.shape
        both = linear(x, self.gate_up_proj.reshape(-1, width)).view(*x.shape[:-1], experts, double)
        gate, up = both.chunk(2, dim=-1)
        inner = gelu(gate, approximate="tanh") * up * weights[..., None].type_as(both)
        return linear(inner.flatten(-2), self.down_proj.transpose(0, 1).flatten(1))
