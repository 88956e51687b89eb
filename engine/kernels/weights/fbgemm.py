"""Products in whole numbers on an x86 CPU without an instruction for products of bytes (VNNI), by FBGEMM, which comes
with PyTorch. It adds pairs of products up in 16 bits, which is exact as long as rows have 7 bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from warnings import catch_warnings, simplefilter

import torch
from torch import Tensor

from .int8 import Int8Weight
from .weight import Weight

ZERO = 64
"""The byte that stands for 0 among numbers from 1 to 127."""
MOST = ZERO - 1
STEPS = MOST * ZERO
"""Levels of a row on either side of zero: a coarse number of 7 bits times 64, and a fine one. A single number of 7 bits
would round SmolLM2's rows to a KL divergence of 4e-2, one of 8 bits to 1.5e-2."""
MULTIPLY = "linear_with_input_q_dq_qweight_dq_output_fp32"
FBGEMM = -2
"""The format's number; no kernel here reads it."""


@cache
def has_fbgemm() -> bool:
    """Whether PyTorch has FBGEMM, and for this CPU. PyTorch warns that a later version won't have such tensors."""
    there = "fbgemm" in torch.backends.quantized.supported_engines and hasattr(torch.ops.quantized, MULTIPLY)
    made = hasattr(torch, "_make_per_channel_quantized_tensor")
    return there and made and torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


@dataclass(frozen=True, slots=True)
class FbgemmWeight(Weight):
    """Weights of 8 bits with a scale for each row, in FBGEMM's own order, which is final: they can't be cut or joined.
    ``values`` say how many there are, and hold none."""

    packed: Any = None
    """The weight as FBGEMM packed it."""

    @property
    def format(self) -> int:
        return FBGEMM

    @classmethod
    def of(cls, weight: Tensor) -> FbgemmWeight:
        plain = Int8Weight.of(weight)
        assert plain.scales is not None
        none = torch.zeros(len(plain.scales), dtype=torch.long)
        with _by_fbgemm():
            rounded = torch._make_per_channel_quantized_tensor(plain.values, plain.scales, none, 0)
            packed = torch.ops.quantized.linear_prepack(rounded, None)
        return cls(plain.values.to("meta"), plain.scales, packed)

    def restored(self) -> Tensor:
        values: Tensor = self.packed.unpack()[0].dequantize()
        return values

    def linear(self, x: Tensor) -> Tensor:
        """Products in x's dtype; sums are of whole numbers, so a row has the same bits alone and among others."""
        rows = x.float()
        step = torch.linalg.vector_norm(rows, torch.inf, dim=-1, keepdim=True).add_(1e-30).div_(STEPS)
        levels = (rows / step).round_()
        coarse = (levels / ZERO).round_()
        parts = torch.cat((coarse, levels.sub_(coarse, alpha=ZERO)))
        sums, fine = getattr(torch.ops.quantized, MULTIPLY)(parts, 1.0, ZERO, self.packed).chunk(2)
        product: Tensor = fine.add_(sums, alpha=ZERO).mul_(step)
        return product.to(x.dtype)


@contextmanager
def _by_fbgemm() -> Iterator[None]:
    """Makes PyTorch pack for FBGEMM in this block, and hides its warning: it packs for one library at a time."""
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "fbgemm"
    try:
        with catch_warnings():
            simplefilter("ignore", UserWarning)
            yield
    finally:
        torch.backends.quantized.engine = before
