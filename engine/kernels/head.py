"""The language-model head: logits of a vocabulary, softly capped."""

from __future__ import annotations

import torch
from torch import Tensor


def capped_logits(hidden: Tensor, embedding: Tensor, softcap: float | None) -> Tensor:
    """fp32 logits [n, vocab] of normed hidden rows [n, hidden] over a tied embedding [vocab, hidden].

    The cap (``final_logit_softcapping``) bends logits into (-softcap, softcap). It keeps their order and changes
    probabilities, so it comes before temperature, top-k and top-p.
    """
    logits = torch.nn.functional.linear(hidden, embedding).float()
    return logits if softcap is None else softcap * torch.tanh(logits / softcap)
