"""The Gemma 4 text model (``google/gemma-4-*``), one sequence, no batch dimension. Modules and parameters are named as
in the published checkpoints, so this file lists what a checkpoint must hold."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...kernels.decode.products.head import capped_logits
from ...kernels.decode.tiling.tiles import TargetTiles
from ...kernels.reference.moe import route
from ...kernels.reference.norm import rms_norm
from ...kernels.reference.rope import apply_rope, inverse_frequencies, rope_table
from ...kv_cache.cache import Cache
from ...kv_cache.layer_cache import LayerCache
from ...layer_config import AttentionConfig, MoeConfig
from ...speculation.trees import WIDE_ROWS
from ..attention_backends import TRITON
from ..family import AFTER_NORM, EMBEDDED
from ..layers import AttentionModule, Experts, GatedMLP, LayerShape, RMSNorm, RopeTable, embedding, linear
from ..target import DecodePass, PrefillPass, TargetModel, TargetOutput, WidePass
from .config import Gemma4Config


class Gemma4Attention(AttentionModule):
    def __init__(self, layer: AttentionConfig, hidden: int, eps: float):
        super().__init__(layer)
        self.eps = eps
        kv_size = layer.num_kv_heads * layer.head_dim
        self.q_proj = linear(hidden, layer.num_heads * layer.head_dim)
        self.k_proj = linear(hidden, kv_size)
        self.v_proj = None if layer.value_is_key else linear(hidden, kv_size)
        self.o_proj = linear(layer.num_heads * layer.head_dim, hidden)
        self.q_norm = RMSNorm(layer.head_dim, eps)
        self.k_norm = RMSNorm(layer.head_dim, eps)

    def forward(self, x: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> Tensor:
        """Attends rows x [n, hidden] at positions start .. start + n - 1; their keys and values go into the cache."""
        if self.together is None:
            q, k, v = self._queries_keys_values(x, rope)
        else:
            q, k, v = self.read_merged(self.together, x, rope, norm_values=True)
        k, v = cache.extend(start, k, v)
        mixed = self.attend(q, k, v, causal=True, window=self.config.window, scale=self.config.scale)
        out: Tensor = self.o_proj(mixed)
        return out

    def merge(self, *names: str) -> None:
        super().merge(*names)
        self.merge_norms(self.q_norm, self.k_norm)

    def _queries_keys_values(self, x: Tensor, rope: RopeTable) -> tuple[Tensor, Tensor, Tensor]:
        q = apply_rope(self.q_norm(self.q_proj(x).view(len(x), -1, self.config.head_dim)), rope)
        return q, *self.keys_values(x, rope)

    def remember(self, x: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> None:
        """Writes keys and values of rows x at start .. start + n - 1 into the cache."""
        cache.write(start, *self.keys_values(x, rope))

    def keys_values(self, x: Tensor, rope: RopeTable) -> tuple[Tensor, Tensor]:
        """[n, kv_heads, head_dim] each, of rows x [n, hidden]."""
        n, head_dim = x.shape[0], self.config.head_dim
        raw_k = self.k_proj(x).view(n, -1, head_dim)
        raw_v = raw_k if self.v_proj is None else self.v_proj(x).view(n, -1, head_dim)
        return apply_rope(self.k_norm(raw_k), rope), rms_norm(raw_v, None, self.eps)


class Gemma4Router(nn.Module):
    def __init__(self, hidden: int, moe: MoeConfig, eps: float):
        super().__init__()
        self.proj = linear(hidden, moe.num_experts)
        self.scale = nn.Parameter(torch.empty(hidden))
        self.per_expert_scale = nn.Parameter(torch.empty(moe.num_experts))
        self.top_k = moe.top_k
        self.eps = eps
        self.forced: Tensor | None = None
        """For measuring: fp32 scores [rows, experts] that replace the router's own, row by row and over again."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and ids, [n, top_k], of each row's experts. Scores are fp32: rounding them flips near-ties."""
        u = rms_norm(x, None, self.eps) * self.scale * x.shape[-1] ** -0.5
        scores = torch.nn.functional.linear(u.float(), self.proj.weight.float())
        if self.forced is not None:
            scores = self.forced[torch.arange(x.shape[0], device=x.device) % self.forced.shape[0]]
        return route(scores, self.top_k, self.per_expert_scale)


class Gemma4DecoderLayer(nn.Module):
    def __init__(self, config: LayerShape, layer: AttentionConfig):
        super().__init__()
        hidden, eps = config.hidden_size, config.rms_norm_eps
        self.self_attn = Gemma4Attention(layer, hidden, eps)
        self.mlp = GatedMLP(hidden, config.intermediate_size, config.activation)
        self.input_layernorm = RMSNorm(hidden, eps)
        self.post_attention_layernorm = RMSNorm(hidden, eps)
        self.pre_feedforward_layernorm = RMSNorm(hidden, eps)
        self.post_feedforward_layernorm = RMSNorm(hidden, eps)
        self.layer_scalar = nn.Parameter(torch.empty(1))
        self.has_experts = config.moe is not None
        if config.moe is not None:
            self.router = Gemma4Router(hidden, config.moe, eps)
            self.experts = Experts(hidden, config.moe, config.activation)
            self.pre_feedforward_layernorm_2 = RMSNorm(hidden, eps)
            self.post_feedforward_layernorm_1 = RMSNorm(hidden, eps)
            self.post_feedforward_layernorm_2 = RMSNorm(hidden, eps)

    def forward(self, x: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> Tensor:
        return self.behind_attention(x, self.self_attn(self.input_layernorm(x), start, cache, rope))

    def behind_attention(self, x: Tensor, mixed: Tensor) -> Tensor:
        """A residual stream x [n, hidden] behind the layer, given what attention says of it, [n, hidden]."""
        x = x + self.post_attention_layernorm(mixed)
        x = x + self.post_feedforward_layernorm(self._feed_forward(x))
        return x * self.layer_scalar

    def _feed_forward(self, x: Tensor) -> Tensor:
        """The dense MLP and, beside it, the experts. Router and experts read x itself, each behind its own norm."""
        dense: Tensor = self.mlp(self.pre_feedforward_layernorm(x))
        if not self.has_experts:
            return dense
        weights, ids = self.router(x)
        sparse = self.experts(self.pre_feedforward_layernorm_2(x), weights, ids)
        both: Tensor = self.post_feedforward_layernorm_1(dense) + self.post_feedforward_layernorm_2(sparse)
        return both


def embedding_scale(hidden: int) -> float:
    """The factor of embeddings. Rounded to bf16 whatever the compute dtype: that is what the weights were trained with
    (53.0, not 53.066)."""
    return torch.tensor(hidden**0.5, dtype=torch.bfloat16, device="cpu").item()


class Gemma4(TargetModel):
    """The weights and forward pass of a Gemma 4. The input embedding is also the head (tied)."""

    has_decode_pass = True
    branch_ends = ("post_attention_layernorm.weight", "post_feedforward_layernorm.weight")
    read_together = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))

    norm: RMSNorm

    def __init__(self, config: Gemma4Config):
        super().__init__()
        self.config = config
        self.embed_tokens = embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Gemma4DecoderLayer(config, layer) for layer in config.attention)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.embedding_scale = embedding_scale(config.hidden_size)
        if config.moe is not None:  # each tile of 16 rows reads dense weights again; all together read experts once
            self.widest_pass = WIDE_ROWS[-1]

    @property
    def routers(self) -> list[Gemma4Router]:
        return [module for module in self.modules() if isinstance(module, Gemma4Router)]

    def prepare(self) -> None:
        self.frequencies = {layer.rope: inverse_frequencies(layer.rope, self.device) for layer in self.config.attention}

    def forward(self, ids: Tensor, start: int, cache: Cache, taps: Sequence[int] = ()) -> TargetOutput:
        """See ``TargetModel.forward``; a layer's output is multiplied by ``layer_scalar``."""
        positions = cache.positions(start, start + ids.shape[0])
        ropes = {rope: rope_table(positions, frequencies) for rope, frequencies in self.frequencies.items()}
        x = self.embed(ids)
        tapped: dict[int, Tensor] = {EMBEDDED: self.embedded(ids, x)}
        layers = zip(self.layers, self.config.attention, cache.attention, strict=True)
        for index, (layer, config, layer_cache) in enumerate(layers):
            x = layer(x, start, layer_cache, ropes[config.rope])
            if index in taps:
                tapped[index] = x
        tapped[AFTER_NORM] = normed = self.norm(x)
        features = torch.cat([tapped[index] for index in taps], dim=-1) if taps else None
        return TargetOutput(normed, features)

    def logits(self, hidden: Tensor) -> Tensor:
        return capped_logits(hidden, self.head_weight, self.config.logit_softcap)

    def prefill_pass(self, cache: Cache) -> PrefillPass:
        """What runs prompts: where every layer attends with Triton, kernels do the rest of a prompt as well."""
        from . import prefill_pass

        return prefill_pass.Gemma4PrefillPass(self, cache) if self.attention_backend == TRITON.name else self

    def decode_pass(
        self, cache: Cache, cursor: Tensor, rows: Tensor, taps: Sequence[int] = (), tiles: TargetTiles | None = None
    ) -> DecodePass:
        from . import decode_pass

        return decode_pass.Gemma4DecodePass(self, cache, cursor, rows, taps, tiles)

    def wide_pass(
        self, cache: Cache, cursor: Tensor, rows: Tensor, taps: Sequence[int] = (), tiles: TargetTiles | None = None
    ) -> WidePass:
        from . import wide_pass

        return wide_pass.Gemma4WidePass(self, cache, cursor, rows, taps, tiles)
