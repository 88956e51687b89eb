"""Measures what choosing the verify width yields: drafts are scripted, as long as a model card reports, and cost what
rounds cost here."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ...commands import AUTO, MAX_BLOCK_SIZE, BlockSize
from ...measured.costs import time_rounds
from ...speculation.auto import Auto
from ..judging.play import RecordedDraft
from .measure import Bench, acceptance_script
from .report import table
from .routing import Routing
from .script import MAX_SCRIPT

ACCEPTED = (
    0.102, 0.498, 0.627, 0.729, 0.812, 0.867, 0.906, 0.933, 0.949, 0.965, 0.973, 0.98, 0.988, 0.988, 0.992, 0.996,
    0.996, 1.0, 1.0, 1.0, 1.0,
)  # fmt: skip
FALLEN = (
    0.055, 0.184, 0.22, 0.255, 0.282, 0.314, 0.341, 0.369, 0.396, 0.424, 0.451, 0.478, 0.506, 0.533, 0.565, 0.6,
    0.643, 0.698, 0.757, 0.839, 1.0,
)  # fmt: skip
BEHIND = (
    0.027, 0.106, 0.141, 0.18, 0.212, 0.247, 0.278, 0.314, 0.345, 0.384, 0.424, 0.467, 0.514, 0.565, 0.624, 0.69,
    0.769, 0.851, 0.925, 0.98, 1.0,
)  # fmt: skip
"""Confidences of the bundled drafter in twenty quantiles, smallest first: of drafts that were accepted, of those at
which a block failed, and of those behind. Five domains count alike."""

HEADS = ("accepts", "policy", "drafted", "rows", "tokens", "round ms", "tok/s")


@dataclass(frozen=True, slots=True)
class PolicyFigures:
    """What one policy yielded at one acceptance length."""

    policy: BlockSize
    """A block size that is verified whole (1 is plain decoding), or ``auto``."""
    acceptance: float
    """Tokens that whole blocks of 16 would yield, on average."""
    context: int
    routing: str
    drafted: float
    """The share of the rounds that had a draft."""
    rows: float
    """Mean rows per pass of the target."""
    tokens: float
    """Mean tokens per round."""
    round_ms: float

    @property
    def tokens_per_second(self) -> float:
        return 1e3 * self.tokens / self.round_ms


def scripted_drafts(mean_length: float, rounds: int) -> list[RecordedDraft]:
    """Drafts of whole blocks that yield ``mean_length`` tokens on average. Their confidences tell as much as the
    bundled drafter's do, and no more: each is drawn by itself, from those of drafts with the same fate."""
    rng = random.Random(0)

    def drawn(right: int) -> RecordedDraft:
        fates = (
            ACCEPTED if position < right else FALLEN if position == right else BEHIND for position in range(drafts)
        )
        return RecordedDraft(tuple(_draw(fate, rng) for fate in fates), right)

    drafts = MAX_BLOCK_SIZE - 1
    return [drawn(right) for right in acceptance_script(mean_length, MAX_BLOCK_SIZE, rounds)]


def _draw(parts: Sequence[float], rng: random.Random) -> float:
    position = rng.random() * (len(parts) - 1)
    low = int(position)
    return parts[low] + (position - low) * (parts[low + 1] - parts[low])


def measure_policies(
    bench: Bench,
    policies: Sequence[BlockSize],
    acceptances: Sequence[float],
    context: int,
    routing: Routing,
    count: int,
) -> list[PolicyFigures]:
    """Measures every policy at every acceptance length, with costs timed as at start-up. Raises ``ValueError`` without
    a drafter, and without room for a block."""
    decoder = bench.decoder
    if decoder.drafter is None:
        raise ValueError("--policy needs a drafter")
    bench.force(routing, 1)
    costs = time_rounds(decoder, bench.random_ids(MAX_BLOCK_SIZE))
    if costs is None:
        raise ValueError("--policy needs room for a block: a longer context")
    results = []
    for acceptance in acceptances:
        drafts = scripted_drafts(acceptance, min(count, MAX_SCRIPT))
        for policy in policies:
            bench.script.play([draft.num_right for draft in drafts], [draft.confidences for draft in drafts])
            decoder.use_policy(Auto(costs) if policy == AUTO else None)
            seconds, rounds = bench.run(policy, context, count)
            figures = PolicyFigures(
                policy=policy,
                acceptance=acceptance,
                context=context,
                routing=routing,
                drafted=fmean(bool(done.draft_ids) for done in rounds),
                rows=fmean(done.verify_width for done in rounds),
                tokens=fmean(len(done.emitted) for done in rounds),
                round_ms=1e3 * seconds / len(rounds),
            )
            results.append(figures)
    bench.script.play()
    decoder.use_policy(None)
    return results


def policy_table(figures: Sequence[PolicyFigures]) -> str:
    rows = [
        [
            f"{each.acceptance:.2f}",
            "plain" if each.policy == 1 else str(each.policy),
            f"{100 * each.drafted:.0f}%",
            f"{each.rows:.2f}",
            f"{each.tokens:.2f}",
            f"{each.round_ms:.3f}",
            f"{each.tokens_per_second:.0f}",
        ]
        for each in figures
    ]
    return f"\npolicies at context {figures[0].context}, {figures[0].routing} routing\n{table(HEADS, rows)}"
