"""Batched generation by the engine's models: plain decoding and DFlash rounds, many prompts at a time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ...models.dflash.modules import DFlashDrafter
from ...models.target import TargetModel
from .caches import DraftRound, TargetRows, TextCache, round_up
from .passes import BatchedDrafter, BatchedTarget

PREFILL = 128
"""Tokens of a batch of prompts that are run at once, for each prompt."""
UNSEEN = 16
"""How many tokens of each text a GPU writes before the host looks which texts are done."""


class Sampler:
    """Samples tokens: greedily at temperature 0, otherwise from the target's distribution (Gumbel noise of its own
    generator)."""

    def __init__(self, temperature: float | Sequence[float], seed: int, device: torch.device) -> None:
        """``temperature``: one for all, or one for each text."""
        self.temperature = torch.tensor(temperature, device=device)
        self.greedy = not self.temperature.any()
        self.generator = torch.Generator(device).manual_seed(seed)

    def __call__(self, logits: Tensor) -> Tensor:
        """Samples ids [texts, ...] from logits [texts, ..., V]."""
        if self.greedy:
            return logits.argmax(-1)
        noise = torch.rand(logits.shape, generator=self.generator, device=logits.device)
        noise.clamp_min_(1e-20).log_().neg_().log_()
        temperature = self.temperature.view(-1, *(1,) * (logits.dim() - 1))
        return noise.mul_(-temperature).add_(logits).argmax(-1)

    def keep(self, texts: Tensor) -> None:
        if self.temperature.dim():
            self.temperature = self.temperature[texts]


@dataclass(slots=True)
class GeneratedAnswer:
    ids: list[int] = field(default_factory=list)
    """Its token ids. If it ``ended`` by itself the last one is a stop token; otherwise the limit cut it off."""
    ended: bool = False
    accepted: list[int] = field(default_factory=list)
    """How many drafts were accepted in each round that wrote it, without the first token's; empty where nothing was
    drafted."""

    def extend(self, ids: list[int], limit: int, stops: Collection[int]) -> None:
        """Appends ids up to the first of ``stops`` or up to ``limit``."""
        for id in ids:
            if self.ended or len(self.ids) >= limit:
                return
            self.ids.append(id)
            self.ended = id in stops


def generate(
    model: TargetModel,
    prompts: Sequence[Sequence[int]],
    limit: int,
    sampler: Sampler,
    stops: Sequence[int] | None = None,
) -> list[GeneratedAnswer]:
    """Answer all prompts in one batch, one token at a time, with at most ``limit`` new tokens each. The first of
    ``stops`` (by default the target's own stop tokens) ends an answer and is its last token."""
    return _TokenLoop(model, prompts, limit, sampler, stops).run()


def speculate(
    model: TargetModel,
    drafter: DFlashDrafter,
    prompts: Sequence[Sequence[int]],
    limit: int,
    sampler: Sampler,
    block_size: int,
) -> list[GeneratedAnswer]:
    """Answers all prompts by DFlash rounds: draft a block, verify it in one pass, keep the drafts that equal the
    target's samples."""
    return _RoundLoop(model, drafter, prompts, limit, sampler, block_size).run()


class _Texts:
    """The texts of one batch. Finished ones are dropped now and then."""

    taps: tuple[int, ...] = ()

    def __init__(
        self,
        model: TargetModel,
        prompts: Sequence[Sequence[int]],
        limit: int,
        sampler: Sampler,
        stops: Sequence[int] | None,
        beyond: int,
    ) -> None:
        """``beyond``: how many rows passes write past ``limit``."""
        self.model, self.target, self.sampler = model, BatchedTarget(model), sampler
        self.limit = limit
        self.stops = frozenset(model.config.stop_token_ids if stops is None else stops)
        self.device = model.device
        if self.device.type == "cuda":
            # cuDNN makes a plan for every shape, and with texts that grow and leave there is a new one all the time.
            torch.backends.cuda.enable_cudnn_sdp(False)
        self.longest = max(map(len, prompts))
        self.prompts = torch.tensor([[*p, *[p[-1]] * (self.longest - len(p))] for p in prompts], device=self.device)
        self.starts = torch.tensor([len(p) for p in prompts], device=self.device)
        self.size = len(prompts), round_up(self.longest + limit + beyond), model.dtype, self.device
        self.cache = TextCache(model.config.attention, *self.size)
        self.caches = [self.cache]
        self.answers = [GeneratedAnswer() for _ in prompts]
        self.active = self.answers
        """The answers of the texts that still have a row, in the order of the rows."""

    def _prefill(self) -> Tensor:
        """Runs the prompts and returns each text's first token."""
        count, longest = self.prompts.shape
        self.context_positions = torch.arange(longest, device=self.device).expand(count, -1)
        outputs = []
        for begin in range(0, longest, PREFILL):
            end = min(begin + PREFILL, longest)
            chunk = TargetRows(self.cache, self.context_positions[:, begin:end], end)
            outputs.append(self.target(self.prompts[:, begin:end], chunk, self.taps))
        self._take([output.features for output in outputs])
        final = torch.cat([output.hidden for output in outputs], dim=1)
        last = final[torch.arange(count, device=self.device), self.starts - 1]
        return self.sampler(self.model.logits(last))

    def _take(self, features: Sequence[Tensor | None]) -> None:
        """Keeps the features of the rows that have just been run, where a drafter reads them."""

    def _runs(self, answer: GeneratedAnswer) -> bool:
        return not answer.ended and len(answer.ids) < self.limit

    def _keep_running(self, flags: list[bool]) -> Tensor:
        """Drops the finished texts' rows; returns the indices of those kept."""
        running = [index for index, flag in enumerate(flags) if flag]
        rows = torch.tensor(running, device=self.device)
        self.active = [self.active[index] for index in running]
        self.starts = self.starts[rows]
        self.sampler.keep(rows)
        for cache in self.caches:
            cache.keep(rows)
        return rows


class _TokenLoop(_Texts):
    """Plain decoding: all texts go on by a token together. Those that are done write on until somebody looks: nothing
    they write is kept, and a GPU that is asked after every token waits for the host most of the time."""

    def __init__(
        self,
        model: TargetModel,
        prompts: Sequence[Sequence[int]],
        limit: int,
        sampler: Sampler,
        stops: Sequence[int] | None,
    ) -> None:
        super().__init__(model, prompts, limit, sampler, stops, 0)

    @torch.no_grad()
    def run(self) -> list[GeneratedAnswer]:
        tokens, written = self._prefill(), 1
        unseen = [tokens]
        while True:
            while len(unseen) < UNSEEN and written < self.limit:
                tokens = self._next(tokens, written)
                unseen.append(tokens)
                written += 1
            for answer, ids in zip(self.active, torch.stack(unseen, 1).tolist(), strict=True):
                answer.extend(ids, self.limit, self.stops)
            unseen.clear()
            flags = [self._runs(answer) for answer in self.active]
            if not any(flags):
                return self.answers
            if sum(flags) < 0.8 * len(flags):
                tokens = tokens[self._keep_running(flags)]

    def _next(self, tokens: Tensor, written: int) -> Tensor:
        """The token behind ``tokens`` [texts], which are the last of ``written`` in each text."""
        positions = (self.starts + (written - 1))[:, None]
        output = self.target(tokens[:, None], TargetRows(self.cache, positions, self.longest + written), self.taps)
        return self.sampler(self.model.logits(output.hidden[:, 0]))


class _RoundLoop(_Texts):
    """Speculative rounds of one batch. Finished texts stand still, and leave once they are the majority."""

    def __init__(
        self,
        model: TargetModel,
        drafter: DFlashDrafter,
        prompts: Sequence[Sequence[int]],
        limit: int,
        sampler: Sampler,
        block_size: int,
    ) -> None:
        # Room for the block that reaches the limit and another one: a finished text still takes part, standing still.
        super().__init__(model, prompts, limit, sampler, None, 2 * block_size)
        self.drafter, self.taps = BatchedDrafter(drafter), drafter.config.target_layer_ids
        self.draft_cache = TextCache(drafter.config.layers, *self.size)
        self.caches.append(self.draft_cache)
        self.slots = torch.arange(block_size, device=self.device)

    @torch.no_grad()
    def run(self) -> list[GeneratedAnswer]:
        anchors = self._prefill()
        self._emit(anchors[:, None], torch.zeros_like(anchors), drafted=False)
        while any(flags := [self._runs(answer) for answer in self.active]):
            if sum(flags) < len(flags) // 2:
                anchors = anchors[self._keep_running(flags)]
                flags = [True] * len(self.active)
            running = torch.tensor(flags, device=self.device)
            positions = self.starts[:, None] + self.slots
            draft = self._draft(anchors, positions)
            block = torch.cat((anchors[:, None], draft), dim=1)
            samples = self._verify(block, positions)
            accepted = (draft == samples[:, :-1]).cumprod(1).sum(1)
            self._emit(samples, accepted)
            step = torch.where(running, accepted + 1, 0)
            anchors = torch.where(running, samples.gather(1, accepted[:, None])[:, 0], anchors)
            self.starts = self.starts + step
        return self.answers

    def _take(self, features: Sequence[Tensor | None]) -> None:
        self.context = torch.cat([each for each in features if each is not None], dim=1)

    def _draft(self, anchors: Tensor, positions: Tensor) -> Tensor:
        """Drafted ids [texts, block - 1]."""
        drafter = self.drafter.model
        masked = torch.full_like(positions, drafter.config.mask_token_id)
        masked[:, 0] = anchors
        running = DraftRound(self.draft_cache, self.context_positions, positions)
        hidden = self.drafter(self.context, drafter.embed(self.model, masked), running)
        return drafter.logits(self.model, hidden[:, 1:]).argmax(-1)

    def _verify(self, block: Tensor, positions: Tensor) -> Tensor:
        """The target's own token after every row of the block [texts, block]."""
        output = self.target(block, TargetRows(self.cache, positions, int(positions.max()) + 1), self.taps)
        self._take([output.features])
        self.context_positions = positions
        return self.sampler(self.model.logits(output.hidden))

    def _emit(self, samples: Tensor, accepted: Tensor, drafted: bool = True) -> None:
        for answer, ids, count in zip(self.active, samples.tolist(), accepted.tolist(), strict=True):
            if not self._runs(answer):
                continue
            answer.extend(ids[: count + 1], self.limit, self.stops)
            if drafted:
                answer.accepted.append(count)

    def _keep_running(self, flags: list[bool]) -> Tensor:
        rows = super()._keep_running(flags)
        self.context_positions, self.context = self.context_positions[rows], self.context[rows]
        return rows
