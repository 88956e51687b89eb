"""Measures what rounds cost on this machine: passes of every width, timed once. Costs depend on how much the caches
hold, not on what, so long contexts are timed on empty caches with the cursor moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from time import perf_counter

import torch

from ..decoding.cuda_graphs import Launch, Stopwatch
from ..decoding.decoder import Decoder
from ..decoding.device_rounds import DeviceRounds
from ..decoding.round_launches import Ingestion, Proposal, RoundLaunches, RoundPiece, Verification
from ..kernels.toolchain.jit import MAX_ROWS
from ..speculation.costs import CostTable, RoundCosts
from ..speculation.trees import ROWS, WIDE_ROWS, best_first, in_rows

WIDTHS = (1, 2, 4, 8, 12, ROWS)
"""Widths, in rows, that are timed; those between two of them are interpolated. Wide passes are timed at the first
context only."""
CONTEXTS = (128, 2048, 32_768)
"""Context lengths that are timed. The windows of sliding layers are full at the second; from there on costs grow
linearly."""
CHEAP = 1.7
"""A pass of 16 rows that takes less than this times one of 8 leaves something to gain from more rows; otherwise they
gain a seventh at most."""
REPEATS = 3
SECONDS = 1.0
"""Seconds that timing may take. Beyond the contexts for which there was time, rounds are taken to cost as much as
there."""
TYPICAL = 8
"""Tokens that the drafter takes in before it drafts, in rounds that are timed."""


@torch.inference_mode()
def time_rounds(decoder: Decoder, text: Sequence[int]) -> CostTable | None:
    """Times rounds on the tokens of ``text``, repeated up to 16 or to the rows of a wide pass (similar tokens choose
    the same experts and seem cheap). None without room for a block. Forgets the conversation in the caches."""
    widths = (*WIDTHS, *_wide(decoder, text))
    longest = decoder.max_context - widths[-1] - 1
    if longest < ROWS:
        return None
    contexts = sorted({min(context, longest) for context in CONTEXTS})
    rows = _repeated(text, widths[-1])
    timed = _device_costs if isinstance(decoder.rounds, DeviceRounds) else _host_costs
    started, costs = perf_counter(), [timed(decoder, rows, contexts[0], widths)]
    for context in contexts[1:]:
        if (perf_counter() - started) * (len(costs) + 1) / len(costs) > SECONDS:
            break
        costs.append(_widened(timed(decoder, rows, context, WIDTHS), costs[0]))
    decoder.clear()
    return CostTable(tuple(contexts[: len(costs)]), tuple(costs))


def timed_passes(table: CostTable) -> tuple[float, ...]:
    """Milliseconds of the target's pass by its rows, at the first context, as ``EngineReady.pass_ms`` tells them."""
    verify = enumerate(table.costs[0].verify, 1)
    return tuple(round(cost, 3) if rows in (*WIDTHS, *WIDE_ROWS) else 0.0 for rows, cost in verify)


def _widened(costs: RoundCosts, first: RoundCosts) -> RoundCosts:
    """Adds the costs of wide passes, which were timed at the ``first`` context only: a row of theirs is taken to cost
    as much more here as a row of a pass of sixteen does."""
    more = max(costs.verify[-1] - first.verify[ROWS - 1], 0.0) / ROWS
    further = [timed + more * rows for rows, timed in enumerate(first.verify[ROWS:], ROWS + 1)]
    return replace(costs, verify=(*costs.verify, *further))


