"""The MTP assistant (``google/gemma-4-*-it-assistant``): a small Gemma 4 without keys of its own. It drafts a token in
each pass, from the embedding of the token before and the hidden state behind that; its layers attend over the target's
keys and values from one and the same position, the anchor's. Modules are named as the published tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ....kernels.decode.products.head import capped_logits
from ....kernels.reference.rope import apply_rope, inverse_frequencies, rope_table
from ....kernels.weights.plain import PlainWeight
from ....kv_cache.borrowed import BorrowedCache
from ....kv_cache.cache import Cache
from ....layer_config import AttentionConfig
from ...drafter import DraftBinding, Drafter
from ...layers import AttentionModule, RMSNorm, RopeTable, embedding, linear
from ...target import TargetModel
from ..modules import Gemma4DecoderLayer
from .config import MtpConfig

if TYPE_CHECKING:
    from .draft_pass import AssistantDraftPass


class AssistantAttention(AttentionModule):
    """Attention that projects only queries, and reads the target's keys and values."""

    def __init__(self, layer: AttentionConfig, hidden: int, eps: float):
        super().__init__(layer)
        self.q_proj = linear(hidden, layer.num_heads * layer.head_dim)
        self.o_proj = linear(layer.num_heads * layer.head_dim, hidden)
        self.q_norm = RMSNorm(layer.head_dim, eps)

    def forward(self, x: Tensor, position: int, cache: BorrowedCache, rope: RopeTable) -> Tensor:
        """Attends x [1, hidden] over the committed positions, those below ``position``."""
        layer = self.config
        q = apply_rope(self.q_norm(self.q_proj(x).view(1, -1, layer.head_dim)), rope)
        first = 0 if layer.window is None else max(0, position - layer.window + 1)
        k, v = cache.lent(layer.window).read(first, position)
        out: Tensor = self.o_proj(self.attend(q, k, v, causal=True, window=None, scale=layer.scale))
        return out


class AssistantLayer(Gemma4DecoderLayer):
    self_attn: AssistantAttention  # type: ignore[assignment]  # it has no keys of its own

    def __init__(self, config: MtpConfig, layer: AttentionConfig):
        super().__init__(config, layer)
        self.self_attn = AssistantAttention(layer, config.hidden_size, config.rms_norm_eps)


class AssistantModel(nn.Module):
    """The assistant's layers, and its embedding, which is also its head."""

    def __init__(self, config: MtpConfig):
        super().__init__()
        assert config.vocab_size is not None
        self.embed_tokens = embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(AssistantLayer(config, layer) for layer in config.layers)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class MtpDrafter(Drafter):
    """Gemma 4's assistant as a drafter, which drafts one token after the other."""

    branch_ends = ("post_attention_layernorm.weight", "post_feedforward_layernorm.weight")
    sequential = True
    config: MtpConfig

    def __init__(self, config: MtpConfig):
        super().__init__()
        self.config = config
        self.model = AssistantModel(config)
        self.pre_projection = linear(2 * config.target_hidden_size, config.hidden_size)
        self.post_projection = linear(config.hidden_size, config.target_hidden_size)

    def prepare(self) -> None:
        device = self.pre_projection.weight.device
        self.frequencies = {layer.rope: inverse_frequencies(layer.rope, device) for layer in self.config.layers}

    def new_cache(self, target: Cache, max_context: int, slack: int, dtype: torch.dtype, device: torch.device) -> Cache:
        (row,) = self.config.states
        return BorrowedCache(target, row, max_context, slack, dtype, device)

    def draft_pass(self, target: TargetModel, cache: Cache, bound: DraftBinding) -> AssistantDraftPass:
        from . import draft_pass

        assert isinstance(cache, BorrowedCache) and bound.head is None and bound.choices is None
        return draft_pass.AssistantDraftPass(self, target, cache, bound)

    def ingest(self, features: Tensor, cache: Cache) -> None:
        assert isinstance(cache, BorrowedCache)
        cache.row.copy_(features[-1:])
        end = cache.length + len(features)
        cache.note_written(end)
        cache.commit(end)

    def probabilities(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> Tensor:
        assert isinstance(cache, BorrowedCache)
        places = torch.tensor([cache.length], device=cache.row.device)
        ropes = {rope: rope_table(places, frequencies) for rope, frequencies in self.frequencies.items()}
        token, hidden, drafts = places.new_tensor([anchor]), cache.row, []
        for _ in range(block_size - 1):
            x = self.pre_projection(torch.cat((target.embed(token), hidden), dim=-1))
            for layer in self.model.layers:
                assert isinstance(layer, AssistantLayer)
                x = layer(x, cache.length, cache, ropes[layer.self_attn.config.rope])
            x = self.model.norm(x)
            hidden = self.post_projection(x)
            drafts.append(capped_logits(x, PlainWeight(self.model.embed_tokens.weight), None).softmax(dim=-1))
            token = drafts[-1].argmax(dim=-1)
        return torch.cat(drafts)
