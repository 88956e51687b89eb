"""RMS normalisation in PyTorch, in the two orders of rounding that the models were trained with."""

from __future__ import annotations

import torch
from torch import Tensor


def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Gemma 4's norm of x [..., n], scaled in fp32 by ``weight`` [n] (not 1 + weight) or None, rounded once."""
    # Where the dtypes agree, PyTorch does just that: fp32 inside and one rounding, on a GPU in one kernel.
    if weight is None or weight.dtype == x.dtype:
        return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)
    return torch.nn.functional.rms_norm(x.float(), x.shape[-1:], weight.float(), eps).to(x.dtype)


def rms_norm_rounded_first(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """The Qwen3 norm that DFlash drafters use: round to x's dtype, then scale by the weight in that dtype."""
    if x.dtype == weight.dtype == torch.float32:
        return rms_norm(x, weight, eps)  # nothing is rounded: one operation less
    return rms_norm(x, None, eps) * weight
