"""EAGLE-3. Features of some target layers become one hidden state a row; a layer reads it beside the embedding of the
token that comes next, each normed, and a head says the token after that. A few have ordinary layers behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

import torch
from torch import Tensor, nn

from ...kernels.decode.products.head import capped_logits
from ...kernels.reference.rope import inverse_frequencies
from ...kernels.weights.int8 import Int8Weight
from ...kernels.weights.kinds import weight_of
from ...kv_cache.cache import Cache
from ...kv_cache.layer_cache import LayerCache
from ...layer_config import AttentionConfig
from ..drafter import DraftBinding
from ..layers import RMSNorm, RopeTable, linear
from ..paired import Drafted, PairedDrafter, Pairs
from ..pre_norm.modules import PreNormAttention, PreNormDecoderLayer
from ..target import TargetModel
from .config import Eagle3Config

if TYPE_CHECKING:
    from .draft_pass import Eagle3DraftPass


class EagleAttention(PreNormAttention):
    """Attention whose queries, keys and values are of pairs, twice as wide as what comes out."""

    def __init__(self, layer: AttentionConfig, config: Eagle3Config):
        super().__init__(layer, config)
        kv_size = layer.num_kv_heads * layer.head_dim
        for name, size in (("q_proj", layer.num_heads * layer.head_dim), ("k_proj", kv_size), ("v_proj", kv_size)):
            setattr(self, name, linear(2 * config.hidden_size, size, layer.biases))


class EagleLayer(PreNormDecoderLayer):
    """The first layer, which reads pairs, behind their joining."""

    self_attn: EagleAttention

    def __init__(self, config: Eagle3Config, layer: AttentionConfig):
        super().__init__(config, layer)
        self.self_attn = EagleAttention(layer, config)
        self.hidden_norm = RMSNorm(config.hidden_size, config.rms_norm_eps, config.norm_style)


class FirstLayer(Protocol):
    """What is asked of the first layer, whatever family it is of."""

    self_attn: EagleAttention
    input_layernorm: RMSNorm
    hidden_norm: RMSNorm

    def behind_attention(self, x: Tensor, mixed: Tensor) -> Tensor: ...


class Eagle3(PairedDrafter):
    """An EAGLE-3 drafter."""

    branch_ends = ("self_attn.o_proj.weight", "mlp.down_proj.weight")
    read_together = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
    never_packed = ("embed_tokens.weight",)
    config: Eagle3Config

    def __init__(self, config: Eagle3Config):
        super().__init__()
        self.config = config
        hidden, eps, count = config.hidden_size, config.rms_norm_eps, len(config.taps)
        if config.feature_norms == "together":
            self.input_norm = RMSNorm(count * hidden, eps, config.norm_style)
        elif config.feature_norms == "each":
            self.fc_norm = nn.ModuleList(RMSNorm(hidden, eps, config.norm_style) for _ in range(count))
        self.fc = linear(count * hidden, hidden, config.feature_bias)
        first, *further = config.layers
        behind = (PreNormDecoderLayer(config, layer) for layer in further)
        self.layers = nn.ModuleList([self._first_layer(first), *behind])
        self.norm = RMSNorm(hidden, eps, config.norm_style)
        self._bring_tables(hidden)

    def _first_layer(self, layer: AttentionConfig) -> nn.Module:
        """Makes the layer that reads pairs, a ``FirstLayer``."""
        return EagleLayer(self.config, layer)

    @property
    def first(self) -> FirstLayer:
        return cast(FirstLayer, self.layers[0])

    @property
    def further(self) -> list[PreNormDecoderLayer]:
        """The layers behind the first, which read no token: mostly none."""
        return [layer for layer in self.layers[1:] if isinstance(layer, PreNormDecoderLayer)]

    @property
    def in_8_bits(self) -> bool:
        return isinstance(weight_of(self.fc), Int8Weight)

    def prepare(self) -> None:
        self.frequencies = inverse_frequencies(self.config.layers[0].rope, self.norm.weight.device)

    def normed_features(self, features: Tensor) -> Tensor:
        """What ``fc`` reads of features [n, taps * hidden]."""
        match self.config.feature_norms:
            case "together":
                features = self.input_norm(features)
            case "each":
                parts = zip(self.fc_norm, features.chunk(len(self.fc_norm), dim=-1), strict=True)
                features = torch.cat([norm(features_of_layer) for norm, features_of_layer in parts], dim=-1)
        return features

    def rows_of(self, features: Tensor) -> Pairs:
        hidden = self.config.hidden_size
        return Pairs(features[:, -hidden:], self.fc(self.normed_features(features[:, :-hidden])))

    def remember(self, pairs: Pairs, start: int, keys: Sequence[LayerCache], rope: RopeTable) -> None:
        if not self.further:
            self.first.self_attn.remember(self._joined(pairs), start, keys[0], rope)
            return
        *before, last = self.further
        x = self._behind(pairs, start, keys, rope, before)
        last.self_attn.remember(last.input_layernorm(x), start, keys[-1], rope)

    def _joined(self, pairs: Pairs) -> Tensor:
        """[n, 2 * hidden]: embeddings, normed, beside hidden states, normed."""
        embedded, hidden = self.first.input_layernorm(pairs.embedded), self.first.hidden_norm(pairs.hidden)
        return torch.cat((embedded, hidden), dim=-1)

    def _behind(
        self, pairs: Pairs, start: int, keys: Sequence[LayerCache], rope: RopeTable, further: list[PreNormDecoderLayer]
    ) -> Tensor:
        """The residual stream behind the first layer and ``further`` ones, [n, hidden]."""
        joined = self._joined(pairs)
        x = joined[:, self.config.hidden_size :] if self.config.residual_normed else pairs.hidden
        x = self.first.behind_attention(x, self.first.self_attn(joined, start, keys[0], rope))
        for layer, kept in zip(further, keys[1:], strict=False):
            x = layer(x, start, kept, rope)
        return x

    def step(
        self, target: TargetModel, pair: Pairs, position: int, keys: Sequence[LayerCache], rope: RopeTable
    ) -> Drafted:
        x = self._behind(pair, position, keys, rope, self.further)
        normed = self.norm(x)
        logits = capped_logits(normed, self.head_of(target), self.config.logit_softcap)
        return Drafted(logits, normed if self.config.feeds_normed else x)

    def draft_pass(self, target: TargetModel, cache: Cache, bound: DraftBinding) -> Eagle3DraftPass:
        from . import draft_pass

        assert bound.choices is None
        return draft_pass.Eagle3DraftPass(self, target, cache, bound)
