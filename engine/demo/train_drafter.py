"""Trains the drafter on conversations of the corpus and on the target's own answers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .conversation import Encoded
from .drafter_model import DrafterModel
from .drafting import BlockAttention, draw_blocks
from .optimiser import Optimiser
from .rows import Rows, Source
from .target_model import TargetModel
from .train_target import PackedAttention, weighted_loss

CORPUS_SHARE = 0.5
"""The rest are answers that the target itself gave."""


@dataclass(frozen=True, slots=True)
class DrafterProgress:
    step: int
    loss: float
    tokens_per_second: float
    acceptance: dict[str, dict[str, float]]
    """Of held-out prompts, by domain."""


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
        features = target(rows.ids, rows.positions, PackedAttention(target.shape, rows), shape.tapped_layers).tapped
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
    probe: Callable[[DrafterModel], dict[str, dict[str, float]]] | None = None,
) -> list[DrafterProgress]:
    """Runs ``steps`` updates with the target frozen; ``probe`` measures the drafter at every report."""
    device = target.norm.weight.device
    on_gpu = device.type == "cuda"
    target.requires_grad_(False)
    if on_gpu:
        for layer in [*target.layers, *drafter.layers]:
            layer.compile(dynamic=False)
    optimiser = Optimiser(drafter, steps)
    history: list[DrafterProgress] = []
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
            acceptance = probe(_copy(drafter)) if probe else {}
            history.append(DrafterProgress(step, value, speed, acceptance))
            print(f"drafter {step:5d}  loss {value:.4f}  {speed:9.0f} tok/s  {acceptance}", flush=True)
            seen, since = 0, time.perf_counter()
    return history


def _copy(drafter: DrafterModel) -> DrafterModel:
    """An uncompiled copy: the compiled one is specialised to the shapes of training."""
    copy = DrafterModel(drafter.shape).to(drafter.norm.weight.device)
    copy.load_state_dict(drafter.state_dict())
    return copy