def _wide(decoder: Decoder, text: Sequence[int]) -> list[int]:
    """Row counts of wide passes that are worth timing, where they fit: those that the device has; on the host, those
    whose further rows cost little."""
    fitting = [rows for rows in WIDE_ROWS if 2 * rows < decoder.max_context]
    if isinstance(decoder.rounds, DeviceRounds):
        return [rows for rows in fitting if rows <= decoder.rounds.launches.widest]
    if not fitting:
        return []
    decoder.cache.set_length_for_timing(0)
    half, whole = (torch.tensor(_repeated(text, rows), device=decoder.device) for rows in (ROWS // 2, ROWS))
    passes = [partial(_milliseconds, partial(decoder.target, rows, 0, decoder.cache, ())) for rows in (half, whole)]
    half_ms, whole_ms = quickest(passes)
    return fitting if whole_ms < CHEAP * half_ms else []


def _repeated(text: Sequence[int], rows: int) -> list[int]:
    return (list(text) * rows)[:rows]


def _device_costs(decoder: Decoder, text: list[int], context: int, widths: Sequence[int]) -> RoundCosts:
    rounds = decoder.rounds
    assert isinstance(rounds, DeviceRounds)
    timer, launches = RoundTimer(rounds.launches), rounds.launches
    verify = Verification(tree=decoder.drafter is not None and launches.tree is not None)
    passes = [
        partial(timer.time, Verification(1), text, context),
        *(partial(timer.time, verify, text, context, width) for width in WIDTHS[1:]),
        *(partial(timer.time_wide, text, context, rows) for rows in widths[len(WIDTHS) :]),
    ]
    if decoder.drafter is None:
        lookup, *took = quickest(
            [partial(timer.time, Proposal(lookup=MAX_ROWS, ingests=False), text, context), *passes]
        )
        return _round_costs((), [0.0, lookup, *took], widths)
    counts = _ends(launches.counts)
    drafts = [
        *(partial(timer.time, launches.drafting(count), text, context, pending=TYPICAL) for count in counts),
        partial(timer.time, Proposal(), text, context, pending=MAX_ROWS),
        partial(timer.time, Proposal(lookup=MAX_ROWS), text, context, pending=MAX_ROWS),
    ]
    return _round_costs(counts, quickest([*drafts, *passes]), widths, decoder.drafter.sequential)


def _host_costs(decoder: Decoder, text: list[int], context: int, widths: Sequence[int]) -> RoundCosts:
    drafter, draft_cache = decoder.drafter, decoder.draft_cache
    decoder.cache.set_length_for_timing(context)
    taps = () if drafter is None else drafter.config.target_layer_ids
    rows = torch.tensor(text, device=decoder.device)
    features = decoder.target(rows, context, decoder.cache, taps).features

    def verify(width: int) -> None:
        output = decoder.target(rows[:width], context, decoder.cache, taps)
        decoder.target.logits(output.hidden).argmax(dim=-1).tolist()

    passes = [partial(_milliseconds, partial(verify, width)) for width in widths]
    if drafter is None or draft_cache is None or features is None:
        return _round_costs((), [0.0, 0.0, *quickest(passes)], widths)

    def ingest(count: int) -> None:
        draft_cache.set_length_for_timing(context - count)
        drafter.ingest(features[:count], draft_cache)

    def draft(count: int) -> None:
        ingest(TYPICAL)
        drafter.draft(decoder.target, text[0], count + 1, draft_cache).ids.tolist()

    counts = _ends(range(1, drafter.config.block_size))
    drafts = [partial(_milliseconds, partial(draft, count)) for count in counts]
    ingest_ms, *took = quickest([partial(_milliseconds, partial(ingest, MAX_ROWS)), *drafts, *passes])
    # Looking up takes next to nothing itself, but the drafter takes accepted rows in first.
    told_twice = [*took[: len(counts)], ingest_ms, ingest_ms, *took[len(counts) :]]
    return _round_costs(counts, told_twice, widths, drafter.sequential)


def _ends(counts: Sequence[int]) -> list[int]:
    """The smallest and the largest of ``counts``: between two draft lengths costs are interpolated."""
    return sorted({counts[0], counts[-1]})


def _round_costs(
    counts: Sequence[int], took: Sequence[float], widths: Sequence[int], one_by_one: bool = False
) -> RoundCosts:
    """Costs from milliseconds, in this order: a draft of each of ``counts`` (two at most), taking in 16 tokens, looking
    up, and a pass of each of ``widths``."""
    drafts, (ingest, lookup, *passes) = took[: len(counts)], took[len(counts) :]
    step = max(drafts[-1] - drafts[0], 0.0) / (counts[-1] - counts[0]) if len(counts) > 1 else 0.0
    draft = max(drafts[0] - step * counts[0], 0.0) if counts else 0.0
    verify = every_width(dict(zip(widths, passes, strict=True)))
    return RoundCosts(draft, verify, ingest / MAX_ROWS, lookup, step, one_by_one)


def _milliseconds(work: Callable[[], None]) -> float:
    started = perf_counter()
    work()
    return (perf_counter() - started) * 1e3


def quickest(times: Sequence[Callable[[], float]]) -> list[float]:
    """The least time of each over ``REPEATS`` turns, after a warm-up: other work can only make a run slower."""
    turns = [[time() for time in times] for _ in range(REPEATS + 1)]
    return [min(took) for took in zip(*turns[1:], strict=True)]


def every_width(timed: Mapping[int, float]) -> tuple[float, ...]:
    """A cost for every width from those timed, of which 1 is one. A wider pass is never the cheaper one, which would be
    noise."""
    widths = sorted(timed)
    spread = [timed[widths[0]]]
    for low, high in pairwise(widths):
        start, end = spread[-1], max(timed[high], spread[-1])
        spread += [start + (end - start) * (width - low) / (high - low) for width in range(low + 1, high + 1)]
    return tuple(spread)


TYPICAL_CHANCES = ((0.6, 0.15, 0.08, 0.05),) * (MAX_ROWS - 1)
"""Chances of a drafter's choices on texts where a tree pays: trees grown of them are timed."""


class RoundTimer:
    """Times the pieces of rounds. The conversation in the caches is forgotten."""

    def __init__(self, launches: RoundLaunches):
        self.launches = launches
        self._stopwatch = Stopwatch(launches.device, 2)

    def time(self, piece: RoundPiece, text: Sequence[int], context: int, width: int = 1, pending: int = 0) -> float:
        """Milliseconds of a piece of a greedy round behind ``context`` positions: verify the first ``width`` of 16
        tokens, or a typical tree, or ingest ``pending`` rows and draft."""
        launch = self.launches.of(piece)
        self.launches.set_up_timed_round(text, context, width, pending)
        if self.launches.tree is not None:
            self.launches.tree.set_tree(in_rows(best_first(TYPICAL_CHANCES, width)))
        return self.milliseconds(launch)

    def time_wide(self, text: Sequence[int], context: int, rows: int) -> float:
        """Milliseconds of a wide pass over ``rows`` tokens, all accepted, which the drafter takes in."""
        verify = self.launches.of(Verification(rows))
        tell = None if self.launches.drafter is None else self.launches.of(Ingestion(rows))
        self.launches.set_up_timed_round(text, context, rows, 0)

        def launch() -> None:
            verify()
            if tell is not None:
                tell()

        return self.milliseconds(launch)

    def milliseconds(self, launch: Launch) -> float:
        """Milliseconds of one run of a captured launch on the state that was posed."""
        done = self.launches.state.done
        done.zero_()
        self._stopwatch.mark(0)
        launch()
        self._stopwatch.mark(1)
        self._stopwatch.wait()
        done.fill_(1)
        return self._stopwatch.milliseconds(0, 1)
