"""What rounds cost here: passes of every width, timed once on the machine that will decode.

The cost of a pass hardly depends on what the caches hold, only on how much: so long contexts are timed on empty
caches with the cursor moved there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from time import perf_counter

import torch

from ..decoder import Decoder
from ..device_rounds import DeviceRounds
from ..width import CostTable, RoundCosts

WIDTHS = (1, 2, 4, 8, 12, 16)
"""Rows timed; what lies between two of them costs evenly more."""
CONTEXTS = (64, 2048, 8192)
REPEATS = 3


@torch.inference_mode()
def time_rounds(decoder: Decoder, text: Sequence[int]) -> CostTable | None:
    """Times the rounds of a decoder on the tokens of ``text``, over and over again if there are fewer than 16.

    None without a drafter, and where the context hasn't even room for one block. The conversation in the caches is
    forgotten.
    """
    contexts = [context for context in CONTEXTS if context + WIDTHS[-1] <= decoder.max_context]
    if decoder.drafter is None or not contexts:
        return None
    rows = (list(text) * WIDTHS[-1])[: WIDTHS[-1]]
    timed = _device_costs if isinstance(decoder.rounds, DeviceRounds) else _host_costs
    costs = tuple(timed(decoder, rows, context) for context in contexts)
    decoder.clear()
    return CostTable(tuple(contexts), costs)


def _device_costs(decoder: Decoder, text: list[int], context: int) -> RoundCosts:
    rounds = decoder.rounds
    assert isinstance(rounds, DeviceRounds)
    passes = {width: _typical(lambda width=width: rounds.time_verify(text, context, width)) for width in WIDTHS}  # type: ignore[misc]
    return RoundCosts(_typical(lambda: rounds.time_draft(text, context)), tuple(_spread(passes)))


def _host_costs(decoder: Decoder, text: list[int], context: int) -> RoundCosts:
    drafter, draft_cache = decoder.drafter, decoder.draft_cache
    assert drafter is not None and draft_cache is not None
    decoder.cache.commit(context)
    draft_cache.commit(context)
    taps = drafter.config.target_layer_ids
    rows = torch.tensor(text, device=decoder.device)

    def verify(width: int) -> None:
        output = decoder.target(rows[:width], context, decoder.cache, taps)
        decoder.target.logits(output.hidden).argmax(dim=-1).tolist()

    def draft() -> None:
        drafter.draft(decoder.target, text[0], drafter.config.block_size, draft_cache).ids.tolist()

    passes = {width: _typical(lambda width=width: _milliseconds(lambda: verify(width))) for width in WIDTHS}  # type: ignore[misc]
    return RoundCosts(_typical(lambda: _milliseconds(draft)), tuple(_spread(passes)))


def _milliseconds(work: Callable[[], None]) -> float:
    started = perf_counter()
    work()
    return (perf_counter() - started) * 1e3


def _typical(time: Callable[[], float]) -> float:
    """The median of a few runs, after one that doesn't count."""
    time()
    return median(time() for _ in range(REPEATS))


def _spread(timed: dict[int, float]) -> list[float]:
    """A cost for every width. Noise must not make a wider pass the cheaper one."""
    spread = [timed[WIDTHS[0]]]
    for low, high in pairwise(WIDTHS):
        start, end = spread[-1], max(timed[high], spread[-1])
        spread += [start + (end - start) * (width - low) / (high - low) for width in range(low + 1, high + 1)]
    return spread
