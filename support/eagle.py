"""EAGLE-3 drafters: random ones in each published layout, and what they draft once more, as plainly as it can be said:
that shares no code with the engine, and every pass computes all keys anew, in fp32."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from support.reference_drafter import rms, rotate
from support.speculators import few_tokens, map_of

SANDWICH = ("post_attention", "pre_feedforward", "post_feedforward")
LAYOUTS = ("SafeAILab", "SpecForge", "NVIDIA", "speculators")
LAYER: dict[str, Any] = {
    "hidden_size": 64, "intermediate_size": 80, "num_hidden_layers": 1, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 1e-5, "rope_theta": 5e4, "hidden_act": "silu",
}  # fmt: skip
GEMMA: dict[str, Any] = {
    "model_type": "gemma4_unified_text", "head_dim": 16, "global_head_dim": 32, "num_global_key_value_heads": 1,
    "attention_k_eq_v": True, "layer_types": ["full_attention"], "hidden_activation": "gelu_pytorch_tanh",
    "hidden_act": None, "rope_theta": None, "final_logit_softcapping": 30.0, "enable_moe_block": False,
    "rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
}  # fmt: skip
"""What DeepSpec copies of a Gemma 4's config."""


def depth_of(config: dict[str, Any]) -> int:
    """How many layers it has."""
    depth: int = config.get("transformer_layer_config", config)["num_hidden_layers"]
    return depth


