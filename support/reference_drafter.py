"""The DFlash drafter once more, as plainly as it can be said: no caches, no chunks, one loop per idea.

It reads the published config and tensors itself and shares no code with the engine, so that an error has to be made
twice to go unnoticed. Everything is fp32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def rms(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + eps) * weight


def rotate(x: Tensor, positions: list[int], theta: float, part: float = 1.0) -> Tensor:
    """Turns the pairs (i, i + d/2) of x [n, heads, d] as complex numbers; only the first ``part`` of them turns."""
    half = x.shape[-1] // 2
    speed = torch.tensor([theta ** (-i / half) * (i < part * half) for i in range(half)], dtype=torch.float64)
    angles = torch.tensor(positions, dtype=torch.float64)[:, None] * speed
    turned = torch.complex(x[..., :half].double(), x[..., half:].double()) * torch.exp(1j * angles)[:, None, :]
    return torch.cat((turned.real, turned.imag), dim=-1).float()


def is_visible(query: int, key: int, start: int, causal: bool, window: int | None) -> bool:
    """Context ends before ``start``; keys from there on belong to the block."""
    if causal and key > query:
        return False
    if window is not None and abs(query - key) >= window:
        return False
    return key < start or not causal or key <= query


class ReferenceDrafter:
    """Recomputes a block's hidden states from all features of the text so far."""

    def __init__(self, config: dict[str, Any], weights: dict[str, Tensor]):
        self.config = {**config, **config["dflash_config"]}
        self.weights = weights

    def hidden(self, features: Tensor, block: Tensor) -> Tensor:
        """Normed hidden states [B, hidden] of an embedded block [B, hidden] after features [n, taps * hidden]."""
        eps = self.config["rms_norm_eps"]
        context = rms(features @ self.weights["fc.weight"].T, self.weights["hidden_norm.weight"], eps)
        x = block
        for index in range(self.config["num_hidden_layers"]):
            x = self._layer(index, context, x)
        return rms(x, self.weights["norm.weight"], eps)

    def _layer(self, index: int, context: Tensor, x: Tensor) -> Tensor:
        w = {name.split(f"layers.{index}.")[1]: t for name, t in self.weights.items() if f"layers.{index}." in name}
        eps = self.config["rms_norm_eps"]

        def attend(h: Tensor) -> Tensor:
            return self._attend(index, w, context, h) @ w["self_attn.o_proj.weight"].T

        def feed(h: Tensor) -> Tensor:
            gate, up = h @ w["mlp.gate_proj.weight"].T, h @ w["mlp.up_proj.weight"].T
            gate = torch.nn.functional.gelu(gate, approximate="tanh") if gemma else gate * torch.sigmoid(gate)
            return (gate * up) @ w["mlp.down_proj.weight"].T

        if gemma := "layer_scalar" in w:
            y = attend(rms(x, w["input_layernorm.weight"], eps))
            x = x + rms(y, w["post_attention_layernorm.weight"], eps)
            y = feed(rms(x, w["pre_feedforward_layernorm.weight"], eps))
            return (x + rms(y, w["post_feedforward_layernorm.weight"], eps)) * w["layer_scalar"]
        for conv, norm, branch in (("attention", "input", attend), ("mlp", "post_attention", feed)):
            h = rms(x, w[f"{norm}_layernorm.weight"], eps)
            if f"{conv}_conv.base_kernel" in w:  # DFlash 2
                x = x + self._mix(w, conv, h, branch(self._mix(w, conv, h, h, 0)), 1)
            else:
                x = x + branch(h)
        return x

    def _mix(self, w: dict[str, Tensor], conv: str, h: Tensor, z: Tensor, side: int) -> Tensor:
        """Rows z, each with the ones before it in the block, by weights that the rows h choose."""
        base = w[f"{conv}_conv.base_kernel"][side]
        chosen = (h @ w[f"{conv}_conv.kernel_projection.weight"].T).view(len(h), 2, len(base), -1)[:, side]
        chosen = chosen.repeat_interleave(z.shape[1] // chosen.shape[-1], dim=-1)
        taps = [(base[tap] + chosen[tap:, tap]) * z[: len(z) - tap] for tap in range(len(base))]
        return sum(torch.nn.functional.pad(each, (0, 0, tap, 0)) for tap, each in enumerate(taps))  # type: ignore[return-value]

    def _attend(self, index: int, w: dict[str, Tensor], context: Tensor, h: Tensor) -> Tensor:
        start, size, d = context.shape[0], h.shape[0], self.config["head_dim"]
        heads, kv_heads = self.config["num_attention_heads"], self.config["num_key_value_heads"]
        eps, theta = self.config["rms_norm_eps"], self.config["rope_theta"]
        both = torch.cat((context, h))
        queries, keys = list(range(start, start + size)), list(range(start + size))
        q = (h @ w["self_attn.q_proj.weight"].T).view(size, heads, d)
        k = (both @ w["self_attn.k_proj.weight"].T).view(start + size, kv_heads, d)
        gemma = "layer_scalar" in w
        v = rms(k, torch.ones(d), eps) if gemma else (both @ w["self_attn.v_proj.weight"].T).view(k.shape)
        q = rotate(rms(q, w["self_attn.q_norm.weight"], eps), queries, theta, 0.25 if gemma else 1.0)
        k = rotate(rms(k, w["self_attn.k_norm.weight"], eps), keys, theta, 0.25 if gemma else 1.0)
        hidden_keys = ~self._mask(index, queries, keys, start)
        mixed = []
        for head in range(heads):
            shared = head * kv_heads // heads
            scores = (q[:, head] @ k[:, shared].T / (1.0 if gemma else d**0.5)).masked_fill(hidden_keys, -torch.inf)
            mixed.append(scores.softmax(dim=-1) @ v[:, shared])
        return torch.cat(mixed, dim=-1)

    def _mask(self, index: int, queries: list[int], keys: list[int], start: int) -> Tensor:
        kinds = self.config.get("layer_types")
        sliding = kinds is not None and kinds[index] == "sliding_attention"
        causal = self.config.get("is_causal", self.config.get("causal", sliding))
        window = self.config["sliding_window"] if sliding else None
        return torch.tensor([[is_visible(q, k, start, causal, window) for k in keys] for q in queries])
