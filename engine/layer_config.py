"""The shapes that models, their caches and their kernels are built from, as frozen dataclasses.

They come from a checkpoint's ``config.json``, which each family reads in its own folder under ``models``. Field names
in comments are those of the published configs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .files.json_fields import Fields

if TYPE_CHECKING:
    import torch

    from .kv_cache.layer_cache import LayerCache

LayerKind = Literal["sliding_attention", "full_attention"]

KINDS = ("sliding_attention", "full_attention")
MAX_LAYERS, MAX_HEADS, MAX_EXPERTS = 512, 4096, 4096
MAX_SIZE, MAX_VOCABULARY, MAX_POSITIONS = 1 << 20, 1 << 22, 1 << 24
"""Far above what exists, and low enough that no product of them overflows."""
MAX_THETA = 1e12


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """One layer's rotary embedding; ``rotated_fraction`` < 1, *proportional*: only so many pairs turn."""

    theta: float
    head_dim: int
    rotated_fraction: float = 1.0


@dataclass(frozen=True, slots=True)
class AttentionConfig:
    """One attention layer, of a target or a drafter."""

    kind: LayerKind
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope: RopeConfig
    scale: float
    window: int | None
    """A query at p sees keys in (p - window, p]; None sees everything before it."""
    value_is_key: bool = False
    """``attention_k_eq_v``: values are the raw output of ``k_proj``, and there is no ``v_proj``."""
    causal: bool = True
    """Drafter only: whether a row of the draft block sees just the rows before it, or the whole block."""

    def new_state(self, max_context: int, slack: int, dtype: torch.dtype, device: torch.device) -> LayerCache:
        """Its empty keys and values; see ``kv_cache.layer_state.StatefulLayer``."""
        from .kv_cache.layer_cache import FullCache, RingCache  # needs torch, which reading configs doesn't

        if self.window is None:
            return FullCache(self.num_kv_heads, max_context, self.head_dim, dtype, device)
        capacity = min(max_context, self.window - 1 + slack)
        return RingCache(self.num_kv_heads, capacity, self.head_dim, dtype, device, self.window)


@dataclass(frozen=True, slots=True)
class MoeConfig:
    num_experts: int
    top_k: int
    intermediate_size: int


def read_head_dim(fields: Fields, name: str, default: int | None = None) -> int:
    """Rotary embeddings turn the halves of a head against each other, so it must have two."""
    return fields.integer(name, 2, MAX_HEADS, default, multiple_of=2)


def read_num_heads(fields: Fields, num_kv_heads: int) -> int:
    """Every key serves the same number of queries."""
    return fields.integer("num_attention_heads", 1, MAX_HEADS, multiple_of=num_kv_heads)


def optional_integer(fields: Fields, name: str, high: int) -> int | None:
    return fields.integer(name, 1, high) if name in fields else None


def optional_number(fields: Fields, name: str) -> float | None:
    return fields.number(name, 0, 1e6) if name in fields else None
