"""Adds up what a turn cost and what speculation gave, from its steps. Standard library only."""

from __future__ import annotations

from collections import Counter

from ..events import SourceStatistics, TurnStatistics
from .step import Source, Step, sources_in


class TurnMeter:
    """Collects the steps of one turn. Every figure of ``TurnStatistics`` is defined here."""

    def __init__(self, num_prompt_tokens: int = 0, num_reused_tokens: int = 0) -> None:
        self.num_prompt_tokens = num_prompt_tokens
        self.num_reused_tokens = num_reused_tokens
        self.num_tokens = 0
        self.num_spec_steps = 0
        self.num_draft_tokens = 0
        self.num_accepted = 0
        self._histogram: list[int] = []
        self._drafted: Counter[Source] = Counter()
        self._accepted: Counter[Source] = Counter()
        self._first_time = 0.0
        self._last_time = 0.0
        self._tokens_after_first_step = 0

    def add(self, step: Step) -> None:
        """Takes one step, in order."""
        if self.num_tokens == 0:
            self._first_time = step.time
        else:
            self._tokens_after_first_step += step.num_emitted
        self._last_time = step.time
        self.num_tokens += step.num_emitted
        if step.num_drafted:
            self._add_speculative(step)

    def _add_speculative(self, step: Step) -> None:
        self.num_spec_steps += 1
        self.num_draft_tokens += step.num_verified
        self.num_accepted += step.num_kept
        self._histogram.extend([0] * (step.num_kept + 1 - len(self._histogram)))
        self._histogram[step.num_kept] += 1
        sources = step.tree_columns.sources or step.draft_columns.sources[: step.num_verified]
        if any(sources):
            self._drafted.update(filter(None, sources))
            self._accepted.update(filter(None, sources_in(step)))

    def statistics(self) -> TurnStatistics:
        """The figures so far. Decode time runs from the first token to the last."""
        decode_seconds = self._last_time - self._first_time
        return TurnStatistics(
            num_prompt_tokens=self.num_prompt_tokens,
            num_reused_tokens=self.num_reused_tokens,
            num_tokens=self.num_tokens,
            num_spec_steps=self.num_spec_steps,
            num_draft_tokens=self.num_draft_tokens,
            num_accepted_draft_tokens=self.num_accepted,
            mean_acceptance_length=1 + self.num_accepted / self.num_spec_steps if self.num_spec_steps else 0.0,
            acceptance_histogram=tuple(self._histogram),
            ttft_ms=self._first_time * 1e3,
            decode_ms=decode_seconds * 1e3,
            tok_s=self._tokens_after_first_step / decode_seconds if decode_seconds > 0 else 0.0,
            by_source=tuple(
                SourceStatistics(source, self._drafted[source], self._accepted[source])
                for source in sorted(self._drafted)
            ),
        )
