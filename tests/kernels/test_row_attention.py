"""Attention of up to 16 rows over a cache with its cursor on the device, in Triton's interpreter."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.config import AttentionConfig, RopeConfig
from engine.kernels import row_attention
from engine.kernels.rope import HeadNorms, inverse_frequencies, norm_rope_store, norm_rope_store_reference
from engine.kernels.row_attention import AttendScratch, AttendTiles, attend_rows, attend_rows_reference, attend_tiles
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

    def attend(self, cursor: int, rows: int, tiles: AttendTiles | None = None, q: Tensor | None = None) -> Tensor:
        out = torch.full((16, self.config.num_heads * self.config.head_dim), 7.0, dtype=self.q.dtype)
        scratch = AttendScratch([self.config], [self.k.shape[1]], CPU, tiles)
        for part in (scratch.highest, scratch.total, scratch.mixed):
            part.fill_(float("nan"))
        attend_rows(self.q if q is None else q, self.k, self.v, *at(cursor, rows), self.config, out, scratch, tiles)
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
        actual = case.attend(cursor, rows, replace(SMALL, rows=min(32, 16 * config.num_heads // config.num_kv_heads)))
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
            assert torch.equal(case.attend(cursor + row, 1, SMALL, alone)[0], block[row]), (cursor, row)
        assert torch.equal(case.attend(cursor, 6, SMALL)[:6], block[:6])


@pytest.mark.parametrize("programs", [1, 3])
def test_a_program_may_take_several_splits(programs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = make(LAYERS["8 heads a key"], 150)
    expected = case.attend(134, 5, SMALL)
    monkeypatch.setattr(row_attention, "SMALL_PROGRAMS", programs)
    assert torch.equal(case.attend(134, 5, SMALL), expected)


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


def test_larger_caches_take_larger_splits_not_more() -> None:
    full = LAYERS["full"]
    assert attend_tiles(full, 32_768).split == 128
    assert attend_tiles(full, 262_144).split == 1024
    assert attend_tiles(LAYERS["sliding"], 10**6).split == attend_tiles(LAYERS["sliding"], 64).split


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
    for cursor, rows in [(0, 16), (30, 16), (1000, 5), (36, 1), (12, 0)]:
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
