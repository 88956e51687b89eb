"""The target's pass over a prompt's pieces against its modules, in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import pytest
import torch

from engine.kernels.toolchain.jit import INTERPRETED
from engine.kv_cache.cache import Cache
from engine.models.gemma4.modules import Gemma4
from engine.models.gemma4.prefill_pass import PrefillPass
from engine.models.target import TargetOutput
from tests.engine.small_decoders import prompt_ids
from tests.kernels.test_decode_pass import ALL, MOE, target

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

CPU = torch.device("cpu")
SLACK = 16
"""The window is 24, so rings hold 39 positions."""
__all__ = ["target"]


def cache_of(target: Gemma4) -> Cache:
    return Cache(target.config.layers, 128, SLACK, target.embed_tokens.weight.dtype, CPU)


def read(target: Gemma4, pieces: Sequence[int], fused: bool, taps: Sequence[int]) -> tuple[list[TargetOutput], Cache]:
    """What each piece of a prompt yields, and the cache behind them."""
    cache, outputs, start = cache_of(target), [], 0
    run = PrefillPass(target, cache) if fused else target
    ids = torch.tensor(prompt_ids(sum(pieces)))
    for size in pieces:
        outputs.append(run(ids[start : start + size], start, cache, taps))
        start += size
        cache.commit(start)
    return outputs, cache


@ALL
@torch.inference_mode()
@pytest.mark.parametrize(
    ("pieces", "taps"),
    [
        pytest.param((3, 30, 20, 41), (0,), id="rows that fit a ring, that stand around its end, more than it holds"),
        pytest.param((4, 1), (1, 0), id="every layer tapped"),
        pytest.param((2,), (), id="none tapped"),
    ],
)
def test_equals_the_modules(target: Gemma4, pieces: tuple[int, ...], taps: tuple[int, ...]) -> None:
    (expected, their_cache), (actual, our_cache) = (read(target, pieces, fused, taps) for fused in (False, True))
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.hidden.shape == (1, target.config.hidden_size)
        torch.testing.assert_close(ours.hidden[0], theirs.hidden[-1], atol=1e-4, rtol=0)
        assert (ours.features is None) == (not taps)
        if ours.features is not None and theirs.features is not None:
            torch.testing.assert_close(ours.features, theirs.features, atol=1e-4, rtol=0)
    for one, other in zip(our_cache.layers, their_cache.layers, strict=True):
        torch.testing.assert_close(one.k, other.k, atol=1e-4, rtol=0)
        torch.testing.assert_close(one.v, other.v, atol=1e-4, rtol=0)


@ALL
@torch.inference_mode()
def test_who_taps_the_last_layer_changes_no_bit(target: Gemma4) -> None:
    """Or an answer's first token would depend on whether a drafter listens."""
    outputs = [read(target, (30, 41), True, taps)[0][-1] for taps in ((), (0,), (1,))]
    for output in outputs[1:]:
        assert torch.equal(output.hidden, outputs[0].hidden)


@MOE
@torch.inference_mode()
def test_bf16_is_no_worse_than_the_modules(target: Gemma4) -> None:
    """Both round their activations to bf16; the modules more often. Routing is forced: near ties flip with rounding."""
    rounded = with_forced_routing(target).to(torch.bfloat16)
    exact = deepcopy(rounded).float()
    found = (
        read(each, (40,), fused, (0, 1))[0][0].features
        for each, fused in ((exact, False), (rounded, False), (rounded, True))
    )
    expected, *others = (each.float() for each in found if each is not None)
    by_modules, by_kernels = ((each - expected).norm() for each in others)
    assert 0 < by_kernels <= 1.05 * by_modules


@MOE
@torch.inference_mode()
def test_routing_can_be_forced(target: Gemma4) -> None:
    """For measuring, with fewer rows of scores than the prompt has."""
    forced = with_forced_routing(target)
    for taps in ((), (0, 1)):  # the last layer runs one row, or all
        expected, actual = (read(forced, (20,), fused, taps)[0][0].hidden[-1] for fused in (False, True))
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=0)
    assert not torch.allclose(actual, read(target, (20,), True, ())[0][0].hidden[-1], atol=1e-2)


def with_forced_routing(target: Gemma4) -> Gemma4:
    """A copy whose routers are told their scores, of eight rows over and over."""
    forced = deepcopy(target)
    for number, layer in enumerate(forced.layers):
        layer.router.forced = torch.randn(8, 16, generator=torch.Generator().manual_seed(number))
    return forced
