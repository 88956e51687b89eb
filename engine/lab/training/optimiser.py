"""Muon for matrices, AdamW for the rest, and the learning-rate schedule of both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 5
MUON_RATE, MUON_MOMENTUM, ADAM_RATE = 0.02, 0.95, 3e-3


def orthogonalise(matrices: Tensor) -> Tensor:
    """Pushes all singular values of a batch [n, rows, columns] towards 1 (Newton-Schulz, in bfloat16 on a GPU)."""
    a, b, c = NEWTON_SCHULZ
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(NEWTON_SCHULZ_STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    result: Tensor = x.mT if tall else x
    return result.type_as(matrices)


class Muon:
    """Momentum whose update is orthogonalised (Jordan et al., 2024).

    Matrices of one shape are updated together, a stack of experts as separate matrices.
    """

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        by_shape: dict[tuple[int, int], list[nn.Parameter]] = defaultdict(list)
        for parameter in parameters:
            by_shape[parameter.shape[-2], parameter.shape[-1]].append(parameter)
        self.groups = list(by_shape.values())
        self.buffers = [torch.cat([torch.zeros_like(_matrices(p.data)) for p in group]) for group in self.groups]

    @torch.no_grad()
    def step(self, factor: float) -> None:
        for group, buffer in zip(self.groups, self.buffers, strict=True):
            gradients = torch.cat([_matrices(p.grad) for p in group if p.grad is not None])
            buffer.lerp_(gradients, 1 - MUON_MOMENTUM)
            update = orthogonalise(gradients.lerp(buffer, MUON_MOMENTUM))
            scale = max(1.0, update.shape[-2] / update.shape[-1]) ** 0.5
            parts = torch.split(update, [_matrices(p).shape[0] for p in group])
            targets: list[Tensor] = [p.data for p in group]
            torch._foreach_add_(
                targets,
                [update.reshape(p.shape) for update, p in zip(parts, group, strict=True)],
                alpha=-MUON_RATE * factor * scale,
            )


def _matrices(x: Tensor) -> Tensor:
    return x.reshape(-1, *x.shape[-2:])


class Optimiser:
    """Muon for weight matrices; AdamW for embeddings, routers, norms and scales."""

    def __init__(self, model: nn.Module, steps: int) -> None:
        """``steps``: how many updates the schedule is for."""

        def is_matrix(name: str, parameter: nn.Parameter) -> bool:
            return parameter.dim() >= 2 and "embed_tokens" not in name and "router" not in name

        named = list(model.named_parameters())
        rest = [p for name, p in named if not is_matrix(name, p)]
        self.parameters = [p for _, p in named]
        self.muon = Muon(p for name, p in named if is_matrix(name, p))
        self.adam = torch.optim.AdamW(
            rest, lr=ADAM_RATE, betas=(0.9, 0.95), weight_decay=0.0, fused=rest[0].is_cuda or None
        )
        self.steps = steps
        self.done = 0

    def step(self, progress: float = 0.0) -> None:
        """Clips the gradients to norm 1, updates the weights, and clears the gradients. ``progress``: how far training
        is, from 0 to 1, if that is farther than the steps say."""
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        factor = schedule(min(max((self.done + 1) / self.steps, progress), 1.0))
        for group in self.adam.param_groups:
            group["lr"] = ADAM_RATE * factor
        self.adam.step()
        self.muon.step(factor)
        for parameter in self.parameters:
            parameter.grad = None
        self.done += 1

    def state(self) -> dict[str, Any]:
        """What is needed to go on from here: to be saved, and given to ``resume``."""
        return {"done": self.done, "adam": self.adam.state_dict(), "muon": self.muon.buffers}

    def resume(self, state: dict[str, Any]) -> None:
        self.done = state["done"]
        self.adam.load_state_dict(state["adam"])
        for buffer, saved in zip(self.muon.buffers, state["muon"], strict=True):
            buffer.copy_(saved)


def schedule(progress: float) -> float:
    """Rises over the first 3 %, is flat up to the half, falls linearly to zero at the end."""
    return min(progress / 0.03, 1.0, 2 * (1 - progress))
