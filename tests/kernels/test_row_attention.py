"""Attention of up to 16 rows over a cache with its cursor on the device, in Triton's interpreter."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.config import AttentionConfig, RopeConfig
from engine.kernels import row_attention
from engine.kernels.rope import HeadNorms, inverse_frequencies, norm_rope_store, norm_rope_store_reference
from engine.kernels.row_attention import (
    AttendScratch,
    AttendTiles,
    attend_rows,
    attend_rows_reference,
    attend_tiles,
    num_splits,
    split_start,
    tile_rows,
)
from tests.kernels.ordered_sums import sum_in_order

CPU = torch.device("cpu")
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2}
FP32_AND_BF16 = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])


def layer(heads: int, kv_heads: int, head_dim: int, window: int | None, **changes: Any) -> AttentionConfig:
    kind: Any = "full_attention" if window is None else "sliding_attention"
    return AttentionConfig(
        kind, heads, kv_heads, head_dim, RopeConfig(1e4, head_dim), head_dim**-0.5, window, **changes
    )


LAYERS = {
    "sliding": layer(2, 1, 256, 40),
    "full": layer(4, 1, 512, None, value_is_key=True),
    "8 heads a key": layer(8, 1, 32, None),
    "drafter sliding": layer(2, 1, 128, 50),
    "drafter full": layer(2, 1, 128, None, causal=False),
    "both ways in a window": layer(4, 2, 16, 24, causal=False),
    "every head its own keys": layer(3, 3, 16, 21),
}
SMALL = AttendTiles(split=32, keys=16, rows=32, warps=4, stages=2)


@dataclass
class Case:
    """A layer with a filled cache, and 16 rows behind it."""

    config: AttentionConfig
    k: Tensor
    v: Tensor
    q: Tensor

    def attend(
        self,
        cursor: int,
        rows: int,
        tiles: AttendTiles | None = None,
        q: Tensor | None = None,
        max_rows: int = 16,
        launches: int = 1,
    ) -> Tensor:
        out = torch.full((16, self.config.num_heads * self.config.head_dim), 7.0, dtype=self.q.dtype)
        scratch = AttendScratch([self.config], [self.k.shape[1]], CPU, tiles)
        for part in (scratch.highest, scratch.total, scratch.mixed):
            part.fill_(float("nan"))
        q = self.q if q is None else q
        for _ in range(launches):
            attend_rows(q, self.k, self.v, *at(cursor, rows), self.config, out, scratch, tiles, max_rows)
        return out

    def reference(self, cursor: int, rows: int) -> Tensor:
        out = torch.full((16, self.config.num_heads * self.config.head_dim), 7.0, dtype=self.q.dtype)
        attend_rows_reference(self.q, self.k, self.v, *at(cursor, rows), self.config, out)
        return out


def at(cursor: int, rows: int) -> tuple[Tensor, Tensor]:
    return torch.tensor([cursor], dtype=torch.int32), torch.tensor([rows], dtype=torch.int32)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def make(config: AttentionConfig, capacity: int, dtype: torch.dtype = torch.float32) -> Case:
    shape = (config.num_kv_heads, capacity, config.head_dim)
    k, v, q = noise(*shape, seed=1), noise(*shape, seed=2), noise(16, config.num_heads, config.head_dim, seed=3)
    return Case(config, k.to(dtype), v.to(dtype), q.to(dtype))


def capacity_of(config: AttentionConfig) -> int:
    return 150 if config.window is None else config.window - 1 + 16


@FP32_AND_BF16
@pytest.mark.parametrize("name", LAYERS)
def test_rows_attend_as_the_reference_does(name: str, dtype: torch.dtype) -> None:
    """At the start, in the middle, and where rings wrap; rows beyond the count are left as they are."""
    config = LAYERS[name]
    case = make(config, capacity_of(config), dtype)
    for cursor, rows in [(31, 3), (134, 16)]:
        actual = case.attend(cursor, rows, SMALL)
        tolerance = TOLERANCE[dtype]
        torch.testing.assert_close(actual, case.reference(cursor, rows), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", ["full", "sliding", "drafter sliding"])
def test_the_tiles_in_use_give_the_same(name: str) -> None:
    case = make(LAYERS[name], 400 if LAYERS[name].window is None else capacity_of(LAYERS[name]))
    torch.testing.assert_close(case.attend(300, 9), case.reference(300, 9), atol=1e-5, rtol=1e-5)


@FP32_AND_BF16
@pytest.mark.parametrize("name", ["sliding", "8 heads a key", "every head its own keys"])
def test_a_row_has_the_same_bits_at_every_width(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row r of a block, and the only row of a pass at its position: no bit differs, also across splits and rings."""
    sum_in_order(monkeypatch)
    config = LAYERS[name]
    case = make(config, capacity_of(config), dtype)
    for cursor in (20, 121):
        block = case.attend(cursor, 16, SMALL)
        for row in (1, 15):
            alone = torch.roll(case.q, -row, 0)
            for max_rows in (1, 16):
                actual = case.attend(cursor + row, 1, SMALL, alone, max_rows)
                assert torch.equal(actual[0], block[row]), (cursor, row, max_rows)
        assert torch.equal(case.attend(cursor, 6, SMALL)[:6], block[:6])


