"""Attention under a mask that a predicate defines, for training: block-sparse on a GPU, with a dense mask elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import ClassVar, cast

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, create_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

Attend = Callable[..., Tensor]
Predicate = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(batch, head, query index, key index) -> may this query see this key?"""

log = logging.getLogger(__name__)


class MaskedAttention:
    """Attends with queries [B, heads, n, d] to keys and values [B, kv_heads, m, d]. The same predicate gives the same
    result on any device.

    Every query must see at least one key."""

    refused: ClassVar[str | None] = None
    """Why block-sparse attention can't be had here (it is compiled, which not every machine can); None while it can."""

    def __init__(self, predicate: Predicate, batch: int, queries: int, keys: int, device: torch.device) -> None:
        sparse = device.type == "cuda" and self.refused is None
        self.dense: Callable[[], Tensor] = lambda: create_mask(predicate, batch, None, queries, keys, str(device))
        self.mask: BlockMask | Tensor = (
            create_block_mask(predicate, batch, None, queries, keys, device) if sparse else self.dense()
        )

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        if not isinstance(self.mask, Tensor):
            # Inside a compiled function it is called as it is; otherwise, uncompiled, it would compute every score.
            if torch.compiler.is_compiling():
                return cast(Attend, flex_attention)(q, k, v, block_mask=self.mask, scale=scale, enable_gqa=True)
            try:
                return compiled()(q, k, v, block_mask=self.mask, scale=scale, enable_gqa=True)
            except Exception as error:  # a compiler may raise anything
                if not self.refuse(error):
                    raise
            self.mask = self.dense()
        groups = q.shape[1] // k.shape[1]
        k, v = (x.repeat_interleave(groups, dim=1) for x in (k, v))
        return scaled_dot_product_attention(q, k, v, self.mask, scale=scale)

    @classmethod
    def refuse(cls, error: Exception) -> bool:
        """Goes on with dense masks. Returns False, and changes nothing, where they are used already, and for a lack of
        memory."""
        if cls.refused is not None or isinstance(error, torch.OutOfMemoryError):
            return False
        cls.refused = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        log.warning("Attention goes on with dense masks, more slowly: %s", cls.refused)
        return True


@cache
def compiled() -> Attend:
    return cast(Attend, torch.compile(flex_attention, dynamic=False))
