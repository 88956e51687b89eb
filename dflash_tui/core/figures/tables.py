"""What the gauges show, as facts and as tables in people's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.events import Clock
from engine.rounds.statistics import MAX_DRAFT

from ..text.counted import counted
from .labels import AS_FAST, CHECKING, COST, GUESSING, KEPT, REST, RIGHT_SO_FAR, TOKENS_PER_ROUND
from .pass_costs import PassCost, pass_table
from .statistics import NOT_KNOWN, TurnSnapshot
from .table import Table


@dataclass(frozen=True, slots=True)
class GaugeFacts:
    """Everything the gauges draw: a moment of a turn, and what surrounds it."""

    turn: TurnSnapshot = field(default_factory=TurnSnapshot)
    max_context: int = 0
    speculation: bool = True
    times: Clock = "engine"
    """Whose clock took the rounds' times."""
    num_prompt_tokens: int = 0
    num_reused_tokens: int = 0
    floor_ms: float | None = None
    """What the memory takes for a token without speculation, at the least; None where that isn't known."""
    pass_ms: tuple[float, ...] = ()
    """What passes of the target took when the pair was loaded, as ``EngineReady`` tells it."""
    rows: int = 0
    """Rows of the target's pass in the round on show; 0 before the first."""


BEYOND_MEMORY = "times what memory allows without speculation"
"""Without it each token takes a pass, and no pass takes less than reading the weights once."""


def beyond_memory(facts: GaugeFacts) -> float | None:
    """How many times as many tokens came as the memory allows without speculation; None where that isn't known."""
    if facts.floor_ms is None or not facts.turn.rate.mean:
        return None
    return facts.turn.rate.mean * facts.floor_ms / 1e3


def against_memory(facts: GaugeFacts) -> tuple[str, ...]:
    """The same in words, from more to fewer; none where that isn't known."""
    beyond = beyond_memory(facts)
    times = "" if beyond is None else f"answer: {beyond:.{1 if beyond >= 1 else 2}f} {BEYOND_MEMORY}"
    return (times, times.removesuffix(" without speculation")) if times else ()


def tables(facts: GaugeFacts, costs: Sequence[PassCost] = (), drawn: bool = True) -> tuple[Table, ...]:
    """The tables behind the gauges, those left out that have nothing to say. ``costs``: what passes of the target took;
    ``drawn``: whether somebody sees bars."""
    made = (
        _speed(facts),
        _acceptance(facts),
        _histogram(facts),
        _positions(facts),
        _cost(facts),
        pass_table(costs, facts.rows, drawn),
        _context(facts),
    )
    return tuple(table for table in made if table.rows)


CLOCK_NOTES: dict[Clock, str] = {
    "engine": "",
    "server": "What a round took is by the server's own clock, everything else by when tokens arrived here.",
    "arrival": "Times are those at which tokens arrived here: the way from the server is part of them.",
}


def _speed(facts: GaugeFacts) -> Table:
    turn = facts.turn
    rows = [
        ("tokens written", f"{turn.num_tokens:,}"),
        ("tokens per second, whole answer", f"{turn.rate.mean:.1f}"),
        ("tokens per second, last second", f"{turn.rate.now:.1f}"),
        ("tokens per second, best second", f"{turn.rate.peak:.1f}"),
    ]
    if turn.ttft_ms is not None:
        rows.append(("time to the first token", f"{turn.ttft_ms:.1f} ms"))
    factor = turn.speed_up
    if factor is not None and turn.alone_ms:
        about = "about " * factor.about
        rows.append(("tokens per second, target alone", f"{about}{1e3 / turn.alone_ms:.1f}"))
        rows.append((f"times {AS_FAST}", f"{factor.as_text(2)}×"))
    beyond = beyond_memory(facts)
    rows.append((BEYOND_MEMORY, NOT_KNOWN if beyond is None else f"{beyond:.2f}×"))
    return Table("speed", "Speed", tuple(rows), note=CLOCK_NOTES[facts.times] or (HOW_FAST if factor else ""))


