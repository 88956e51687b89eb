"""Rounds that run on the device by themselves, in Triton's interpreter: they say what the host's rounds say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import cast

import pytest
import torch

from engine.commands import GenerationSettings
from engine.decoding import round_launches as pieces
from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.kernels.round.state import CURSOR, WIDTH
from engine.kernels.toolchain.jit import INTERPRETED
from engine.measured import costs
from tests.engine.decoding.pairs import (
    PROMPT,
    Pair,
    by_host,
    mostly_right,
    of,
    on_device,
    pair,
    spoken,
)
from tests.engine.small_decoders import (
    assert_caches_equal_recomputation,
    run_turn,
    settings,
)

__all__ = ["pair"]

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

DENSE = of("dense")


# --- where an answer ends


@DENSE
def test_a_round_after_the_end_changes_nothing(pair: Pair) -> None:
    device = on_device(pair)
    run_turn(device, PROMPT, settings(max_new_tokens=2, block_size=4))
    launches = cast(DeviceRounds, device.rounds).launches
    assert device.draft_cache is not None
    kept = [
        store for cache in (device.cache, device.draft_cache) for layer in cache.layers for store in (layer.k, layer.v)
    ]
    before = [store.clone() for store in kept]
    cursor = int(launches.state.cursor)
    for piece in (pieces.Proposal(pieces.BLOCK), pieces.Verification(), pieces.Verification(1)):
        launches.of(piece)()
        assert int(launches.state.record[int(WIDTH)]) == 0 or isinstance(piece, pieces.Proposal)
    assert int(launches.state.cursor) == cursor == device.cache.length == int(launches.state.record[int(CURSOR)])
    assert all(torch.equal(now, then) for now, then in zip(kept, before, strict=True))


# --- between rounds


def told(
    device: Decoder, prompt: GenerationSettings, rounds: Iterable[GenerationSettings | None]
) -> Callable[[], GenerationSettings | None]:
    """A poll that says one thing while the prompt runs, and then these, one for each round."""
    coming = iter(rounds)
    return lambda: prompt if device.cache.length < len(PROMPT) else next(coming)


@DENSE
def test_settings_change_between_rounds(pair: Pair) -> None:
    """Block sizes and temperatures take effect at the next round that is enqueued, and no text is lost."""
    wanted = settings(max_new_tokens=12)
    proposal = mostly_right(spoken(pair, wanted), 0.0)
    sizes = iter([16, 2, 2, 3, 5, 2, 4] + [3] * 20)
    used: list[int] = []

    def poll() -> GenerationSettings:
        used.append(next(sizes))
        return replace(wanted, block_size=used[-1])

    answer = run_turn(on_device(pair, proposal), PROMPT, poll)
    assert answer.ids == spoken(pair, wanted)[len(PROMPT) :]
    widths = [(done.verify_width, done.settings.block_size) for done in answer.rounds[1:-1]]
    assert len(set(widths)) > 2 and all(width == size for width, size in widths)

    hot = replace(wanted, temperature=1.5, seed=9, speculation=False, max_new_tokens=6)
    cool, device = replace(hot, temperature=0.0), on_device(pair)
    answer = run_turn(device, PROMPT, told(device, cool, [cool] + [hot] * 20))
    assert [done.settings.temperature for done in answer.rounds] == [0.0] * 2 + [1.5] * 4
    cold = spoken(pair, cool)[len(PROMPT) :]
    assert answer.ids[:2] == cold[:2] and answer.ids[2:] != cold[2:]


# --- for measuring


@DENSE
def test_costs_are_timed_on_the_device_and_leave_nothing_behind(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "CONTEXTS", (20,))
    monkeypatch.setattr(costs, "WIDTHS", (1, 16))
    monkeypatch.setattr(costs, "REPEATS", 1)
    wanted = settings(max_new_tokens=3, block_size=4)
    device = on_device(pair)
    table = costs.time_rounds(device, PROMPT)
    assert table is not None and len(table.costs[0].verify) == 16 and table.costs[0].draft + table.costs[0].step > 0
    assert cast(DeviceRounds, device.rounds).launches.drafting().tree
    assert run_turn(device, PROMPT, wanted).ids == run_turn(by_host(pair), PROMPT, wanted).ids
    assert_caches_equal_recomputation(device)
