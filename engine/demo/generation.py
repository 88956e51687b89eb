"""Batched generation with the training modules: plain decoding and DFlash rounds, many prompts at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .caches import DrafterCache, TargetCache, round_up
from .drafter_model import DrafterModel
from .shapes import EOS, MASK, STOP_IDS
from .target_model import TargetModel

PREFILL = 128
"""Columns of a batch of prompts that run at once."""


class Sampler:
    """Greedy at temperature 0; otherwise draws from the target's distribution (Gumbel noise, own generator)."""

    def __init__(self, temperature: float, seed: int, device: torch.device) -> None:
        self.temperature = temperature
        self.generator = torch.Generator(device).manual_seed(seed)

    def __call__(self, logits: Tensor) -> Tensor:
        """[..., V] -> ids [...]"""
        if self.temperature == 0:
            return logits.argmax(-1)
        uniform = torch.rand(logits.shape, generator=self.generator, device=logits.device).clamp_min(1e-20)
        return (logits / self.temperature - (-uniform.log()).log()).argmax(-1)


@dataclass(slots=True)
class Round:
    """One speculative cycle of one sequence."""

    accepted: int
    probabilities: list[float]
    """What the drafter gave each of its drafts."""


@dataclass(slots=True)
class Answer:
    """Generated ids, the stop token included when ``ended``."""

    ids: list[int] = field(default_factory=list)
    ended: bool = False
    rounds: list[Round] = field(default_factory=list)

    def extend(self, ids: list[int], limit: int) -> None:
        """Takes ids up to the first stop token or ``limit``."""
        for id in ids:
            if self.ended or len(self.ids) >= limit:
                return
            self.ids.append(id)
            self.ended = id in STOP_IDS


def generate(model: TargetModel, prompts: Sequence[list[int]], limit: int, sampler: Sampler) -> list[Answer]:
    """One token at a time, all prompts in one batch."""
    return _AnswerLoop(model, None, prompts, limit, sampler, block_size=1).run()


def speculate(
    model: TargetModel,
    drafter: DrafterModel,
    prompts: Sequence[list[int]],
    limit: int,
    sampler: Sampler,
    block_size: int,
) -> list[Answer]:
    """DFlash rounds: draft a block, verify it in one pass, keep the drafts that equal the target's own samples."""
    return _AnswerLoop(model, drafter, prompts, limit, sampler, block_size).run()


class _AnswerLoop:
    """Rounds of one batch. Finished sequences stand still, and leave once they are the majority."""

    def __init__(
        self,
        model: TargetModel,
        drafter: DrafterModel | None,
        prompts: Sequence[list[int]],
        limit: int,
        sampler: Sampler,
        block_size: int,
    ) -> None:
        self.model, self.drafter, self.sampler = model, drafter, sampler
        self.limit, self.block_size = limit, block_size
        self.device = model.norm.weight.device
        longest = max(map(len, prompts))
        self.prompts = torch.tensor([[*p, *[EOS] * (longest - len(p))] for p in prompts], device=self.device)
        self.starts = torch.tensor([len(p) for p in prompts], device=self.device)
        # The block that reaches the limit, and another one: a finished sequence still takes part, standing still.
        length = round_up(longest + limit + 2 * block_size)
        self.cache = TargetCache(model.shape, len(prompts), length, self.device)
        self.taps: tuple[int, ...] = ()
        if drafter is not None:
            self.taps = drafter.shape.tapped_layers
            self.draft_cache = DrafterCache(drafter.shape, len(prompts), length, self.device)
        self.cache_layers = self.cache.layers + (self.draft_cache.layers if drafter is not None else [])
        self.answers = [Answer() for _ in prompts]
        self.active = self.answers
        """The answers of the sequences that still have a row, in the order of the rows."""
        self.slots = torch.arange(block_size, device=self.device)

    @torch.no_grad()
    def run(self) -> list[Answer]:
        anchors = self._prefill()
        self._emit(anchors[:, None], torch.zeros_like(anchors))
        while any(flags := [self._runs(answer) for answer in self.active]):
            if sum(flags) < len(flags) // 2:
                anchors = anchors[self._keep_running(flags)]
                flags = [True] * len(self.active)
            running = torch.tensor(flags, device=self.device)
            positions = self.starts[:, None] + self.slots
            draft, probabilities = self._draft(anchors, positions)
            block = torch.cat((anchors[:, None], draft), dim=1)
            samples = self._verify(block, positions)
            accepted = (draft == samples[:, :-1]).cumprod(1).sum(1)
            self._emit(samples, accepted, probabilities)
            step = torch.where(running, accepted + 1, 0)
            anchors = torch.where(running, samples.gather(1, accepted[:, None])[:, 0], anchors)
            self.starts = self.starts + step
        return self.answers

    def _prefill(self) -> Tensor:
        """Runs the prompts and returns each sequence's first token."""
        count, longest = self.prompts.shape
        self.context_positions = torch.arange(longest, device=self.device).expand(count, -1)
        chunks = zip(
            torch.split(self.prompts, PREFILL, 1), torch.split(self.context_positions, PREFILL, 1), strict=True
        )
        outputs = [self.model(ids, spots, self.cache.chunk(spots), self.taps) for ids, spots in chunks]
        self.context = torch.cat([output.tapped for output in outputs], dim=1)
        final = torch.cat([output.final for output in outputs], dim=1)
        last = final[torch.arange(count, device=self.device), self.starts - 1]
        return self.sampler(self.model.logits(last))

    def _draft(self, anchors: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Drafted ids [B, block - 1] and the probabilities that the drafter gives them."""
        if self.drafter is None:
            return anchors.new_empty(len(anchors), 0), self.context.new_empty(len(anchors), 0)
        masked = torch.full_like(positions, MASK)
        masked[:, 0] = anchors
        hidden = self.drafter(
            self.drafter.context(self.context),
            self.context_positions,
            self.model.embed(masked),
            positions,
            self.draft_cache.round(self.context_positions, positions),
        )
        best = self.model.logits(hidden[:, 1:]).softmax(-1).max(-1)
        return best.indices, best.values

    def _verify(self, block: Tensor, positions: Tensor) -> Tensor:
        """The target's own token after every row of the block [B, block]."""
        output = self.model(block, positions, self.cache.chunk(positions), self.taps)
        self.context, self.context_positions = output.tapped, positions
        return self.sampler(self.model.logits(output.final))

    def _emit(self, samples: Tensor, accepted: Tensor, probabilities: Tensor | None = None) -> None:
        drafted = [] if probabilities is None else probabilities.tolist()
        for index, (answer, ids, count) in enumerate(
            zip(self.active, samples.tolist(), accepted.tolist(), strict=True)
        ):
            if not self._runs(answer):
                continue
            answer.extend(ids[: count + 1], self.limit)
            if drafted and drafted[index]:
                answer.rounds.append(Round(count, drafted[index]))

    def _runs(self, answer: Answer) -> bool:
        return not answer.ended and len(answer.ids) < self.limit

    def _keep_running(self, flags: list[bool]) -> Tensor:
        """Drops the finished sequences' rows; returns the indices of those kept."""
        kept = [index for index, flag in enumerate(flags) if flag]
        rows = torch.tensor(kept, device=self.device)
        self.active = [self.active[index] for index in kept]
        self.starts = self.starts[rows]
        self.context, self.context_positions = self.context[rows], self.context_positions[rows]
        for layer in self.cache_layers:
            layer.keep(rows)
        return rows
