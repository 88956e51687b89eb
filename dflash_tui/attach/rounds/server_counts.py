"""Reads what servers count of their rounds, at the end of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..chunks import Chunk
from ..untrusted import count, counts, mapping
from .chunk_rounds import Count
from .matching import RoundCount


def vllm_count(ends: Sequence[Chunk]) -> tuple[Count, int]:
    """vLLM's count, and how many tokens a round drafts (0 where it doesn't say)."""
    tokens, spec = _tokens(ends), mapping(None)
    for chunk in ends:
        spec = mapping(chunk.metrics.get("speculative_decoding")) or spec
    accepted, drafted = counts(spec.get("per_step_accepted")), counts(spec.get("per_step_drafted"))
    order: tuple[RoundCount, ...] = ()
    if accepted and drafted and len(accepted) == len(drafted):
        order = tuple(RoundCount(d, a) for d, a in zip(drafted, accepted, strict=True) if a <= d)
        order = order if len(order) == len(drafted) else ()
    counted = Count(
        tokens,
        count(spec.get("num_draft_tokens")),
        count(spec.get("num_accepted_draft_tokens")),
        count(spec.get("num_spec_steps")),
        counts(spec.get("acceptance_histogram")) or (),
        order,
    )
    return counted, count(spec.get("num_spec_tokens")) or 0


def sglang_count(ends: Sequence[Chunk]) -> Count:
    """SGLang's count. Its field names have changed twice, and a detailed list of rounds may stand beside the totals."""
    details: Mapping[str, Any] = {}
    stats: Mapping[str, Any] = {}
    for chunk in ends:
        extra = {**mapping(chunk.data.get("sglext")), **mapping(chunk.data.get("meta_info"))}
        details = mapping(extra.get("spec_tokens_details")) or (extra if "spec_verify_ct" in extra else details)
        stats = mapping(extra.get("speculative_decoding_stats")) or stats

    def first(*names: str) -> Any:
        return next((details[name] for name in names if details.get(name) is not None), None)

    verified, accepted = counts(stats.get("verify_lengths")) or (), counts(stats.get("accept_lengths")) or ()
    order: tuple[RoundCount, ...] = ()
    if verified and len(verified) == len(accepted) and all(a <= v for v, a in zip(verified, accepted, strict=True)):
        order = tuple(RoundCount(v, a) for v, a in zip(verified, accepted, strict=True))
    rounds = count(first("spec_verify_ct"))
    return Count(
        _tokens(ends),
        count(first("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")),
        count(first("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")),
        len(order) or rounds,
        counts(first("spec_correct_drafts_histogram", "spec_accept_histogram")) or (),
        order,
    )


def openai_count(ends: Sequence[Chunk]) -> Count:
    """The totals as mlx-vlm, LM Studio and TokenSpeed report them."""
    drafted = accepted = rounds = None
    for chunk in ends:
        for place in (chunk.timings, chunk.usage, mapping(chunk.data.get("stats"))):
            drafted = _one_of(place, "draft_n", "spec_draft_tokens", "total_draft_tokens_count") or drafted
            kept = _one_of(place, "draft_n_accepted", "spec_accepted_tokens", "accepted_draft_tokens_count")
            accepted = kept or accepted
            rounds = _one_of(place, "draft_rounds", "spec_verify_ct") or rounds
    if drafted is not None:
        accepted = min(accepted or 0, drafted)
    return Count(_tokens(ends), drafted, accepted if drafted is not None else None, rounds)


def _one_of(place: Mapping[str, Any], *names: str) -> int | None:
    return next((number for name in names if (number := count(place.get(name))) is not None), None)


def _tokens(ends: Sequence[Chunk]) -> int | None:
    """How many tokens the answer has, by the last event that says so."""
    told = [number for chunk in ends if (number := count(chunk.usage.get("completion_tokens"))) is not None]
    return told[-1] if told else None