def default_taps(depth: int) -> list[int]:
    """The outputs that a trainer reads of a target of this depth, where nothing names others."""
    return [1, depth // 2 - 1, depth - 4]


def eagle_config(layout: str, vocabulary: int, count: int | None, taps: Sequence[int], **fields: Any) -> dict[str, Any]:
    """A config of this layout. ``taps``: outputs, which SafeAILab's doesn't name. ``count``: tokens of its own
    vocabulary."""
    if layout == "speculators":
        depth = {"num_hidden_layers": fields.pop("num_hidden_layers", 1)}
        return {
            "architectures": ["Eagle3Speculator"],
            "speculators_model_type": "eagle3",
            "speculators_config": {"algorithm": "eagle3", "proposal_methods": [{"speculative_tokens": 3}]},
            "transformer_layer_config": {**LAYER, **depth, "model_type": "llama", "vocab_size": vocabulary},
            "eagle_aux_hidden_state_layer_ids": [tap + 1 for tap in taps],
            "draft_vocab_size": count or vocabulary,
            "norm_before_residual": True,
            "target_hidden_size": None,
            **fields,
        }
    plain = {
        "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", **LAYER, "vocab_size": vocabulary,
        **({} if count is None else {"draft_vocab_size": count}), **fields,
    }  # fmt: skip
    if layout == "SafeAILab":
        return plain
    if layout == "DeepSpec, Gemma":
        return {**plain, **GEMMA, "architectures": ["Gemma4Eagle3Model"], "target_layer_ids": list(taps), **fields}
    if layout == "DeepSpec":
        return {**plain, "architectures": ["Qwen3Eagle3Model"], "target_layer_ids": list(taps)}
    return {**plain, "eagle_config": {"eagle_aux_hidden_state_layer_ids": list(taps), "use_aux_hidden_state": True}}


def eagle_weights(
    config: dict[str, Any],
    vocabulary: int,
    count: int | None,
    taps: int,
    head_norms: bool,
    seed: int,
    embedding: bool = False,
) -> dict[str, Tensor]:
    """Random tensors, under the names of the speculators layout."""
    gemma = "attention_k_eq_v" in config
    hidden, inter, head = LAYER["hidden_size"], LAYER["intermediate_size"], 32 if gemma else LAYER["head_dim"]
    queries, keys = LAYER["num_attention_heads"] * head, LAYER["num_key_value_heads"] * head // (2 if gemma else 1)
    shapes: dict[str, tuple[int, ...]] = {
        "fc.weight": (hidden, taps * hidden),
        "norm.weight": (hidden,),
        "lm_head.weight": (count or vocabulary, hidden),
    }
    for index in range(depth_of(config)):
        width = hidden if index else 2 * hidden
        norms = ("input_layernorm", *(() if index else ("hidden_norm",)), "post_attention_layernorm")
        of_layer: dict[str, tuple[int, ...]] = {
            **dict.fromkeys(norms, (hidden,)),
            "self_attn.q_proj": (queries, width),
            "self_attn.k_proj": (keys, width),
            "self_attn.v_proj": (keys, width),
            "self_attn.o_proj": (hidden, queries),
            "mlp.gate_proj": (inter, hidden),
            "mlp.up_proj": (inter, hidden),
            "mlp.down_proj": (hidden, inter),
            **({f"self_attn.{name}_norm": (head,) for name in "qk"} if head_norms or gemma else {}),
            **({f"{place}_feedforward_layernorm": (hidden,) for place in ("pre", "post")} if gemma else {}),
        }
        if gemma:
            del of_layer["self_attn.v_proj"]
            shapes["layers.0.layer_scalar"] = (1,)
        shapes |= {f"layers.{index}.{name}.weight": shape for name, shape in of_layer.items()}
    if config.get("norm_before_fc"):
        shapes["input_norm.weight"] = (taps * hidden,)
    if config.get("fc_norm"):
        shapes |= {f"fc_norm.{place}.weight": (hidden,) for place in range(taps)}
    if embedding:
        shapes["embed_tokens.weight"] = (vocabulary, hidden)
    generator = torch.Generator().manual_seed(seed)
    noise = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    weights = {name: 1 + 0.25 * x if x.dim() == 1 else 0.15 * x for name, x in noise.items()}
    weights["norm.weight"] = 2 * noise["norm.weight"]  # of either sign, as in the targets
    return weights | ({} if count is None else map_of(few_tokens(count, vocabulary, seed), vocabulary))


def write_eagle(
    folder: Path,
    layout: str,
    vocabulary: int,
    taps: Sequence[int],
    *,
    count: int | None = 40,
    head_norms: bool = False,
    embedding: bool = False,
    seed: int = 5,
    **fields: Any,
) -> dict[str, Tensor]:
    """Saves a random drafter; returns its tensors under the names of the speculators layout."""
    folder.mkdir(parents=True, exist_ok=True)
    config = eagle_config(layout, vocabulary, count, taps, **fields)
    tensors = eagle_weights(config, vocabulary, count, len(taps), head_norms, seed, embedding)
    (folder / "config.json").write_text(json.dumps(config))
    begin = "layers.0." if layout.startswith(("speculators", "DeepSpec")) else "midlayer."
    stored = {name.replace("layers.0.", begin): tensor for name, tensor in tensors.items()}
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    return tensors


class ReferenceEagle:
    """Drafts from all features of the text so far."""

    def __init__(
        self, config: dict[str, Any], tensors: dict[str, Tensor], embedding: Tensor, head: Tensor | None = None
    ):
        """``embedding``: the target's, without its scale. ``head``: the target's, for a drafter without one."""
        self.config, self.tensors = config, tensors
        self.gemma = "attention_k_eq_v" in config
        self.embedding = tensors.get("embed_tokens.weight", embedding) * (8.0 if self.gemma else 1.0)
        self.layer = {**LAYER, **config.get("transformer_layer_config", config)}
        self.head = tensors.get("lm_head.weight", head)

    def draft(self, features: Tensor, ids: Sequence[int], count: int) -> list[int]:
        """``count`` tokens behind the anchor, the last of ``ids``. These are one more than rows of ``features``
        [n, taps * hidden]."""
        eps, drafted = self.layer["rms_norm_eps"], list(ids[1:])
        assert self.head is not None and len(ids) == len(features) + 1
        hidden = self._fused(features)
        for _ in range(count):
            last = self._last(self.embedding[drafted], hidden)
            normed = rms(last, self.tensors["norm.weight"], eps)
            best = int((normed @ self.head.T).argmax())
            offset = int(self.tensors["d2t"][best]) if "d2t" in self.tensors else 0
            drafted.append(best + offset)
            hidden = torch.cat((hidden, normed if self.config.get("norm_output") else last))
        return drafted[-count:]

    def _fused(self, features: Tensor) -> Tensor:
        eps, size = self.layer["rms_norm_eps"], self.layer["hidden_size"]
        if self.config.get("norm_before_fc"):
            features = rms(features, self.tensors["input_norm.weight"], eps)
        if self.config.get("fc_norm"):
            parts = features.split(size, dim=-1)
            features = torch.cat(
                [rms(part, self.tensors[f"fc_norm.{n}.weight"], eps) for n, part in enumerate(parts)], -1
            )
        return features @ self.tensors["fc.weight"].T

    def _last(self, embedded: Tensor, hidden: Tensor) -> Tensor:
        """The residual stream behind the layers, of the last row, [1, hidden]."""
        eps, depth = self.layer["rms_norm_eps"], depth_of(self.config)
        x = hidden
        for index in range(depth):
            begin = f"layers.{index}."
            w = {name.removeprefix(begin): each for name, each in self.tensors.items() if name.startswith(begin)}
            u = rms(x if index else embedded, w["input_layernorm.weight"], eps)
            if index == 0:
                normed = rms(hidden, w["hidden_norm.weight"], eps)
                u = torch.cat((u, normed), dim=-1)
                x = normed if self.config.get("norm_before_residual") else hidden
            first = len(x) - 1 if index == depth - 1 else 0
            y = self._attend(w, u, first) @ w["self_attn.o_proj.weight"].T
            norms = [w.get(f"{name}_layernorm.weight", y) for name in SANDWICH]
            x = x[first:] + (rms(y, norms[0], eps) if self.gemma else y)
            h = rms(x, norms[1] if self.gemma else norms[0], eps)
            gate, up = h @ w["mlp.gate_proj.weight"].T, h @ w["mlp.up_proj.weight"].T
            gate = torch.nn.functional.gelu(gate, approximate="tanh") if self.gemma else gate * torch.sigmoid(gate)
            y = (gate * up) @ w["mlp.down_proj.weight"].T
            x = (x + rms(y, norms[2], eps)) * w["layer_scalar"] if self.gemma else x + y
        return x

    def _attend(self, w: dict[str, Tensor], u: Tensor, first: int) -> Tensor:
        """[n - first, heads * head_dim] of the rows from ``first`` on."""
        eps, n, d = self.layer["rms_norm_eps"], len(u), 32 if self.gemma else self.layer["head_dim"]
        rope = (1e6, 0.25) if self.gemma else (self.layer["rope_theta"],)
        heads = {}
        for each in "qkv":
            x = (u @ w[f"self_attn.{'k' if self.gemma and each == 'v' else each}_proj.weight"].T).view(n, -1, d)
            if f"self_attn.{each}_norm.weight" in w:
                x = rms(x, w[f"self_attn.{each}_norm.weight"], eps)
            elif self.gemma:
                x = rms(x, torch.ones(d), eps)
            heads[each] = x if each == "v" else rotate(x, list(range(n)), *rope)
        later = torch.ones(n, n).triu(1)[first:].bool()
        mixed = []
        for head in range(heads["q"].shape[1]):
            shared = head * heads["k"].shape[1] // heads["q"].shape[1]
            scores = heads["q"][first:, head] @ heads["k"][:, shared].T / (1.0 if self.gemma else d**0.5)
            mixed.append(scores.masked_fill(later, float("-inf")).softmax(dim=-1) @ heads["v"][:, shared])
        return torch.cat(mixed, dim=-1)
