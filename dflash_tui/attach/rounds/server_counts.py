"""Reads what servers count of an answer's speculation, at its end: totals under the names of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.events import TurnStatistics

from ..reading import Chunk
from ..untrusted import count, counts, mapping


@dataclass(frozen=True, slots=True)
class Count:
    """A server's totals of one answer; None where it doesn't say."""

    tokens: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    rounds: int | None = None
    histogram: tuple[int, ...] = ()
    """Entry k: rounds that accepted k drafted tokens."""
    width: int = 0
    """Tokens that a round drafts; 0 where it doesn't say."""

    def over(self, own: TurnStatistics) -> TurnStatistics:
        """The turn's figures: the server's, and those of ``own`` where the server has none."""
        spec = own.num_spec_steps if self.rounds is None else self.rounds
        num_accepted = own.num_accepted_draft_tokens if self.accepted is None else self.accepted
        num_tokens = own.num_tokens if self.tokens is None else self.tokens
        told = num_tokens, spec, num_accepted
        seen = own.num_tokens, own.num_spec_steps, own.num_accepted_draft_tokens
        return replace(
            own,
            num_tokens=num_tokens,
            num_spec_steps=spec,
            num_draft_tokens=own.num_draft_tokens if self.drafted is None else self.drafted,
            num_accepted_draft_tokens=num_accepted,
            mean_acceptance_length=1 + num_accepted / spec if spec else 0.0,
            acceptance_histogram=self.histogram or own.acceptance_histogram,
            num_rounds=own.num_rounds if told == seen else None,
        )


NAMES = {
    "drafted": (
        "num_draft_tokens", "spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num", "draft_n",
        "spec_draft_tokens", "total_draft_tokens_count",
    ),
    "accepted": (
        "num_accepted_draft_tokens", "spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num",
        "draft_n_accepted", "spec_accepted_tokens", "accepted_draft_tokens_count",
    ),
    "rounds": ("num_spec_steps", "spec_verify_ct", "draft_rounds"),
    "tokens": ("completion_tokens",),
    "width": ("num_spec_tokens",),
    "histogram": ("acceptance_histogram", "spec_correct_drafts_histogram", "spec_accept_histogram"),
}  # fmt: skip
"""Names of vLLM, of three versions of SGLang, of mlx-vlm, TokenSpeed and LM Studio."""


def server_count(ends: Sequence[Chunk]) -> Count:
    """The totals that a stream's events with more than text hold, the last that says so."""
    said: dict[str, Any] = {}
    for chunk in ends:
        for candidate in _places(chunk):
            said |= {name: value for name, value in candidate.items() if count(value) is not None or counts(value)}
    counters: dict[str, Any] = {}
    for what, names in NAMES.items():
        read = counts if what == "histogram" else count
        values = (value for name in names if (value := read(said.get(name))) not in (None, ()))
        if (value := next(values, None)) is not None:
            counters[what] = value
    drafted, accepted = counters.get("drafted"), counters.pop("accepted", 0)
    return Count(**counters, accepted=None if drafted is None else min(accepted, drafted))


def _places(chunk: Chunk) -> list[Mapping[str, Any]]:
    extra = {**chunk.figures("sglext"), **chunk.figures("meta_info")}
    speculation = mapping(chunk.figures("metrics").get("speculative_decoding"))
    details = mapping(extra.get("spec_tokens_details"))
    return [*map(chunk.figures, ("timings", "usage", "stats")), speculation, extra, details]
