"""Mixture of experts: choose experts per row, run each chosen expert once over the rows that chose it.

For any number of rows; ``decode/router.py`` and ``decode/experts.py`` hold kernels for at most 16.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ..prefill.experts import combine
from ..toolchain.jit import HAS_TRITON


def route(scores: Tensor, top_k: int, per_expert_scale: Tensor) -> tuple[Tensor, Tensor]:
    """The experts of each row and their weights.

    ``scores`` fp32 [n, experts]. The softmax runs over all experts, the ``top_k`` largest are renormalised to sum
    to one, then each is multiplied by its expert's own scale. Returns weights fp32 and ids int64, both [n, top_k].
    """
    weights, ids = scores.softmax(dim=-1).topk(top_k, dim=-1)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights * per_expert_scale.float()[ids], ids


def experts(x: Tensor, weights: Tensor, ids: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
    """Weighted sum of each row's experts, accumulated in fp32.

    ``x`` [n, hidden]; ``weights``, ``ids`` [n, top_k]; ``gate_up`` [experts, 2 * inter, hidden], the gate's rows
    first; ``down`` [experts, hidden, inter]. Returns [n, hidden] in x's dtype.

    Rows are sorted by expert, so that each touched expert is read once however many rows chose it.
    """
    n, top_k = ids.shape
    chosen, by_expert = ids.flatten().sort(stable=True)
    row = by_expert // top_k
    # Where each expert's rows end. A count by torch.bincount would make the GPU wait for the host.
    ends = torch.searchsorted(chosen, torch.arange(gate_up.shape[0], device=x.device), right=True).to(torch.int32)
    gate, up = F.grouped_mm(x[row], gate_up.mT, offs=ends).chunk(2, dim=-1)
    out = F.grouped_mm(F.gelu(gate, approximate="tanh") * up, down.mT, offs=ends)
    if combines_on(x.device):
        return combine(out, by_expert, weights)
    weighted = out.float() * weights.flatten()[by_expert, None]
    return torch.zeros(n, x.shape[1], device=x.device).index_add_(0, row, weighted).to(x.dtype)


def combines_on(device: torch.device) -> bool:
    """Whether a kernel adds up the rows' experts: on a GPU, where ``index_add_`` would do so in no fixed order."""
    return HAS_TRITON and device.type == "cuda"
