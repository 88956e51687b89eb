"""What tests of kernels are given: a device, random tensors, numbers as they lie on a device."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

CPU = torch.device("cpu")
FP32_AND_BF16 = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])


def noise(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def number(value: int) -> Tensor:
    """A cursor, or how many rows there are: int32 [1]."""
    return torch.tensor([value], dtype=torch.int32)
