"""DSpark's head once more, as plainly as it can be said, over ``ReferenceDrafter``'s layers. It shares no code with the
engine. Everything is fp32."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from support.reference_drafter import ReferenceDrafter


class ReferenceDSpark(ReferenceDrafter):
    """A drafter in z-lab's names (``dspark_config``), with an embedding [vocabulary, hidden] and a head [drafted,
    hidden] of any origin."""

    def __init__(self, config: dict[str, Any], weights: dict[str, Tensor], embedding: Tensor, head: Tensor):
        super().__init__(config, weights)
        self.embedding, self.head = embedding, head
        self.offsets = weights.get("d2t", torch.zeros(len(head), dtype=torch.int64))

    def draft(self, features: Tensor, anchor: int, count: int) -> tuple[list[int], list[float]]:
        """The drafted ids, and for each how sure the drafter is: the geometric mean of its probability and of what its
        confidence head says."""
        said, w = self.config, self.weights
        first = 0 if said.get("shift_label", True) else 1
        ids = torch.tensor([anchor, *[said["mask_token_id"]] * (count - 1 + first)])
        rows = self.hidden(features, self.embedding[ids])[first:]
        drafted, sure, before = [], [], anchor
        for row in rows:
            channels = w["markov_head.markov_w1.weight"][before]
            if said["markov_head_type"] == "gated":
                matrix, bias = w["markov_head.gate_proj.weight"], w["markov_head.gate_proj.bias"]
                gated = channels / (1 + torch.exp(-(matrix @ torch.cat([row, channels]) + bias)))
            else:
                gated = channels
            logits = self.head @ row
            if (cap := said.get("final_logit_softcapping")) is not None:
                logits = cap * torch.tanh(logits / cap)
            logits = logits + w["markov_head.markov_w2.weight"] @ gated
            place = int(logits.argmax())
            chance = torch.softmax(logits, -1)[place]
            if said["enable_confidence_head"]:
                read = torch.cat([row, channels]) if said["confidence_head_with_markov"] else row
                kept = w["confidence_head.proj.weight"][0] @ read + w["confidence_head.proj.bias"][0]
                chance = torch.sqrt(chance / (1 + torch.exp(-kept)))
            before = place + int(self.offsets[place])
            drafted.append(before)
            sure.append(float(chance))
        return drafted, sure
