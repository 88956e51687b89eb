"""Mixture of experts for any number of rows; ``decode/experts/`` has kernels for 16."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ...layer_config import CLAMP, SHARPNESS, Activation
from ..prefill.experts import combine
from ..prefill.products import product
from ..toolchain.jit import HAS_TRITON
from ..weights.weight import Weight


def route(scores: Tensor, top_k: int, per_expert_scale: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Weights fp32 and ids int64 of each row's experts, both [n, top_k], from ``scores`` fp32 [n, experts]: softmax
    over all, the ``top_k`` largest renormalised to one, times each expert's own scale if there are any."""
    weights, ids = scores.softmax(dim=-1).topk(top_k, dim=-1)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights if per_expert_scale is None else weights * per_expert_scale.float()[ids], ids


def gated(both: Tensor, activation: Activation) -> Tensor:
    """act(gate) * up [..., inter] of gates and ups [..., 2 * inter]: gates first, or, in ``clamped_silu``,
    alternating."""
    if activation == "clamped_silu":
        gate, up = both[..., ::2].clamp(max=CLAMP), both[..., 1::2].clamp(-CLAMP, CLAMP)
        return (up + 1) * (gate * torch.sigmoid(gate * SHARPNESS))
    gate, up = both.chunk(2, dim=-1)
    return (F.silu(gate) if activation == "silu" else F.gelu(gate, approximate="tanh")) * up


def experts(
    x: Tensor,
    weights: Tensor,
    ids: Tensor,
    gate_up: Weight,
    down: Weight,
    activation: Activation = "gelu_tanh",
    biases: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Weighted sum [n, hidden] of each row's experts in x's dtype, accumulated in fp32. ``x`` [n, hidden]; ``weights``,
    ``ids`` [n, top_k]; ``gate_up`` [experts, 2 * inter, hidden], as in ``gated``; ``down`` [experts, hidden, inter].
    ``biases`` of both, [experts, outputs]. Each touched expert is read once."""
    n, top_k = ids.shape
    chosen, by_expert = ids.flatten().sort(stable=True)
    row = by_expert // top_k
    # Where each expert's rows end. A count by torch.bincount would make the GPU wait for the host.
    ends = torch.searchsorted(chosen, torch.arange(gate_up.shape[0], device=x.device), right=True).to(torch.int32)
    both = product(x[row], gate_up, ends)
    act = gated(both if biases is None else both + biases[0][chosen], activation)
    out = product(act, down, ends)
    if biases is not None:
        out = out + biases[1][chosen]
    if combines_on(x.device):
        return combine(out, by_expert, weights)
    weighted = out.float() * weights.flatten()[by_expert, None]
    return torch.zeros(n, x.shape[1], device=x.device).index_add_(0, row, weighted).to(x.dtype)


def combines_on(device: torch.device) -> bool:
    """Whether a kernel adds up the rows' experts: on a GPU, where ``index_add_`` would do so in no fixed order."""
    return HAS_TRITON and device.type == "cuda"
