"""gpt-oss, one sequence, no batch dimension. Modules and parameters are named as in the published checkpoints (but for
the experts' biases, see ``names.py``), so this file lists what such a checkpoint must hold."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...kernels.decode.head import capped_logits
from ...kernels.reference.attention import sink_attention
from ...kernels.reference.moe import route
from ...kernels.reference.rope import apply_rope, inverse_frequencies, rope_table
from ...kv_cache.cache import Cache
from ...kv_cache.layer_cache import LayerCache
from ...layer_config import AttentionConfig, MoeConfig
from ..layers import AttentionModule, Experts, RMSNorm, RopeTable, embedding, linear
from ..target import TargetModel, TargetOutput
from .config import GptOssConfig


class Attention(AttentionModule):
    def __init__(self, layer: AttentionConfig, hidden: int):
        super().__init__(layer)
        kv_size = layer.num_kv_heads * layer.head_dim
        self.q_proj = linear(hidden, layer.num_heads * layer.head_dim, bias=True)
        self.k_proj = linear(hidden, kv_size, bias=True)
        self.v_proj = linear(hidden, kv_size, bias=True)
        self.o_proj = linear(layer.num_heads * layer.head_dim, hidden, bias=True)
        self.sinks = nn.Parameter(torch.empty(layer.num_heads))
        """A score of each head beside those of its keys."""

    def forward(self, x: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> Tensor:
        """Attends rows x [n, hidden] at positions start .. start + n - 1; their keys and values go into the cache."""
        n, layer = x.shape[0], self.config
        q, k, v = (each(x).view(n, -1, layer.head_dim) for each in (self.q_proj, self.k_proj, self.v_proj))
        k, v = cache.extend(start, apply_rope(k, rope), v)
        mixed = sink_attention(apply_rope(q, rope), k, v, self.sinks, window=layer.window, scale=layer.scale)
        out: Tensor = self.o_proj(mixed)
        return out


class Router(nn.Module):
    def __init__(self, hidden: int, moe: MoeConfig):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(moe.num_experts, hidden))
        self.bias = nn.Parameter(torch.empty(moe.num_experts))
        self.top_k = moe.top_k
        self.forced: Tensor | None = None
        """For measuring: fp32 scores [rows, experts] that replace the router's own, row by row and over again."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and ids, [n, top_k], of each row's experts. Scores are fp32: rounding them flips near-ties."""
        scores = nn.functional.linear(x.float(), self.weight.float(), self.bias.float())
        if self.forced is not None:
            scores = self.forced[torch.arange(x.shape[0], device=x.device) % self.forced.shape[0]]
        return route(scores, self.top_k)


class SparseMLP(nn.Module):
    """Experts, and the router that chooses among them."""

    def __init__(self, hidden: int, moe: MoeConfig):
        super().__init__()
        self.router = Router(hidden, moe)
        self.experts = Experts(hidden, moe, "clamped_silu", biases=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.experts(x, *self.router(x))
        return out


class DecoderLayer(nn.Module):
    def __init__(self, config: GptOssConfig, layer: AttentionConfig, moe: MoeConfig):
        super().__init__()
        hidden, eps = config.hidden_size, config.rms_norm_eps
        self.self_attn = Attention(layer, hidden)
        self.mlp = SparseMLP(hidden, moe)
        self.input_layernorm = RMSNorm(hidden, eps)
        self.post_attention_layernorm = RMSNorm(hidden, eps)

    def forward(self, x: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), start, cache, rope)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class GptOss(TargetModel):
    """Weights and forward pass. The host runs its rounds: no kernel of a decode pass has sinks and biases."""

    branch_ends = ("self_attn.o_proj.weight", "experts.down_proj")
    read_together = (("q_proj", "k_proj", "v_proj"),)

    config: GptOssConfig

    def __init__(self, config: GptOssConfig):
        super().__init__()
        assert config.moe is not None
        self.config = config
        self.embed_tokens = embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config, layer, config.moe) for layer in config.attention)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.lm_head = None if config.tied else linear(config.hidden_size, config.vocab_size)

    @property
    def head(self) -> Tensor:
        return self.embed_tokens.weight if self.lm_head is None else self.lm_head.weight

    @property
    def routers(self) -> list[Router]:
        return [module for module in self.modules() if isinstance(module, Router)]

    def prepare(self) -> None:
        (rope,) = {layer.rope for layer in self.config.attention}
        self.frequencies = inverse_frequencies(rope, self.device)

    def forward(self, ids: Tensor, start: int, cache: Cache, taps: Sequence[int] = ()) -> TargetOutput:
        rope = rope_table(torch.arange(start, start + ids.shape[0], device=ids.device), self.frequencies)
        x = self.embed(ids)
        tapped: dict[int, Tensor] = {}
        for index, (layer, layer_cache) in enumerate(zip(self.layers, cache.attention, strict=True)):
            x = layer(x, start, layer_cache, rope)
            if index in taps:
                tapped[index] = x
        features = torch.cat([tapped[index] for index in taps], dim=-1) if taps else None
        return TargetOutput(self.norm(x), features)

    def logits(self, hidden: Tensor) -> Tensor:
        return capped_logits(hidden, self.head_weight, None)
