"""Trains the drafter on conversations of the corpus and on the target's own answers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from .conversation import Encoded
from .drafter_model import DrafterModel
from .drafting import BlockAttention, draw_blocks
from .optimiser import Optimiser
from .rows import Rows, Source
from .target_model import TargetModel
from .train_target import PackedAttention, Progress, weighted_loss

CORPUS_SHARE = 0.5
"""The rest are answers that the target itself gave."""


def blended(corpus: Source, recorded: Sequence[Encoded]) -> Source:
    """Draws from the corpus or, as often, from the recorded answers."""

    def draw(rng: random.Random) -> Encoded:
        return corpus(rng) if not recorded or rng.random() < CORPUS_SHARE else rng.choice(recorded)

    return draw


def drafter_loss(target: TargetModel, drafter: DrafterModel, rows: Rows, anchors: int, seed: int) -> Tensor:
    """Cross-entropy of the drafted tokens, ``anchors`` blocks per row; the target gets no gradient."""
    shape = drafter.shape
    generator = torch.Generator(rows.ids.device).manual_seed(seed)
    blocks = draw_blocks(rows, anchors, shape.block_size, generator)
    with torch.no_grad():
        features = target(
            rows.ids, rows.positions, PackedAttention(target.shape, rows), shape.tapped_layers
        ).tapped
        embedded = target.embed(blocks.inputs)
    hidden = drafter(
        drafter.context(features),
        rows.positions,
        embedded,
        blocks.positions,
        BlockAttention(shape, rows, blocks),
    )
    return _head_loss(target, hidden, blocks.labels, blocks.weights)


def _head_loss(target: TargetModel, hidden: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    return weighted_loss(target.logits(hidden), labels, weights)


def train_drafter(
    target: TargetModel,
    drafter: DrafterModel,
    batches: Iterable[Rows],
    steps: int,
    anchors: int,
    report_every: int = 100,
    on_report: Callable[[int], None] = lambda step: None,
) -> list[Progress]:
    """Runs ``steps`` updates with the target frozen. ``on_report(step)`` may evaluate in between."""
    device = target.norm.weight.device
    on_gpu = device.type == "cuda"
    target.requires_grad_(False)
    if on_gpu:
        for layer in [*target.layers, *drafter.layers]:
            layer.compile(dynamic=False)
    optimiser = Optimiser(drafter, steps)
    history: list[Progress] = []
    seen, since = 0, time.perf_counter()
    for step, rows in zip(range(1, steps + 1), batches, strict=False):
        with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
            loss = drafter_loss(target, drafter, rows, anchors, seed=step)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        seen += rows.ids.numel()
        if step % report_every == 0 or step in (1, steps):
            value = loss.item()
            speed = seen / (time.perf_counter() - since)
            history.append(Progress(step, value, speed, 0.0))
            print(f"drafter {step:5d}  loss {value:.4f}  {speed:9.0f} tok/s", flush=True)
            on_report(step)
            seen, since = 0, time.perf_counter()
    return history
