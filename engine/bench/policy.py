"""What choosing the verify width yields: scripted drafts, as long as a model card reports, at what rounds cost here."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..commands import AUTO, MAX_BLOCK_SIZE, BlockSize
from ..kernels.accept import MAX_SCRIPT
from ..tuning.costs import time_rounds
from ..tuning.play import Anchor
from ..width import Auto
from .measure import Bench, acceptance_script
from .report import table
from .routing import Routing

ACCEPTED = (
    0.094, 0.451, 0.565, 0.659, 0.737, 0.8, 0.859, 0.894, 0.922, 0.941, 0.957, 0.969, 0.976, 0.984, 0.988, 0.992, 0.996,
    0.996, 1.0, 1.0, 1.0,
)  # fmt: skip
FALLEN = (
    0.059, 0.176, 0.216, 0.239, 0.267, 0.29, 0.314, 0.345, 0.373, 0.4, 0.424, 0.451, 0.478, 0.506, 0.533, 0.569, 0.604,
    0.659, 0.729, 0.824, 0.992,
)  # fmt: skip
BEHIND = (
    0.035, 0.118, 0.153, 0.188, 0.216, 0.247, 0.275, 0.306, 0.337, 0.373, 0.412, 0.455, 0.498, 0.541, 0.596, 0.659,
    0.741, 0.831, 0.918, 0.973, 1.0,
)  # fmt: skip
"""Confidences of the bundled drafter, every twentieth part of them, least first: of drafts that were accepted, of those
where a block fell, and of those behind. Five domains count alike (``python -m tests.engine.calibration``)."""

HEADS = ("accepts", "policy", "drafted", "rows", "tokens", "round ms", "tok/s")


@dataclass(frozen=True, slots=True)
class PolicyFigures:
    """One policy at one length of acceptance."""

    policy: BlockSize
    """A block size verified whole, 1 for plain decoding, or ``auto``."""
    acceptance: float
    """Tokens that whole blocks of 16 would yield, on average."""
    context: int
    routing: str
    drafted: float
    """Share of the rounds that had a draft."""
    rows: float
    """Mean rows per pass of the target."""
    tokens: float
    """Mean tokens per round."""
    round_ms: float

    @property
    def tokens_per_second(self) -> float:
        return 1e3 * self.tokens / self.round_ms


def scripted_drafts(mean_length: float, rounds: int, seed: int = 0) -> list[Anchor]:
    """Drafts of whole blocks that yield ``mean_length`` tokens on average, with confidences that tell as much of them
    as the bundled drafter's do, and no more: each is drawn by itself, from those of drafts with the same fate."""
    rng = random.Random(seed)

    def drawn(right: int) -> Anchor:
        fates = (ACCEPTED if place < right else FALLEN if place == right else BEHIND for place in range(drafts))
        return Anchor(tuple(_draw(fate, rng) for fate in fates), right)

    drafts = MAX_BLOCK_SIZE - 1
    return [drawn(right) for right in acceptance_script(mean_length, MAX_BLOCK_SIZE, rounds)]


def _draw(parts: Sequence[float], rng: random.Random) -> float:
    place = rng.random() * (len(parts) - 1)
    low = int(place)
    return parts[low] + (place - low) * (parts[low + 1] - parts[low])


def measure_policies(
    bench: Bench,
    policies: Sequence[BlockSize],
    acceptances: Sequence[float],
    context: int,
    routing: Routing,
    count: int,
) -> list[PolicyFigures]:
    """Every policy at every length of acceptance. Costs are timed first, under the same routing, as at start-up.

    Raises ``ValueError`` without a drafter.
    """
    decoder = bench.decoder
    bench.force(routing, 1)
    costs = time_rounds(decoder, bench.random_ids(MAX_BLOCK_SIZE))
    if costs is None:
        raise ValueError("--policy needs a drafter")
    found = []
    for acceptance in acceptances:
        drafts = scripted_drafts(acceptance, min(count, MAX_SCRIPT))
        decoder.script = [draft.num_right for draft in drafts]
        decoder.script_confidences = [draft.confidences for draft in drafts]
        for policy in policies:
            decoder.auto = Auto(costs) if policy == AUTO else None
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
            found.append(figures)
    decoder.script = decoder.script_confidences = decoder.auto = None
    return found


def policy_table(figures: Sequence[PolicyFigures]) -> str:
    """Figures of one context and routing."""
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
    first = figures[0]
    return f"\npolicies at context {first.context}, {first.routing} routing\n{table(HEADS, rows)}"
