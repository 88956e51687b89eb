"""Trains the target on the synthetic mixture."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ...training.clock import TrainingClock
from ...training.masks import MaskedAttention
from ...training.optimiser import Optimiser
from ...training.rows import TextRows, causal_within_documents
from .layers import Attend
from .shapes import LayerKind, TargetShape
from .target_model import TrainableTarget, TrainingOutput

BALANCE_WEIGHT = 0.01


@dataclass(frozen=True, slots=True)
class TargetProgress:
    """What training prints and the report keeps, at one step."""

    step: int
    loss: float
    """The mean over the steps since the last report."""
    tokens_per_second: float
    least_load: float
    """The smallest share of choices that any expert of any layer took."""


class PackedAttention:
    """Document-isolated attention over a batch of packed rows, for every layer of the target."""

    def __init__(self, shape: TargetShape, rows: TextRows) -> None:
        count, length = rows.ids.shape
        device = rows.ids.device
        windows: dict[LayerKind, int | None] = {"sliding_attention": shape.window, "full_attention": None}
        self.kinds = {
            kind: partial(
                MaskedAttention(causal_within_documents(rows, window), count, length, length, device), scale=1.0
            )
            for kind, window in windows.items()
        }

    def __call__(self, layer: int, kind: LayerKind) -> Attend:
        return self.kinds[kind]


def response_loss(model: TrainableTarget, rows: TextRows, output: TrainingOutput) -> Tensor:
    """Mean cross-entropy of the next token, weighted as the rows say."""
    logits, weights = model.logits(output.final[:, :-1]), rows.next_weights
    losses = cross_entropy(logits.flatten(0, -2), rows.ids[:, 1:].flatten(), reduction="none")
    return (losses * weights.flatten()).sum() / weights.sum()


def train_target(
    model: TrainableTarget,
    batches: Iterable[TextRows],
    steps: int,
    report_every: int = 100,
    seconds: float | None = None,
) -> list[TargetProgress]:
    """Runs ``steps`` updates, or as many as there is time for; bfloat16 autocast on a GPU, float32 elsewhere. Prints
    and returns the progress."""
    device = model.norm.weight.device
    on_gpu = device.type == "cuda"
    if on_gpu:
        for layer in model.layers:
            layer.compile(dynamic=False)
    loss_of = torch.compile(response_loss, dynamic=False) if on_gpu else response_loss
    optimiser, clock = Optimiser(model, steps), TrainingClock(seconds)
    clock.start()
    history: list[TargetProgress] = []
    seen, since = 0, time.perf_counter()
    losses: list[Tensor] = []
    for step, rows in zip(range(1, steps + 1), batches, strict=False):
        with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
            output = model(rows.ids, rows.positions, PackedAttention(model.shape, rows))
            loss = loss_of(model, rows, output)
            total = loss + BALANCE_WEIGHT * output.balance
        total.backward()
        optimiser.step(clock.tick())
        last = step == steps or clock.progress >= 1
        seen += rows.ids.numel()
        losses.append(loss.detach())
        if step % report_every == 0 or step == 1 or last:
            value, least = torch.stack(losses).mean().item(), output.loads.min().item()
            elapsed = time.perf_counter() - since
            speed = seen / elapsed
            history.append(TargetProgress(step, value, speed, least))
            print(f"target {step:5d}  loss {value:.4f}  {speed:9.0f} tok/s  least load {least:.3f}", flush=True)
            seen, since = 0, time.perf_counter()
            losses.clear()
        if last:
            break
    return history
