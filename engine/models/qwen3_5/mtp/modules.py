"""Qwen3.5's layer that drafts (MTP). From the target's hidden state behind a row and the token that comes next it makes
the hidden state that the target's head reads the token after that from; for each further draft its own takes the
target's position. It keeps keys and values of every row that counts, also of the prompt's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ....kernels.reference.rope import inverse_frequencies
from ....kernels.weights.int8 import Int8Weight
from ....kernels.weights.kinds import weight_of
from ....kv_cache.cache import Cache
from ....kv_cache.layer_cache import LayerCache
from ...drafter import DraftBinding
from ...layers import RopeTable, linear
from ...paired import Drafted, PairedDrafter, Pairs
from ...target import TargetModel
from ..modules import CentredNorm, Qwen35DecoderLayer, row_order
from .config import QwenMtpConfig

if TYPE_CHECKING:
    from .draft_pass import QwenMtpDraftPass


class MtpLayer(nn.Module):
    """The layer that drafts, with the projection before it and the norms around it; files call it ``mtp``."""

    def __init__(self, config: QwenMtpConfig):
        super().__init__()
        hidden, eps = config.target.hidden_size, config.target.rms_norm_eps
        self.pre_fc_norm_embedding, self.pre_fc_norm_hidden = CentredNorm(hidden, eps), CentredNorm(hidden, eps)
        self.fc = linear(2 * hidden, hidden)
        self.layers = nn.ModuleList(Qwen35DecoderLayer(config.target, layer) for layer in config.layers)
        self.norm = CentredNorm(hidden, eps)

    def forward(self, embedded: Tensor, hidden: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> Tensor:
        """What the head reads, [n, hidden], of rows at positions start .. start + n - 1. A row is made of the target's
        hidden state at its position (``hidden``) and the embedding of the token behind it (``embedded``)."""
        x = self._join(embedded, hidden)
        for layer in self.layers:
            x = layer(x, start, cache, rope)
        normed: Tensor = self.norm(x)
        return normed

    def remember(self, embedded: Tensor, hidden: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> None:
        """Writes the keys and values of such rows into the cache. Later rows see nothing else of them: there is one
        layer."""
        (layer,) = self.layers
        assert isinstance(layer, Qwen35DecoderLayer)
        layer.self_attn.remember(layer.input_layernorm(self._join(embedded, hidden)), start, cache, rope)

    def _join(self, embedded: Tensor, hidden: Tensor) -> Tensor:
        pairs = torch.cat((self.pre_fc_norm_embedding(embedded), self.pre_fc_norm_hidden(hidden)), dim=-1)
        joined: Tensor = self.fc(pairs)
        return joined


class QwenMtp(PairedDrafter):
    """The layer as a drafter."""

    branch_ends = ("self_attn.o_proj.weight", "down_proj.weight", "experts.down_proj")
    read_together = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
    never_packed = ("mlp.gate.weight", "shared_expert_gate.weight")
    config: QwenMtpConfig

    def __init__(self, config: QwenMtpConfig):
        super().__init__()
        self.config = config
        self.mtp = MtpLayer(config)

    def row_order(self, name: str) -> Tensor | None:
        return row_order(self.config.target, name)

    @property
    def in_8_bits(self) -> bool:
        return isinstance(weight_of(self.mtp.fc), Int8Weight)

    def prepare(self) -> None:
        self.frequencies = inverse_frequencies(self.config.layers[0].rope, self.mtp.norm.weight.device)

    def draft_pass(self, target: TargetModel, cache: Cache, bound: DraftBinding) -> QwenMtpDraftPass:
        from . import draft_pass

        assert bound.choices is None
        return draft_pass.QwenMtpDraftPass(self, target, cache, bound)

    def rows_of(self, features: Tensor) -> Pairs:
        hidden, embedded = features.chunk(2, dim=-1)
        return Pairs(embedded, hidden)

    def remember(self, pairs: Pairs, start: int, keys: Sequence[LayerCache], rope: RopeTable) -> None:
        self.mtp.remember(pairs.embedded, pairs.hidden, start, keys[0], rope)

    def step(
        self, target: TargetModel, pair: Pairs, position: int, keys: Sequence[LayerCache], rope: RopeTable
    ) -> Drafted:
        hidden = self.mtp(pair.embedded, pair.hidden, position, keys[0], rope)
        return Drafted(target.logits(hidden), hidden)
