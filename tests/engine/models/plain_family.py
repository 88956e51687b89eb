"""A family that lies outside the engine: plain pre-norm layers, SwiGLU, an untied head, as Llama has them.

It is registered as any other package would do it, and its checkpoints are those that ``transformers`` saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

from engine.files.json_fields import Fields
from engine.kernels.decode.products.head import capped_logits
from engine.kernels.reference.rope import apply_rope, inverse_frequencies, rope_table
from engine.kv_cache.cache import Cache
from engine.kv_cache.layer_cache import LayerCache
from engine.kv_cache.layer_state import LayerState
from engine.layer_config import (
    MAX_HEADS,
    MAX_LAYERS,
    MAX_POSITIONS,
    MAX_SIZE,
    MAX_THETA,
    MAX_VOCABULARY,
    AttentionConfig,
    RopeConfig,
    read_head_dim,
    read_num_heads,
)
from engine.models.family import ChatFormat, Family, Json, TargetConfig, read_stops
from engine.models.layers import AttentionModule, GatedMLP, RMSNorm, RopeTable, linear
from engine.models.target import TargetModel, TargetOutput
from support.checkpoints import VOCAB_SIZE, randomised, write_tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainConfig(TargetConfig):
    @classmethod
    def from_json(cls, config: Json, generation: Json | None = None) -> PlainConfig:
        fields = Fields(config, "config.json")
        vocab_size = fields.integer("vocab_size", 1, MAX_VOCABULARY)
        depth = fields.integer("num_hidden_layers", 1, MAX_LAYERS)
        return cls(
            hidden_size=fields.integer("hidden_size", 1, MAX_SIZE),
            intermediate_size=fields.integer("intermediate_size", 1, MAX_SIZE),
            vocab_size=vocab_size,
            rms_norm_eps=fields.number("rms_norm_eps", 0, 1),
            max_context=fields.integer("max_position_embeddings", 1, MAX_POSITIONS),
            layers=(_attention(fields),) * depth,
            stop_token_ids=read_stops(fields, generation, vocab_size),
        )

    def build(self) -> PlainTarget:
        return PlainTarget(self)


def _attention(fields: Fields) -> AttentionConfig:
    head_dim, num_kv_heads = read_head_dim(fields, "head_dim"), fields.integer("num_key_value_heads", 1, MAX_HEADS)
    return AttentionConfig(
        kind="full_attention",
        num_heads=read_num_heads(fields, num_kv_heads),
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        rope=RopeConfig(fields.nested("rope_parameters").number("rope_theta", 1, MAX_THETA), head_dim),
        scale=head_dim**-0.5,
        window=None,
    )


class PlainAttention(AttentionModule):
    def __init__(self, layer: AttentionConfig, hidden: int):
        super().__init__(layer)
        kv_size = layer.num_kv_heads * layer.head_dim
        self.q_proj = linear(hidden, layer.num_heads * layer.head_dim)
        self.k_proj = linear(hidden, kv_size)
        self.v_proj = linear(hidden, kv_size)
        self.o_proj = linear(layer.num_heads * layer.head_dim, hidden)

    def forward(self, x: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> Tensor:
        def heads(projection: nn.Linear) -> Tensor:
            out: Tensor = projection(x).view(len(x), -1, self.config.head_dim)
            return out

        q, k = apply_rope(heads(self.q_proj), rope), apply_rope(heads(self.k_proj), rope)
        k, v = cache.extend(start, k, heads(self.v_proj))
        mixed = self.attend(q, k, v, causal=True, window=self.config.window, scale=self.config.scale)
        out: Tensor = self.o_proj(mixed)
        return out


class PlainLayer(nn.Module):
    def __init__(self, config: TargetConfig, mixer: nn.Module):
        super().__init__()
        hidden, eps = config.hidden_size, config.rms_norm_eps
        self.self_attn = mixer
        self.mlp = GatedMLP(hidden, config.intermediate_size, "silu")
        self.input_layernorm = RMSNorm(hidden, eps, "qwen")
        self.post_attention_layernorm = RMSNorm(hidden, eps, "qwen")

    def forward(self, x: Tensor, start: int, state: LayerState, rope: RopeTable) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), start, state, rope)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class PlainTarget(TargetModel):
    branch_ends = ("o_proj.weight", "down_proj.weight")

    def __init__(self, config: TargetConfig):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(PlainLayer(config, self.mixer(layer)) for layer in config.layers)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps, "qwen")
        self.lm_head = linear(config.hidden_size, config.vocab_size)

    def mixer(self, layer: AttentionConfig) -> nn.Module:
        """What mixes positions in one layer."""
        return PlainAttention(layer, self.config.hidden_size)

    @property
    def head(self) -> Tensor:
        return self.lm_head.weight

    def prepare(self) -> None:
        self.frequencies = inverse_frequencies(self.config.attention[0].rope, self.device)

    def forward(self, ids: Tensor, start: int, cache: Cache, taps: Sequence[int] = ()) -> TargetOutput:
        rope = rope_table(torch.arange(start, start + len(ids), device=ids.device), self.frequencies)
        x, outputs = self.embed(ids), []
        for layer, state in zip(self.layers, cache.layers, strict=True):
            x = layer(x, start, state, rope)
            outputs.append(x)
        features = torch.cat([outputs[index] for index in taps], dim=-1) if taps else None
        return TargetOutput(self.norm(x), features)

    def logits(self, hidden: Tensor) -> Tensor:
        return capped_logits(hidden, self.head_weight, None)


PLAIN = Family(
    name="plain",
    model_types=("plain",),
    read_config=PlainConfig.from_json,
    tensor_name=lambda name: name if name.startswith("lm_head.") else f"model.{name}",
    skipped_tensors={},
    chat=ChatFormat(Path(__file__).with_name("plain_chat_template.jinja"), "<|tool>", "<tool|>"),
)


def write_plain_target(folder: Path, seed: int = 0, depth: int = 4) -> LlamaForCausalLM:
    """A random checkpoint as ``transformers`` saves it, which is returned as it has it."""
    config = LlamaConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=depth,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=4096,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        tie_word_embeddings=False,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=[1, 106],
    )
    model = randomised(LlamaForCausalLM(config), seed)
    model.save_pretrained(folder)
    saved = folder / "config.json"
    saved.write_text(saved.read_text().replace('"model_type": "llama"', '"model_type": "plain"'))
    write_tokenizer(folder)
    (folder / "chat_template.jinja").unlink()
    return model
