"""Measures rounds and prompts: they are run by the same ``Decoder`` that answers people, and timed from outside."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from time import perf_counter

from ...commands import MAX_BLOCK_SIZE, MIN_BLOCK_SIZE, BlockSize, GenerationSettings
from ...decoding.decoder import Decoder
from ...decoding.rounds import Prompt, Round
from ...kv_cache.cache import Cache
from ...measured.ceiling import Ceiling
from .floor import Floor
from .routing import Routing, distinct_experts, force_routing, forced_scores
from .script import MAX_SCRIPT, Script, ScriptedHostRounds

WARM_UP = 3
"""How many rounds run before those that count."""
PLENTY = 1 << 20


@dataclass(frozen=True, slots=True)
class RoundFigures:
    """Rounds of one kind at one context. Times in milliseconds, sizes in bytes."""

    width: int
    """Rows per pass of the target; 1 is plain decoding."""
    context: int
    routing: str
    experts: float
    """Distinct experts that a pass touches, mean over the layers; 0 for a dense model."""
    round_ms: float
    """Wall time for each round, everything included."""
    verify_ms: float
    draft_ms: float
    verify_bytes: float
    draft_bytes: float
    acceptance_length: float
    """The mean number of tokens that a round yields."""
    share: float
    """The floor's share of the measured time, for the whole round: how near it is to what the memory can do."""
    verify_share: float
    draft_share: float

    @property
    def tokens_per_second(self) -> float:
        return 1e3 * self.acceptance_length / self.round_ms


@dataclass(frozen=True, slots=True)
class PrefillFigures:
    """The times of a prompt from empty caches, in milliseconds."""

    rows: int
    prefill_ms: float
    first_token_ms: float
    """Time until the first token is known."""
    bytes: float
    share: float


def acceptance_script(mean_length: float, width: int, rounds: int) -> list[int]:
    """How many drafts each round accepts, so that blocks of this width yield ``mean_length`` tokens on average
    (``ValueError`` where they can't). Deterministic; every position is as likely to end the run, as in real
    decoding."""
    if not 1 <= mean_length <= width:
        raise ValueError(f"the acceptance length must be between 1 and the block's {width}, not {mean_length}")
    low, high = 0.0, 1.0
    for _ in range(50):
        rate = (low + high) / 2
        reached = sum(rate**i for i in range(width))
        low, high = (rate, high) if reached < mean_length else (low, rate)
    counts = [_quantile(low, width, (index + 0.5) / rounds) for index in range(rounds)]
    _settle(counts, round((mean_length - 1) * rounds), width - 1)
    random.Random(0).shuffle(counts)
    return counts


def _quantile(rate: float, width: int, share: float) -> int:
    """The accepted count below which this share of the rounds lies, when each draft is accepted with ``rate``."""
    return next((count for count in range(width - 1) if 1 - rate ** (count + 1) > share), width - 1)


def _settle(counts: list[int], total: int, most: int) -> None:
    """Moves counts by one until they add up to the total: quantiles miss it slightly."""
    index = 0
    while (missing := total - sum(counts)) != 0:
        step = 1 if missing > 0 else -1
        if 0 <= counts[index % len(counts)] + step <= most:
            counts[index % len(counts)] += step
        index += 1


