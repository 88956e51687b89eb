"""What a round is taken to cost, on a machine that others use too."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

from engine.decoding.decoder import Decoder
from engine.loading.checkpoint import load_drafter, load_target
from engine.measured.costs import REPEATS, quickest, time_rounds
from tests.engine.conftest import CPU, no_progress


def test_costs_are_timed_for_every_width_and_grow(bundled_pair: Path) -> None:
    target = load_target(bundled_pair / "target", CPU, no_progress)
    decoder = Decoder(target, load_drafter(bundled_pair / "drafter", target, no_progress), 2048)
    table = time_rounds(decoder, list(range(20, 40)))
    assert table is not None and table.contexts[0] == 128
    for costs in table.costs:
        assert len(costs.verify) in (16, 64) and costs.draft + costs.step > 0 and costs.plain > 0 and costs.ingest > 0
        assert list(costs.verify) == sorted(costs.verify)
    assert decoder.cache.length == 0 and decoder.prefix.tokens == []
    # A target alone has costs of its passes: what is looked up in the text is verified as well.
    alone = time_rounds(Decoder(target, None, 256), [5])
    assert alone is not None and alone.costs[0].draft == 0 < alone.costs[0].verify[0]


def test_a_busy_moment_makes_nothing_dear() -> None:
    """A load that lasts for half a turn slows whatever is timed then, and the first runs are slow by themselves."""
    calls, num_works = count(), 8

    def timer(milliseconds: float) -> Callable[[], float]:
        def time() -> float:
            call = next(calls)
            first, busy = call < num_works, (num_works + 2) <= call < (num_works + 6)
            return milliseconds * (3 if first or busy else 1)

        return time

    works = [timer(1.0 + number) for number in range(num_works)]
    assert quickest(works) == [1.0 + number for number in range(num_works)]
    assert next(calls) == num_works * (REPEATS + 1)
