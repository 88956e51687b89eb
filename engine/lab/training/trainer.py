"""Trains a drafter on conversations, from what the target's layers make of them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from ...models.dflash.modules import DFlashDrafter
from ...models.target import TargetModel
from .blocks import DECAY, block_visibility, draw_blocks
from .clock import TrainingClock
from .masks import MaskedAttention
from .optimiser import Optimiser
from .passes import BatchedDrafter, BatchedTarget, PackedDraftPass, PackedPass
from .rows import Encoded, RowDataset, RowSource, TextRows, batches, causal_within_documents

log = logging.getLogger(__name__)

LOGITS_AT_ONCE = 2**30
"""The most numbers that the head may put out at once; above that its output is computed in parts, twice each: 4 GB in
fp32."""

SAVE_SECONDS = 60.0
"""Seconds between two saved states."""
TOLD_EVERY = 10
"""Steps between two reports."""
HELD_OUT_SEED = 0
"""The seed of the blocks by which held-out answers are judged."""

Probe = Callable[[DFlashDrafter], dict[str, float]]
"""Measures acceptance lengths of held-out prompts, by domain."""


@dataclass(frozen=True, slots=True)
class Schedule:
    steps: int
    rows: int
    """Packed rows of one update."""
    row_length: int
    anchors: int
    """Drafted blocks per row."""
    seed: int = 1
    report_every: int = 100
    seconds: float | None = None
    """Seconds after which training ends with a learning rate of zero, however many steps that were; None runs all
    steps."""
    decay: float = DECAY


@dataclass(frozen=True, slots=True)
class DrafterProgress:
    """The figures of one report while a drafter is trained."""

    step: int
    loss: float
    """The mean over the steps since the last report."""
    tokens_per_second: float
    acceptance: dict[str, float] = field(default_factory=dict)
    """Acceptance lengths of held-out prompts, by domain."""
    held_out_loss: float | None = None
    """The loss on a batch of their answers: where it rises while ``loss`` falls, answers are learned by heart."""


class Trainer:
    """Trains one drafter for its target, which stays as it is. The drafter's weights are fp32 here; on a GPU both
    models compute in bf16."""

    def __init__(self, target: TargetModel, drafter: DFlashDrafter, schedule: Schedule) -> None:
        target.requires_grad_(False)
        drafter.float().requires_grad_(True)
        self.target, self.drafter, self.schedule = target, drafter, schedule
        self.optimiser = Optimiser(drafter, schedule.steps)
        self.history: list[DrafterProgress] = []
        self.losses: list[Tensor] = []
        """The losses of the steps since the last report."""
        self.clock = TrainingClock(schedule.seconds)
        self._stepping = False
        """Whether an update of the weights is under way, which must not be saved."""
        self.fused = target.device.type == "cuda"
        if self.fused:
            fuse(drafter)

    def loss(self, rows: TextRows, seed: int) -> Tensor:
        """Cross-entropy of drafted tokens, with ``anchors`` blocks for each row; the target gets no gradient. Tokens
        are drawn with their weights as chances, since those of little weight would cost the head as much as others."""
        config = self.drafter.config
        block, taps = config.block_size, config.target_layer_ids
        generator = torch.Generator(rows.ids.device).manual_seed(seed)
        blocks = draw_blocks(rows, self.schedule.anchors, block, config.mask_token_id, generator, self.schedule.decay)
        weights = blocks.weights.flatten()
        drawn = torch.rand(weights.shape, generator=generator, device=weights.device) < weights
        # A model in bf16 computes here as it does when it decodes.
        autocast = torch.autocast(rows.ids.device.type, torch.bfloat16, enabled=self._mixed(self.target.dtype))
        with torch.no_grad(), autocast:
            packed = PackedPass(rows.positions, self.target.config.attention, partial(causal_within_documents, rows))
            features = BatchedTarget(self.target)(rows.ids, packed, taps).features
            embedded = self.drafter.embed(self.target, blocks.inputs).float()
        assert features is not None
        visible = partial(block_visibility, rows, blocks, block)
        drafting = PackedDraftPass(rows.positions, blocks.positions, config.layers, visible)
        hidden = BatchedDrafter(self.drafter)(features, embedded, drafting)
        return self._head_loss(hidden.flatten(0, 1), blocks.labels.flatten(), drawn)

    def _autocast(self, device: torch.device) -> torch.autocast:
        return torch.autocast(device.type, torch.bfloat16, enabled=self._mixed(torch.float32))

    def _mixed(self, dtype: torch.dtype) -> bool:
        """Whether products of weights in this dtype are computed in bf16."""
        return self.target.device.type == "cuda" and dtype == torch.float32

    def _head_loss(self, hidden: Tensor, labels: Tensor, drawn: Tensor) -> Tensor:
        """The mean loss over the rows that were drawn; they go through the head in parts that fit."""
        chosen = drawn.nonzero()[:, 0]
        rows, labels = hidden[chosen], labels[chosen]
        size = max(LOGITS_AT_ONCE // len(self.target.head), 1)
        if len(rows) <= size:
            return self._loss_of_rows(rows, labels) / len(rows)
        parts = [slice(begin, begin + size) for begin in range(0, len(rows), size)]
        sums: list[Tensor] = [
            checkpoint(self._loss_of_rows, rows[rows_of], labels[rows_of], use_reentrant=False) for rows_of in parts
        ]
        return torch.stack(sums).sum() / len(rows)

    def _loss_of_rows(self, rows: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(self.drafter.logits(self.target, rows), labels, reduction="sum")

    def run(
        self,
        source: RowSource,
        report: Callable[[int, int, float], None],
        state: Path,
        probe: Probe,
        held_out: Sequence[Encoded] = (),
    ) -> list[DrafterProgress]:
        """Trains to the end, from what ``state`` holds if it exists. ``report`` is called with (steps done, in all,
        loss). Ctrl+C saves, too."""
        schedule, device = self.schedule, self.target.device
        if state.exists():
            self._resume(torch.load(state, map_location=device, weights_only=True))
        done = self.optimiser.done
        count = schedule.rows * schedule.steps
        dataset = RowDataset(
            source,
            f"drafter/{schedule.seed}",
            count,
            schedule.row_length,
            schedule.rows * done,
        )
        rows = batches(dataset, schedule.rows, device)
        saved = since = time.perf_counter()
        timed = done
        try:
            for step, loss, last in self._steps(done, rows):
                self.losses.append(loss)
                if step % schedule.report_every == 0 or last:
                    speed = (step - timed) * schedule.rows * schedule.row_length / (time.perf_counter() - since)
                    value = torch.stack(self.losses).mean().item()
                    self.history.append(
                        DrafterProgress(step, value, speed, probe(self.copy()), self._loss_of(held_out))
                    )
                    self.losses.clear()
                    since, timed = time.perf_counter(), step
                if step % TOLD_EVERY == 0 or last:
                    report(step, step if last else self._expected(step), loss.item())
                if time.perf_counter() - saved > SAVE_SECONDS or last:
                    self._save(state)
                    saved = time.perf_counter()
        except KeyboardInterrupt:
            if not self._stepping:  # otherwise the state that was saved last must do
                self._save(state)
            raise
        return self.history

    def _loss_of(self, held_out: Sequence[Encoded]) -> float | None:
        """The loss on the same held-out batch every time. It is as large as a step's, so that what is compiled for one
        serves the other."""
        if not held_out:
            return None
        schedule, device = self.schedule, self.target.device
        dataset = RowDataset(held_out, "held out", schedule.rows, schedule.row_length)
        (batch,) = batches(dataset, schedule.rows, device)
        with self._autocast(device):
            return self.loss(batch, HELD_OUT_SEED).item()

    def _steps(self, done: int, rows: Iterator[TextRows]) -> Iterator[tuple[int, Tensor, bool]]:
        """Yields (step, loss, whether it was the last)."""
        steps = self.schedule.steps
        self.clock.start()
        for step, batch in zip(range(done + 1, steps + 1), rows, strict=False):
            loss = self._gradients(batch, self.schedule.seed * 1_000_003 + step)
            self._stepping = True
            self.optimiser.step(self.clock.tick())
            self._stepping = False
            last = step == steps or self.clock.progress >= 1
            yield step, loss, last
            if last:
                return

    def _expected(self, step: int) -> int:
        """How many steps there will be, as far as the time tells."""
        progress = self.clock.progress
        return self.schedule.steps if progress == 0 else min(self.schedule.steps, round(step / progress))

    def _gradients(self, batch: TextRows, seed: int) -> Tensor:
        """The loss of a batch; computes the gradients of the drafter's parameters."""
        try:
            return self._backward(batch, seed)
        except Exception as error:  # what can't be compiled for the backward pass fails only here
            if self.target.device.type != "cuda" or not (self._unfused(error) or MaskedAttention.refuse(error)):
                raise
        for parameter in self.drafter.parameters():
            parameter.grad = None
        return self._gradients(batch, seed)

    def _unfused(self, error: Exception) -> bool:
        """Goes on with layers that aren't compiled. Returns False, and changes nothing, where none are, and for a lack
        of memory."""
        if not self.fused or isinstance(error, torch.OutOfMemoryError):
            return False
        log.warning("Training goes on without compiled layers, more slowly: %s", error)
        unfuse(self.drafter)
        self.fused = False
        return True

    def _backward(self, batch: TextRows, seed: int) -> Tensor:
        with self._autocast(batch.ids.device):
            loss = self.loss(batch, seed)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def copy(self) -> DFlashDrafter:
        """A copy of the drafter as it is now, rounded as it will be stored and in the target's dtype."""
        copy = self.drafter.config.build().to(self.target.device, torch.bfloat16)
        copy.load_state_dict(self.drafter.state_dict())
        copy = copy.to(self.target.dtype).requires_grad_(False)
        copy.prepare()
        return copy

    def _save(self, path: Path) -> None:
        state = {
            "drafter": self.drafter.state_dict(),
            "optimiser": self.optimiser.state(),
            "progress": self.clock.progress,
            "losses": list(self.losses),
            "history": [asdict(each) for each in self.history],
        }
        temporary = path.with_suffix(".partial")
        torch.save(state, temporary)
        os.replace(temporary, path)

    def _resume(self, state: dict[str, Any]) -> None:
        self.drafter.load_state_dict(state["drafter"])
        self.optimiser.resume(state["optimiser"])
        self.clock.progress = state["progress"]
        self.losses = list(state["losses"])
        self.history = [DrafterProgress(**each) for each in state["history"]]


def fuse(drafter: DFlashDrafter) -> None:
    """Compiles the drafter's layers for this many rows, because most of a step is reading and writing numbers again."""
    for layer in drafter.layers:
        for owner, name in _compiled(layer):
            setattr(owner, name, torch.compile(getattr(owner, name), dynamic=False))


def unfuse(drafter: DFlashDrafter) -> None:
    for layer in drafter.layers:
        for owner, name in _compiled(layer):
            delattr(owner, name)


def _compiled(layer: nn.Module) -> tuple[tuple[nn.Module, str], ...]:
    return (layer.get_submodule("self_attn"), "keys_values"), (layer, "forward")


def initialise(drafter: DFlashDrafter, seed: int) -> None:
    """Draws random weights for a new drafter: matrices with standard deviation 1 / sqrt(inputs); norms are 1."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in drafter.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5, generator=generator)
        else:
            torch.nn.init.ones_(parameter)
