"""DSpine once more, as plainly as it can be said, over ``ReferenceDrafter``'s layers: one place after the other, each
behind the one token that was chosen. It shares no code with the engine. Everything is fp32."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from support.reference_drafter import ReferenceDrafter, rms


class ReferenceDSpine(ReferenceDrafter):
    """A drafter in SpecForge's names, with an embedding [vocabulary, hidden] and a head [vocabulary, hidden]."""

    def __init__(self, config: dict[str, Any], weights: dict[str, Tensor], embedding: Tensor, head: Tensor):
        super().__init__({**config, "is_causal": True}, weights)
        self.embedding, self.head = embedding, head
        self.root = weights["transfer_codes"].shape[1] ** 0.5

    def draft(self, features: Tensor, anchor: int, count: int) -> tuple[list[int], list[float]]:
        """The drafted ids, and the probability of each among its sixteen candidates."""
        said, w = self.config, self.weights
        context = rms(features @ w["fc.weight"].T, w["hidden_norm.weight"], said["rms_norm_eps"])
        x = self.embedding[torch.tensor([anchor, *[said["mask_token_id"]] * count])]
        for index in range(said["num_hidden_layers"]):
            states = self._layer(index, context, x)
            heard = [self._code(anchor), *(self._read(index, row) for row in states[1:-1])]
            x = torch.stack([states[0], *(self._write(index, *each) for each in zip(states[1:], heard, strict=True))])
        drafted, chances, before = [], [], anchor
        for row, state in zip(self._norm(x)[1:], states[1:], strict=True):
            candidates = (self.head @ row).argsort(descending=True, stable=True)[:16].tolist()
            refined = self._norm(self._write(index, state, self._code(before)))
            scores = torch.stack([refined @ self.head[each] for each in candidates])
            before = candidates[int(scores.argmax())]
            drafted.append(before)
            chances.append(float(torch.softmax(scores, -1).max()))
        return drafted, chances

    def _norm(self, x: Tensor) -> Tensor:
        return rms(x, self.weights["norm.weight"], self.config["rms_norm_eps"])

    def _code(self, token: int) -> Tensor:
        return self.root * self.weights["transfer_codes"][token]

    def _read(self, index: int, state: Tensor) -> Tensor:
        read = self.weights[f"injection.readouts.{index}.weight"] @ state
        return self.root * read / read.norm()

    def _write(self, index: int, state: Tensor, heard: Tensor) -> Tensor:
        w = {name.removeprefix("injection."): tensor for name, tensor in self.weights.items()}
        asked = w["receiver_gate.weight"] @ self._read(index, state) + w["predecessor_gate.weight"] @ heard + w["bias"]
        message = w["message.weight"] @ heard / (1 + torch.exp(-asked))
        return state + state.norm() / len(state) ** 0.5 * (w[f"writes.{index}.weight"] @ message)
