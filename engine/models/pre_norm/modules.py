"""A pre-norm decoder, one sequence, no batch dimension. Modules and parameters are named as in the published
checkpoints of Llama, Qwen3 and Qwen3-MoE, so this file lists what such a checkpoint must hold; gpt-oss has other names
for some."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from ...kernels.decode.products.head import capped_logits
from ...kernels.decode.tiling.tiles import TargetTiles
from ...kernels.reference.attention import sink_attention
from ...kernels.reference.moe import route
from ...kernels.reference.rope import apply_rope, inverse_frequencies, rope_table
from ...kv_cache.cache import Cache
from ...kv_cache.layer_cache import LayerCache
from ...layer_config import Activation, AttentionConfig, MoeConfig
from ..attention_backends import TRITON
from ..family import EMBEDDED, TargetConfig
from ..layers import AttentionModule, Experts, GatedMLP, LayerShape, RMSNorm, RopeTable, embedding, linear
from ..target import DecodePass, PrefillPass, TargetModel, TargetOutput
from .config import PreNormConfig


class PreNormShape(LayerShape, Protocol):
    """What a layer needs to know of a model's config."""

    @property
    def norm_style(self) -> Literal["gemma", "qwen"]: ...
    @property
    def head_norms(self) -> bool: ...


class PreNormAttention(AttentionModule):
    def __init__(self, layer: AttentionConfig, config: PreNormShape):
        super().__init__(layer)
        hidden, kv_size = config.hidden_size, layer.num_kv_heads * layer.head_dim
        self.q_proj = linear(hidden, layer.num_heads * layer.head_dim, layer.biases)
        self.k_proj = linear(hidden, kv_size, layer.biases)
        self.v_proj = linear(hidden, kv_size, layer.biases)
        self.o_proj = linear(layer.num_heads * layer.head_dim, hidden, layer.biases)
        self.sinks = nn.Parameter(torch.empty(layer.num_heads)) if layer.sinks else None
        """A score of each head beside those of its keys; None without sinks."""
        self.q_norm, self.k_norm = (
            RMSNorm(layer.head_dim, config.rms_norm_eps, config.norm_style) if config.head_norms else None
            for _ in range(2)
        )

    def forward(self, x: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> Tensor:
        """Attends rows x [n, hidden] at positions start .. start + n - 1; their keys and values go into the cache."""
        if self.together is None:
            q, k, v = self._queries_keys_values(x, rope)
        else:
            q, k, v = self.read_merged(self.together, x, rope)
        k, v = cache.extend(start, k, v)
        window, scale = self.config.window, self.config.scale
        if self.sinks is None:
            mixed = self.attend(q, k, v, causal=True, window=window, scale=scale)
        else:
            mixed = sink_attention(q, k, v, self.sinks, window=window, scale=scale)
        out: Tensor = self.o_proj(mixed)
        return out

    def remember(self, x: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> None:
        """Writes keys and values of rows x at start .. start + n - 1 into the cache."""
        k, v = (each(x).view(len(x), -1, self.config.head_dim) for each in (self.k_proj, self.v_proj))
        cache.write(start, apply_rope(k if self.k_norm is None else self.k_norm(k), rope), v)

    def merge(self, *names: str) -> None:
        super().merge(*names)
        if self.q_norm is not None and self.k_norm is not None:
            self.merge_norms(self.q_norm, self.k_norm)

    def _queries_keys_values(self, x: Tensor, rope: RopeTable) -> tuple[Tensor, Tensor, Tensor]:
        projections = self.q_proj, self.k_proj, self.v_proj
        q, k, v = (each(x).view(len(x), -1, self.config.head_dim) for each in projections)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        return apply_rope(q, rope), apply_rope(k, rope), v


class PreNormRouter(nn.Module):
    def __init__(self, hidden: int, moe: MoeConfig):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(moe.num_experts, hidden))
        self.bias = nn.Parameter(torch.empty(moe.num_experts)) if moe.biases else None
        self.top_k = moe.top_k
        self.forced: Tensor | None = None
        """For measuring: fp32 scores [rows, experts] that replace the router's own, row by row and over again."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and ids, [n, top_k], of each row's experts. Scores are fp32: rounding them flips near-ties."""
        bias = None if self.bias is None else self.bias.float()
        scores = torch.nn.functional.linear(x.float(), self.weight.float(), bias)
        if self.forced is not None:
            scores = self.forced[torch.arange(x.shape[0], device=x.device) % self.forced.shape[0]]
        return route(scores, self.top_k)


class SparseMLP(nn.Module):
    """Experts in place of an MLP; ``gate`` chooses among them."""

    def __init__(self, hidden: int, moe: MoeConfig, activation: Activation):
        super().__init__()
        self.gate = PreNormRouter(hidden, moe)
        self.experts = Experts(hidden, moe, activation)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.experts(x, *self.gate(x))
        return out


class PreNormDecoderLayer(nn.Module):
    def __init__(self, config: PreNormShape, layer: AttentionConfig):
        super().__init__()
        hidden, eps = config.hidden_size, config.rms_norm_eps
        self.self_attn = PreNormAttention(layer, config)
        self.mlp = (
            GatedMLP(hidden, config.intermediate_size, config.activation)
            if config.moe is None
            else SparseMLP(hidden, config.moe, config.activation)
        )
        self.input_layernorm = RMSNorm(hidden, eps, config.norm_style)
        self.post_attention_layernorm = RMSNorm(hidden, eps, config.norm_style)

    def forward(self, x: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> Tensor:
        return self.behind_attention(x, self.self_attn(self.input_layernorm(x), start, cache, rope))

    def behind_attention(self, x: Tensor, mixed: Tensor) -> Tensor:
        """A residual stream x [n, hidden] behind the layer, given what attention says of it, [n, hidden]."""
        x = x + mixed
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class OneRopeTarget(TargetModel):
    """A target all of whose attention turns alike, and whose head is its embedding or a matrix of its own."""

    frequencies: Tensor

    def __init__(self, config: TargetConfig, layers: Iterable[nn.Module], norm: nn.Module, tied: bool):
        super().__init__()
        self.embed_tokens = embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(layers)
        self.norm = norm
        self.lm_head = None if tied else linear(config.hidden_size, config.vocab_size)

    @property
    def head(self) -> Tensor:
        return self.embed_tokens.weight if self.lm_head is None else self.lm_head.weight

    @property
    def routers(self) -> list[PreNormRouter]:
        return [module for module in self.modules() if isinstance(module, PreNormRouter)]

    def prepare(self) -> None:
        (rope,) = {layer.rope for layer in self.config.attention}
        self.frequencies = inverse_frequencies(rope, self.device)

    def logits(self, hidden: Tensor) -> Tensor:
        return capped_logits(hidden, self.head_weight, None)


class PreNormTarget(OneRopeTarget):
    """The weights and forward pass of a pre-norm decoder."""

    has_decode_pass = True
    branch_ends = ("self_attn.o_proj.weight", "mlp.down_proj.weight", "experts.down_proj")
    read_together = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))

    config: PreNormConfig
    norm: RMSNorm

    def __init__(self, config: PreNormConfig):
        layers = (PreNormDecoderLayer(config, layer) for layer in config.attention)
        norm = RMSNorm(config.hidden_size, config.rms_norm_eps, config.norm_style)
        super().__init__(config, layers, norm, config.tied)
        self.config = config
        self.host_pass: PrefillPass | None = None

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> PreNormTarget:
        """Forgets what was settled for the CPU, like ``SharedInputModule``'s."""
        self.host_pass = None
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def when_settled(self) -> None:
        from .host_pass import HostPass

        self.host_pass = HostPass(self) if HostPass.suits(self) else None

    def forward(self, ids: Tensor, start: int, cache: Cache, taps: Sequence[int] = ()) -> TargetOutput:
        if self.host_pass is not None:
            return self.host_pass(ids, start, cache, taps)
        rope = rope_table(cache.positions(start, start + ids.shape[0]), self.frequencies)
        x = self.embed(ids)
        tapped: dict[int, Tensor] = {EMBEDDED: self.embedded(ids, x)}
        for index, (layer, layer_cache) in enumerate(zip(self.layers, cache.attention, strict=True)):
            x = layer(x, start, layer_cache, rope)
            if index in taps:
                tapped[index] = x
        features = torch.cat([tapped[index] for index in taps], dim=-1) if taps else None
        return TargetOutput(self.norm(x), features)

    def prefill_pass(self, cache: Cache) -> PrefillPass:
        """What runs prompts: where every layer attends with Triton, kernels do the rest of a prompt as well."""
        from . import prefill_pass

        return prefill_pass.PreNormPrefillPass(self, cache) if self.attention_backend == TRITON.name else self

    def decode_pass(
        self, cache: Cache, cursor: Tensor, rows: Tensor, taps: Sequence[int] = (), tiles: TargetTiles | None = None
    ) -> DecodePass:
        from . import decode_pass

        return decode_pass.PreNormDecodePass(self, cache, cursor, rows, taps, tiles)