HOW_FAST = (
    "Both are counted with what passes cost while the answer was written: a pass over one row, taken now and then "
    "beside a round, is a token of the target alone."
)


def _acceptance(facts: GaugeFacts) -> Table:
    acceptance, totals = facts.turn.acceptance, facts.turn.totals
    figures = acceptance if totals is None else totals
    rounds, drafted, accepted = figures.num_spec_steps, figures.num_draft_tokens, figures.num_accepted_draft_tokens
    if totals is None and not rounds:
        return Table("acceptance", "Acceptance", ())
    rows = (
        ("rounds with a draft", f"{rounds:,}" if rounds else NOT_KNOWN),
        ("drafted tokens that were checked", f"{drafted:,}"),
        ("of these accepted", f"{accepted:,} ({accepted / max(drafted, 1):.0%})"),
        *((f"of the accepted guessed by {name}", f"{share:.0%}") for name, share in acceptance.shares),
        (TOKENS_PER_ROUND.name, f"{facts.turn.tokens_per_round:.2f}" if rounds else NOT_KNOWN),
    )
    note = "Totals of the whole answer, as the server counted them."
    if totals is None:
        note = f"{TOKENS_PER_ROUND.explained.capitalize()}. The share of accepted drafts falls with the block size by "
        note += "itself; compare block sizes by tokens per second."
    return Table("acceptance", "Acceptance", rows, note=note)


def _histogram(facts: GaugeFacts) -> Table:
    rounds = facts.turn.acceptance.num_spec_steps
    counts = enumerate(facts.turn.acceptance.histogram)
    # Wide rounds may keep any number up to 63, and most of them never do.
    filled = [(accepted, count) for accepted, count in counts if count or accepted <= MAX_DRAFT]
    rows = tuple((str(accepted), f"{count:,}", f"{count / rounds:.1%}") for accepted, count in filled if rounds)
    return Table("histogram", KEPT.name.capitalize(), rows, ("accepted drafts", "rounds", "share"))


def _positions(facts: GaugeFacts) -> Table:
    rows = []
    for index, position in enumerate(facts.turn.acceptance.positions, 1):
        if position.rate is not None:
            rows.append((str(index), f"{position.reached:,}", f"{position.rate:.1%}"))
    return Table(
        "positions",
        RIGHT_SO_FAR.name.capitalize(),
        tuple(rows),
        ("place", "rounds that got there", "right"),
        f"{RIGHT_SO_FAR.says.capitalize()}. A round gets to a place when every guess before it was right.",
    )


def _cost(facts: GaugeFacts) -> Table:
    cost, note = facts.turn.cost, ""
    rows: list[tuple[str, ...]] = []
    if cost.rounds:
        total = sum(cost.parts or (cost.mean_ms,)) or 1.0
        if cost.parts is None:
            rows, note = [(f"{GUESSING.name}, {CHECKING.name}", NOT_KNOWN, "")], CLOCK_NOTES[facts.times]
        for label, share in zip((GUESSING, CHECKING, REST), cost.parts or (), strict=False):
            rows.append((label.name, f"{share:.2f} ms", f"{share / total:.0%}"))
        rows.append(("a round", f"{total:.2f} ms", f"mean of {counted(cost.rounds, 'round')}"))
    return Table("cost", COST.name.replace("ms", "Milliseconds", 1), tuple(rows), note=note)


def _context(facts: GaugeFacts) -> Table:
    used, most = facts.turn.context_length, facts.max_context
    if not most:
        return Table("context", "Context", ())
    rows = [
        ("used", f"{used:,} of {most:,} tokens ({used / most:.0%})" if used else NOT_KNOWN),
        ("the question and what stood before it", counted(facts.num_prompt_tokens, "token")),
    ]
    if facts.num_reused_tokens:
        rows.append(("of these still in the caches", counted(facts.num_reused_tokens, "token")))
    return Table("context", "Context", tuple(rows))