class Bench:
    """Runs a decoder on random contexts, and knows its floor."""

    def __init__(self, decoder: Decoder, floor: Floor, ceiling: Ceiling):
        self.decoder = decoder
        self.floor = floor
        self.ceiling = ceiling
        self.vocab_size = decoder.target.config.vocab_size
        self.script = Script(decoder.device)
        decoder.use_rounds(ScriptedHostRounds(self.script))
        for cache in decoder.prefix.caches:
            _fill_with_noise(cache)

    def rounds(
        self, width: int, context: int, routing: Routing, count: int, acceptance: float | None = None
    ) -> RoundFigures:
        """Times ``count`` rounds of ``width`` rows behind ``context`` tokens; ``acceptance`` is per block of 16."""
        experts = self.force(routing, width)
        # As long as the measurement, so that the rounds that count go through it exactly once, warmed up or not.
        length = min(count, MAX_SCRIPT)
        self.script.play(() if acceptance is None else acceptance_script(acceptance, MAX_BLOCK_SIZE, length))
        seconds, rounds = self.run(width, context, count)
        self.script.play()
        mean_context = context + round(fmean(done.context_length - context for done in rounds))
        verify_bytes = self.floor.verify(experts, mean_context)
        draft_bytes = self.floor.draft(mean_context) if width > 1 else 0.0
        round_ms = 1e3 * seconds / len(rounds)
        verify_ms = median(done.verify_ms for done in rounds)
        draft_ms = median(done.draft_ms for done in rounds)
        return RoundFigures(
            width=width,
            context=context,
            routing=routing,
            experts=experts,
            round_ms=round_ms,
            verify_ms=verify_ms,
            draft_ms=draft_ms if width > 1 else 0.0,
            verify_bytes=verify_bytes,
            draft_bytes=draft_bytes,
            acceptance_length=fmean(len(done.emitted) for done in rounds),
            share=self.share(verify_bytes + draft_bytes, round_ms),
            verify_share=self.share(verify_bytes, verify_ms),
            draft_share=self.share(draft_bytes, draft_ms) if width > 1 else 0.0,
        )

    def run(self, block: BlockSize, context: int, count: int) -> tuple[float, list[Round]]:
        """The seconds of ``count`` rounds behind a random context, and the rounds, both without the first few;
        ``block`` 1 decodes plainly."""
        ids = self.random_ids(context)
        self.decoder.prefix.set_length_for_timing(ids[:-1])
        settings = GenerationSettings(
            block_size=MIN_BLOCK_SIZE if block == 1 else block,
            speculation=block != 1,
            draft_by="drafter",  # scripted tokens are no text
            max_new_tokens=PLENTY,
        )
        done: list[Round] = []
        marks: list[float] = []

        def poll() -> GenerationSettings | None:
            return settings if len(done) <= WARM_UP + count else None

        for progress in self.decoder.decode(Prompt(ids, 0), poll):
            if isinstance(progress, Round):
                done.append(progress)
                marks.append(perf_counter())
        # The first round is the prompt's own. Rounds that were under way when the poll said stop are left out.
        first, last = WARM_UP, WARM_UP + count
        return marks[last] - marks[first], done[first + 1 : last + 1]

    def prefill(self, rows: int, repeats: int = 3) -> PrefillFigures:
        """Times a prompt of random tokens, from empty caches; a first run, which does not count, warms up."""
        self.force("uniform", rows)
        times = [self.prefill_once(rows) for _ in range(repeats + 1)][min(repeats, 1) :]
        prefill_ms, first_token_ms = (median(each) for each in zip(*times, strict=True))
        num_bytes = self.floor.prefill(rows, self.decoder.prefill_chunk)
        return PrefillFigures(rows, prefill_ms, first_token_ms, num_bytes, self.share(num_bytes, prefill_ms))

    def prefill_once(self, rows: int) -> tuple[float, float]:
        """Milliseconds of a prompt of random tokens, and those until its first token, with the routing in force."""
        self.decoder.clear()
        settings = GenerationSettings(max_new_tokens=PLENTY)
        prefill_ms = 0.0
        started = perf_counter()
        for progress in self.decoder.decode(Prompt(self.random_ids(rows), rows), lambda: settings):
            if isinstance(progress, Round):
                break
            prefill_ms = getattr(progress, "milliseconds", prefill_ms)
        return prefill_ms, (perf_counter() - started) * 1e3

    def force(self, routing: Routing, rows: int) -> float:
        """Forces the routing; returns how many distinct experts ``rows`` rows touch, mean over the layers."""
        moe = self.floor.shape.target.moe
        if moe is None:
            return 0.0
        scores = forced_scores(routing, len(self.floor.shape.target.layers), moe.num_experts, self.decoder.device)
        force_routing(self.decoder.target, scores)
        return distinct_experts(scores, moe.top_k, rows)

    def share(self, num_bytes: float, milliseconds: float) -> float:
        """The share of a time that reading the bytes alone would take; above 1 only where a cache holds the weights."""
        return num_bytes / self.ceiling.copy / (milliseconds / 1e3) if milliseconds else 0.0

    def random_ids(self, count: int) -> tuple[int, ...]:
        rng = random.Random(count)
        return tuple(rng.randrange(self.vocab_size) for _ in range(count))


def _fill_with_noise(cache: Cache) -> None:
    """Fills a cache with keys as small and values as large as the norms of a trained model leave them."""
    for layer in cache.attention:
        layer.k.normal_(std=0.25)
        layer.v.normal_()


def longest(contexts: Sequence[int], prompts: Sequence[int], count: int, block: int) -> int:
    """The context that a decoder needs for all these measurements."""
    return max((*contexts, *prompts)) + (count + WARM_UP + 4) * block
