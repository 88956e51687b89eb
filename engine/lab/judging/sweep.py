"""Compares fixed widths with the chosen one, on what this pair drafts and at what rounds cost on this machine."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...commands import GenerationSettings, Message
from ...decoding.decoder import Decoder
from ...speculation.auto import Auto
from ...speculation.costs import CostTable
from ...speculation.policy import Fixed, Policy
from ...tokenizer import ChatTokenizer
from .play import Played, play, play_oracle
from .record import DraftRecording, record_blocks

FIXED_SIZES = (1, 2, 4, 6, 8, 12, 16)
"""Block sizes to compare; 1 is plain decoding."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The rates that every policy would have had."""

    fixed: dict[int, PolicyRate]
    """The rate of each fixed block size; 1 is plain decoding."""
    auto: PolicyRate
    oracle: PolicyRate
    """The rate of an oracle that knows beforehand which drafts are right."""

    @property
    def best_size(self) -> int:
        return max(self.fixed, key=lambda size: self.fixed[size].tok_s)


def record_answers(
    decoder: Decoder,
    tokenizer: ChatTokenizer,
    prompts: Sequence[str],
    temperatures: Sequence[float],
    num_tokens: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[DraftRecording]:
    """Answers every prompt at every temperature, and drafts behind each token, with further choices where ``auto``
    verifies trees. The decoder must have a drafter."""
    assert decoder.drafter is not None
    recordings: list[DraftRecording] = []
    for prompt in prompts:
        ids = tokenizer.prompt([Message("user", prompt)], thinking=False).ids
        for temperature in temperatures:
            progress(len(recordings), len(prompts) * len(temperatures))
            settings = GenerationSettings(temperature=temperature, max_new_tokens=num_tokens)
            _, blocks = record_blocks(decoder.target, decoder.drafter, ids, settings)
            recording = DraftRecording.of_blocks(prompt, temperature, len(ids), blocks)
            recordings.append(recording if decoder.rounds.choices > 1 else replace(recording, blocks=()))
    return recordings


def sweep(recordings: Sequence[DraftRecording], table: CostTable) -> Sweep:
    """Plays every policy over the recordings, at the costs of a table. Fixed widths take chains."""
    answers = [recording for recording in recordings if recording.anchors]
    return Sweep(
        {size: rate(lambda size=size: Fixed(size), answers, table) for size in FIXED_SIZES},  # type: ignore[misc]
        rate_of([play(Auto(table), each.blocks or each.anchors, table, each.prompt_length) for each in answers]),
        rate_of(
            [
                play_oracle([block.known() for block in each.blocks] or each.anchors, table, each.prompt_length)
                for each in answers
            ]
        ),
    )


RESAMPLES = 400


class PolicyRate(NamedTuple):
    """Tokens per second over several answers, with the bounds of its 95 % interval."""

    tok_s: float
    low: float
    high: float


def rate(policy: Callable[[], Policy], recordings: Sequence[DraftRecording], table: CostTable) -> PolicyRate:
    """The rate of a policy; each answer gets one of its own, made by ``policy``."""
    return rate_of([play(policy(), each.anchors, table, each.prompt_length) for each in recordings])


def rate_of(played: Sequence[Played]) -> PolicyRate:
    """All tokens divided by all time, with a bootstrap interval over whole answers, since rounds of one text are
    alike."""
    rng = random.Random(0)

    def total(indices: Iterable[int]) -> float:
        chosen = [played[index] for index in indices]
        return 1e3 * sum(each.tokens for each in chosen) / sum(each.milliseconds for each in chosen)

    count = len(played)
    drawn = sorted(total(rng.choices(range(count), k=count)) for _ in range(RESAMPLES))
    return PolicyRate(total(range(count)), drawn[int(0.025 * RESAMPLES)], drawn[int(0.975 * RESAMPLES)])
