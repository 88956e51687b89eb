"""The DFlash drafter: Qwen3-style layers whose keys and values also come from the target's hidden states.

Reference: the layout of the published DFlash drafters. The drafter has no embedding and no head of its own; block
embeddings arrive from the target, and its output goes through the target's head.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from .layers import RMSNorm, merge_heads, rotary_angles, rotate, split_heads
from .shapes import DrafterShape, LayerKind

Pair = tuple[Tensor, Tensor]
"""Keys and values, each [B, kv_heads, n, d]."""

DraftAttend = Callable[[Tensor, Pair, Pair], Tensor]
"""(block queries [B, heads, n, d], context keys and values, block keys and values) -> [B, heads, n, d]"""


class DrafterModel(nn.Module):
    """``state_dict`` names are those of a published drafter."""

    def __init__(self, shape: DrafterShape) -> None:
        super().__init__()
        self.shape = shape
        width = shape.hidden_size
        self.fc = nn.Linear(len(shape.tapped_layers) * width, width, bias=False)
        self.hidden_norm = RMSNorm(width, shape.epsilon)
        self.layers = nn.ModuleList(DraftLayer(shape) for _ in shape.layer_kinds)
        self.norm = RMSNorm(width, shape.epsilon)

    def initialise(self, generator: torch.Generator) -> None:
        for parameter in self.parameters():
            if parameter.dim() >= 2:
                nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5, generator=generator)

    def context(self, features: Tensor) -> Tensor:
        """[B, m, taps * H] of the target -> [B, m, H], which every layer reads as it is."""
        return self.hidden_norm(self.fc(features))  # type: ignore[no-any-return]

    def forward(
        self,
        context: Tensor,
        context_positions: Tensor,
        block: Tensor,
        block_positions: Tensor,
        attention: Callable[[int, LayerKind], DraftAttend],
    ) -> Tensor:
        """Normed hidden states [B, n, H] of the block rows: row k predicts the token at its own position."""
        shape = self.shape
        context_angles = rotary_angles(context_positions, shape.attention.head_dim, shape.theta)
        block_angles = rotary_angles(block_positions, shape.attention.head_dim, shape.theta)
        x = block
        for index, kind in enumerate(shape.layer_kinds):
            x = self.layers[index](context, context_angles, x, block_angles, attention(index, kind))
        return self.norm(x)  # type: ignore[no-any-return]


class DraftLayer(nn.Module):
    def __init__(self, shape: DrafterShape) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(shape.hidden_size, shape.epsilon)
        self.post_attention_layernorm = RMSNorm(shape.hidden_size, shape.epsilon)
        self.self_attn = DraftAttention(shape)
        self.mlp = DraftMLP(shape)

    def forward(self, context: Tensor, context_angles: Pair, x: Tensor, angles: Pair, attend: DraftAttend) -> Tensor:
        x = x + self.self_attn(context, context_angles, self.input_layernorm(x), angles, attend)
        return x + self.mlp(self.post_attention_layernorm(x))  # type: ignore[no-any-return]


class DraftAttention(nn.Module):
    """Queries from the block only; one key and one value projection serve context and block alike."""

    def __init__(self, shape: DrafterShape) -> None:
        super().__init__()
        heads = shape.attention
        wide, narrow = heads.heads * heads.head_dim, heads.kv_heads * heads.head_dim
        self.head_dim = heads.head_dim
        self.q_proj = nn.Linear(shape.hidden_size, wide, bias=False)
        self.k_proj = nn.Linear(shape.hidden_size, narrow, bias=False)
        self.v_proj = nn.Linear(shape.hidden_size, narrow, bias=False)
        self.o_proj = nn.Linear(wide, shape.hidden_size, bias=False)
        self.q_norm = RMSNorm(heads.head_dim, shape.epsilon)
        self.k_norm = RMSNorm(heads.head_dim, shape.epsilon)

    def forward(self, context: Tensor, context_angles: Pair, x: Tensor, angles: Pair, attend: DraftAttend) -> Tensor:
        q = rotate(self.q_norm(split_heads(self.q_proj(x), self.head_dim)), angles)
        out = attend(q, self.keys_values(context, context_angles), self.keys_values(x, angles))
        return self.o_proj(merge_heads(out))  # type: ignore[no-any-return]

    def keys_values(self, x: Tensor, angles: Pair) -> Pair:
        keys = rotate(self.k_norm(split_heads(self.k_proj(x), self.head_dim)), angles)
        return keys, split_heads(self.v_proj(x), self.head_dim)


class DraftMLP(nn.Module):
    def __init__(self, shape: DrafterShape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))  # type: ignore[no-any-return]
