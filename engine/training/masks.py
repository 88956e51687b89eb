"""Attention under a predicate, for training: block-sparse on a GPU, a dense mask elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import cast

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, create_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

Attend = Callable[..., Tensor]
Predicate = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(batch, head, query index, key index) -> may this query see this key?"""


class MaskedAttention:
    """Queries [B, heads, n, d] over keys and values [B, kv_heads, m, d]. Same predicate, same result on any device.

    Every query must see at least one key.
    """

    def __init__(self, predicate: Predicate, batch: int, queries: int, keys: int, device: torch.device) -> None:
        build: Callable[..., BlockMask | Tensor] = create_block_mask if device.type == "cuda" else create_mask
        self.mask = build(predicate, batch, None, queries, keys, device=device)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        if isinstance(self.mask, Tensor):
            return scaled_dot_product_attention(q, k, v, self.mask, scale=scale, enable_gqa=True)
        # What is being compiled takes it in as it is; uncompiled it would compute every score.
        attend = cast(Attend, flex_attention if torch.compiler.is_compiling() else _compiled())
        return attend(q, k, v, block_mask=self.mask, scale=scale, enable_gqa=True)


@cache
def _compiled() -> Attend:
    return cast(Attend, torch.compile(flex_attention, dynamic=False))
