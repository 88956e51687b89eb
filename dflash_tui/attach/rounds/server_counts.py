"""Reads what servers count of an answer's speculation, at its end: totals under the names of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


DRAFTED = (
    "num_draft_tokens", "spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num", "draft_n",
    "spec_draft_tokens", "total_draft_tokens_count",
)  # fmt: skip
ACCEPTED = (
    "num_accepted_draft_tokens", "spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num",
    "draft_n_accepted", "spec_accepted_tokens", "accepted_draft_tokens_count",
)  # fmt: skip
ROUNDS = ("num_spec_steps", "spec_verify_ct", "draft_rounds")
HISTOGRAM = ("acceptance_histogram", "spec_correct_drafts_histogram", "spec_accept_histogram")
"""Names of vLLM, of three versions of SGLang, of mlx-vlm, TokenSpeed and LM Studio."""


def server_count(ends: Sequence[Chunk]) -> Count:
    """The totals that a stream's events with more than text hold, the last that says so."""
    tokens: int | None = None
    found: dict[str, Any] = {}
    for chunk in ends:
        tokens = _or(count(chunk.usage.get("completion_tokens")), tokens)
        for place in _places(chunk):
            found |= {name: value for name, value in place.items() if value is not None}
    drafted, accepted = _first(found, DRAFTED), _first(found, ACCEPTED)
    if drafted is not None:
        accepted = min(accepted or 0, drafted)
    return Count(
        tokens,
        drafted,
        accepted if drafted is not None else None,
        _first(found, ROUNDS),
        next((read for name in HISTOGRAM if (read := counts(found.get(name)))), ()),
        count(found.get("num_spec_tokens")) or 0,
    )


def _places(chunk: Chunk) -> list[Mapping[str, Any]]:
    extra = {**mapping(chunk.data.get("sglext")), **mapping(chunk.data.get("meta_info"))}
    return [
        chunk.timings,
        chunk.usage,
        mapping(chunk.data.get("stats")),
        mapping(chunk.metrics.get("speculative_decoding")),
        extra,
        mapping(extra.get("spec_tokens_details")),
    ]


def _first(found: Mapping[str, Any], names: Sequence[str]) -> int | None:
    return next((number for name in names if (number := count(found.get(name))) is not None), None)


def _or(value: int | None, other: int | None) -> int | None:
    return other if value is None else value
