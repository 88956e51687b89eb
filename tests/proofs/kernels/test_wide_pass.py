"""The target's pass of 32 and 64 rows, in Triton's interpreter: the bits of passes of sixteen."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from engine.commands import WeightFormat
from engine.kernels.decode.tiling.tiles import TargetTiles
from engine.kernels.toolchain.jit import INTERPRETED, MAX_ROWS
from engine.kv_cache.cache import Cache
from engine.models.gemma4.decode_pass import Gemma4DecodePass
from engine.models.gemma4.modules import Gemma4
from engine.models.gemma4.wide_pass import Gemma4WidePass
from support.shapes import random_pair, read_shape
from tests.engine.small_decoders import prompt_ids
from tests.kernels.tensors import CPU
from tests.proofs.kernels.test_passes import PROMPT, TILES, of, target

__all__ = ["target"]

pytestmark = [
    pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)"),
    pytest.mark.usefixtures("only_live_rows", "ordered_sums"),
]

TAPS = (0, 1)


@of("Gemma 26B-A4B")
@torch.inference_mode()
def test_rows_have_the_bits_of_passes_of_sixteen(target: Gemma4) -> None:
    """Full tiles, those with some rows, with one and with none."""
    same_bits(deepcopy(target).to(torch.bfloat16), TILES, 4, (33, 5))


@torch.inference_mode()
@pytest.mark.parametrize("weights", ["fp8", "int4"])
def test_so_they_have_by_packed_weights(weights: WeightFormat) -> None:
    target = random_pair(read_shape("tiny"), CPU, weights=weights)[0]
    assert isinstance(target, Gemma4)
    target.layers, target.config = target.layers[4:6], replace(target.config, layers=target.config.layers[4:6])
    same_bits(target, None, 2, (20,))


def same_bits(target: Gemma4, tiles: TargetTiles | None, num_tiles: int, counts: Sequence[int]) -> None:
    """Logits, features, keys and values, which rings hold behind their ends, too."""
    caches = [Cache(target.config.layers, 128, num_tiles * MAX_ROWS, torch.bfloat16, CPU) for _ in range(2)]
    cursors = [torch.full((1,), PROMPT, dtype=torch.int32) for _ in range(2)]
    rows = [torch.zeros(1, dtype=torch.int32) for _ in range(2)]
    wide = Gemma4WidePass(target, caches[0], cursors[0], rows[0], TAPS, tiles)
    narrow = Gemma4DecodePass(target, caches[1], cursors[1], rows[1], TAPS, tiles)
    for cache in caches:
        target(torch.tensor(prompt_ids(PROMPT)), 0, cache, TAPS)
    for count in counts:
        ids = torch.tensor(prompt_ids(count, seed=count))
        wide.ids[:count] = ids
        rows[0].fill_(count)
        wide.forward(num_tiles * MAX_ROWS)
        for first in range(0, count, MAX_ROWS):
            part = ids[first : first + MAX_ROWS]
            narrow.ids[: len(part)] = part
            rows[1].fill_(len(part))
            cursors[1].fill_(PROMPT + first)
            narrow.forward()
            here = slice(first, first + len(part))
            assert wide.out.logits is not None and narrow.out.logits is not None
            assert torch.equal(wide.out.logits[here], narrow.out.logits[: len(part)])
            assert torch.equal(wide.out.token[here], narrow.out.token[: len(part)])
            assert torch.equal(wide.features[here], narrow.features[: len(part)])
    for one, other in zip(caches[0].attention, caches[1].attention, strict=True):
        assert torch.equal(one.k, other.k) and torch.equal(one.v, other.v)