def test_narrow_launches_take_narrow_tiles() -> None:
    """Where a group is large; the bits stay, as the test above says of such a layer."""
    assert tile_rows(SMALL, 1, 8) == 16 and tile_rows(SMALL, 3, 8) == 32 and tile_rows(SMALL, 16, 8) == 32
    assert tile_rows(SMALL, 16, 1) == 16 and tile_rows(SMALL, 1, 3) == 16


@pytest.mark.parametrize("programs", [1, 3])
def test_a_program_may_take_several_splits(programs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = make(LAYERS["8 heads a key"], 150)
    expected = case.attend(134, 5, SMALL)
    # One key head, and two tiles of rows.
    monkeypatch.setattr(row_attention, "FULL_PROGRAMS", {128: 4 * programs})
    assert torch.equal(case.attend(134, 5, SMALL), expected)


def test_one_launch_after_another_finds_the_scratch_as_it_should_be() -> None:
    """Programs that count each other leave nothing to the next launch."""
    case = make(LAYERS["both ways in a window"], 39)
    assert torch.equal(case.attend(60, 9, SMALL, launches=3), case.attend(60, 9, SMALL))


def test_splits_grow_where_they_lie_far_behind(ordered_sums: None) -> None:
    """Beyond 64 of them; a context that reaches there attends as any other, in blocks and row by row."""
    small = replace(SMALL, split=16)
    case = make(layer(2, 1, 16, None), 1400)
    torch.testing.assert_close(case.attend(1360, 16, small), case.reference(1360, 16), atol=1e-5, rtol=1e-5)
    alone = case.attend(1375, 1, small, torch.roll(case.q, -15, 0), max_rows=1)[0]
    assert torch.equal(alone, case.attend(1360, 16, small)[15])


def test_nothing_runs_without_rows() -> None:
    case = make(LAYERS["drafter sliding"], 65)
    assert (case.attend(40, 0) == 7.0).all()


def test_what_lies_past_the_block_does_not_count() -> None:
    """Refused rows stay in the cache behind the cursor, and fresh caches hold anything, even what is no number."""
    for name in ("8 heads a key", "sliding"):
        case = make(LAYERS[name], 150 if LAYERS[name].window is None else 55)
        expected = case.attend(33, 4, SMALL)
        case.k[:, 37:], case.v[:, 37:] = float("nan"), float("nan")
        assert torch.equal(case.attend(33, 4, SMALL), expected)


def test_splits_cover_every_position_once_and_none_is_long() -> None:
    starts = [split_start(split, 32) for split in range(400)]
    assert starts[:3] == [0, 32, 64] and starts[64:67] == [2048, 2112, 2176] and starts[96] == 4096
    for start, following in pairwise(starts):
        assert 32 <= following - start <= max(32, start // 32)


def test_the_number_of_splits_follows_the_capacity() -> None:
    full = attend_tiles(LAYERS["full"], 32_768)
    assert full == attend_tiles(LAYERS["full"], 262_144)
    for capacity in (1, 2048, 2049, 32_768, 262_144):
        count = num_splits(full, capacity, None)
        assert split_start(count, full.split) >= capacity > split_start(count - 1, full.split)


def test_a_split_goes_round_a_ring_at_most_once() -> None:
    assert attend_tiles(LAYERS["sliding"], 40).split == attend_tiles(LAYERS["sliding"], 40).keys == 32
    assert attend_tiles(LAYERS["sliding"], 1279) == attend_tiles(LAYERS["sliding"], 10**6)


# --- norm, turn, store


@dataclass
class Store:
    """A merged projection and the cache its keys and values go to."""

    projected: Tensor
    norms: HeadNorms
    frequencies: Tensor
    k: Tensor
    v: Tensor
    q: Tensor | None
    value_is_key: bool

    def run(self, function: Any, cursor: int, rows: int) -> tuple[Tensor | None, Tensor, Tensor]:
        q, k, v = None if self.q is None else self.q.clone(), self.k.clone(), self.v.clone()
        function(
            self.projected, self.norms, self.frequencies, k, v, *at(cursor, rows), q, value_is_key=self.value_is_key
        )
        return q, k, v


def store(heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype, *, gemma: bool, shared: bool) -> Store:
    columns = (heads + (1 if shared else 2) * kv_heads) * head_dim
    norms = HeadNorms(
        (1 + 0.25 * noise(head_dim, seed=4)).to(dtype),
        (1 + 0.25 * noise(head_dim, seed=5)).to(dtype),
        1e-6,
        rounded_first=not gemma,
        norm_values=gemma,
    )
    cache = torch.zeros(kv_heads, 37, head_dim, dtype=dtype)
    return Store(
        noise(16, columns, seed=6).to(dtype),
        norms,
        inverse_frequencies(RopeConfig(1e4, head_dim, 0.25 if gemma else 1.0), CPU),
        cache,
        cache.clone(),
        torch.zeros(16, heads, head_dim, dtype=dtype) if heads else None,
        shared,
    )


@FP32_AND_BF16
@pytest.mark.parametrize(
    ("heads", "kv_heads", "head_dim", "gemma", "shared"),
    [(4, 2, 32, True, False), (8, 1, 64, True, True), (4, 2, 16, False, False), (0, 2, 16, False, False)],
    ids=["sliding", "full", "drafter", "drafter's context"],
)
def test_heads_are_normed_turned_and_stored(
    heads: int, kv_heads: int, head_dim: int, gemma: bool, shared: bool, dtype: torch.dtype
) -> None:
    case = store(heads, kv_heads, head_dim, dtype, gemma=gemma, shared=shared)
    for cursor, rows in [(0, 16), (30, 16), (90_000, 5), (36, 1), (12, 0)]:
        actual = case.run(norm_rope_store, cursor, rows)
        expected = case.run(norm_rope_store_reference, cursor, rows)
        for ours, theirs in zip(actual, expected, strict=True):
            if ours is not None and theirs is not None:
                # A unit in the last place, where fp32 rounds differently before bf16 does.
                torch.testing.assert_close(ours, theirs, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def test_keys_have_the_same_bits_however_they_arrive() -> None:
    rng = random.Random(0)
    case = store(4, 2, 32, torch.bfloat16, gemma=True, shared=False)
    _, k, v = case.run(norm_rope_store, 50, 16)
    rows, case.k, case.v = case.projected.clone(), case.k.clone(), case.v.clone()
    done = 0
    while done < 16:
        count = min(rng.randint(1, 5), 16 - done)
        case.projected = torch.roll(rows, -done, 0)
        _, case.k, case.v = case.run(norm_rope_store, 50 + done, count)
        done += count
    assert torch.equal(case.k, k) and torch.equal(case.v, v)
