"""Attention of up to 16 rows over a cache with its cursor on the device, in Triton's interpreter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.kernels.decode.attention import attend_rows as attention
from engine.kernels.decode.attention.attend_rows import AttendScratch, attend_rows, attend_rows_reference
from engine.kernels.decode.attention.attend_tiles import (
    AttendTiles,
    FullTiles,
    WindowTiles,
)
from engine.kernels.reference.rope import inverse_frequencies
from engine.kernels.shared.heads import HeadNorms
from engine.layer_config import AttentionConfig, RopeConfig
from tests.kernels.tensors import CPU, noise

TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


def layer(heads: int, kv_heads: int, head_dim: int, window: int | None, **changes: Any) -> AttentionConfig:
    kind: Any = "full_attention" if window is None else "sliding_attention"
    return AttentionConfig(
        kind, heads, kv_heads, head_dim, RopeConfig(1e4, head_dim), head_dim**-0.5, window, **changes
    )


LAYERS = {
    "sliding": layer(2, 1, 256, 40),
    "full": layer(4, 1, 512, None, value_is_key=True),
    "8 heads a key": layer(8, 1, 32, None),
    "6 heads a key": layer(6, 1, 32, None),
    "6 in a window": layer(6, 1, 32, 24),
    "drafter sliding": layer(2, 1, 128, 50),
    "drafter full": layer(2, 1, 128, None, causal=False),
    "both ways in a window": layer(4, 2, 16, 24, causal=False),
    "every head its own keys": layer(3, 3, 16, 21),
    "values are keys in a window": layer(2, 1, 32, 30, value_is_key=True),
    "sinks in a window, no norms": layer(8, 2, 32, 24, sinks=True),
    "sinks": layer(6, 3, 32, None, sinks=True),
    "gpt-oss": layer(8, 1, 64, 128, sinks=True),
}
SMALL_WINDOW = WindowTiles(split=32, rows=16, warps=4, registers=255)
SMALL_FULL = FullTiles(split=32, keys=16, rows=64, values=16, warps=4, stages=2, programs=99)
ADDED_IN_ORDER = attention.ADDED_IN_ORDER


def small(config: AttentionConfig) -> AttendTiles:
    """With two parts of the values, where there are no windows."""
    return replace(SMALL_FULL, values=config.head_dim // 2) if config.window is None else SMALL_WINDOW


@pytest.fixture(autouse=True)
def _few_splits_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that some rows have more, and the interpreter runs few that nobody has."""
    monkeypatch.setattr(attention, "ADDED_IN_ORDER", 3)


@dataclass
class Case:
    """A layer with a filled cache, and the projection of 16 rows behind it."""

    config: AttentionConfig
    projected: Tensor
    norms: HeadNorms
    k: Tensor
    v: Tensor

    def attend(
        self,
        cursor: int,
        rows: int,
        tiles: AttendTiles | None = None,
        max_rows: int = 16,
        launches: int = 1,
        first: int = 0,
    ) -> Tensor:
        """Of the projection's rows from ``first`` on, the mix [16, heads * head_dim]; the cache keeps their keys."""
        out = self.untouched()
        scratch = AttendScratch([self.config], [self.k.shape[1]], CPU, tiles)
        for part in (scratch.highest, scratch.total, scratch.mixed):
            part.fill_(float("nan"))
        for _ in range(launches):
            attend_rows(*self.given(cursor, rows, first), self.config, out, scratch, tiles, max_rows, sinks=self.sinks)
            assert not scratch.arrivals.any(), "the next launch would not find out when its programs are done"
        return out

    def reference(self, cursor: int, rows: int) -> Tensor:
        out = self.untouched()
        attend_rows_reference(*self.given(cursor, rows), self.config, out, sinks=self.sinks)
        return out

    @property
    def sinks(self) -> Tensor | None:
        """Some far above the scores, some far below."""
        return (6 * noise(self.config.num_heads, seed=7)).to(self.k.dtype) if self.config.sinks else None

    def given(self, cursor: int, rows: int, first: int = 0) -> tuple[Any, ...]:
        frequencies = inverse_frequencies(self.config.rope, CPU)
        projected = torch.roll(self.projected, -first, 0)
        return projected, self.norms, frequencies, self.k, self.v, *at(cursor, rows)

    def untouched(self) -> Tensor:
        return torch.full((16, self.config.num_heads * self.config.head_dim), 7.0, dtype=self.k.dtype)

    def copy(self) -> Case:
        return replace(self, k=self.k.clone(), v=self.v.clone())


def at(cursor: int, rows: int) -> tuple[Tensor, Tensor]:
    return torch.tensor([cursor], dtype=torch.int32), torch.tensor([rows], dtype=torch.int32)


def make(config: AttentionConfig, capacity: int, dtype: torch.dtype = torch.float32, gemma: bool = True) -> Case:
    shape = (config.num_kv_heads, capacity, config.head_dim)
    columns = (config.num_heads + (1 if config.value_is_key else 2) * config.num_kv_heads) * config.head_dim
    k, v, projected = noise(*shape, seed=1), noise(*shape, seed=2), noise(16, columns, seed=3)
    norms = head_norms(config.head_dim, dtype, gemma=gemma)
    if config.sinks and config.window is not None:
        norms = HeadNorms(None, None, 1e-6, rounded_first=False, norm_values=False)
    return Case(config, projected.to(dtype), norms, k.to(dtype), v.to(dtype))


def head_norms(head_dim: int, dtype: torch.dtype, *, gemma: bool) -> HeadNorms:
    q, k = (1 + 0.25 * noise(head_dim, seed=seed) for seed in (4, 5))
    return HeadNorms(q.to(dtype), k.to(dtype), 1e-6, rounded_first=not gemma, norm_values=gemma)


def capacity_of(config: AttentionConfig) -> int:
    return 150 if config.window is None else config.window - 1 + 16


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, torch.float32) for name in LAYERS if name != "gpt-oss"),
        *((name, torch.bfloat16) for name in ("sliding", "8 heads a key")),
    ],
    ids=str,
)
def test_rows_attend_as_the_reference_does(name: str, dtype: torch.dtype) -> None:
    """At the start, in the middle, and where rings wrap, also alone; rows beyond the count are left as they are."""
    config = LAYERS[name]
    case = make(config, capacity_of(config), dtype, gemma="drafter" not in name)
    early = [(31, 3, 16), (0, 1, 1)] if name in ("sliding", "full", "drafter sliding", "drafter full", "sinks") else []
    for cursor, rows, max_rows in [*early, (134, 16, 16), (134, 1, 1)]:
        ours, theirs = case.copy(), case.copy()
        actual, expected = ours.attend(cursor, rows, small(config), max_rows), theirs.reference(cursor, rows)
        for got, wanted in ((actual, expected), (ours.k, theirs.k), (ours.v, theirs.v)):
            torch.testing.assert_close(got, wanted, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("sliding", torch.float32),
        ("8 heads a key", torch.bfloat16),
        ("6 heads a key", torch.float32),
        ("6 in a window", torch.bfloat16),
        ("sinks in a window, no norms", torch.bfloat16),
        ("sinks", torch.bfloat16),
    ],
    ids=str,
)
def test_a_row_has_the_same_bits_at_every_width(name: str, dtype: torch.dtype, ordered_sums: None) -> None:
    """Row r of a block, and the only row of a pass at its position: no bit differs, also across splits and rings."""
    config = LAYERS[name]
    for cursor in (20, 121) if name in ("sliding", "8 heads a key") else (121,):
        case = make(config, capacity_of(config), dtype)
        block = case.attend(cursor, 16, small(config))
        k, v = case.k.clone(), case.v.clone()
        for row, max_rows in ((1, 1), (15, 1), (15, 2)):
            actual = case.attend(cursor + row, 1, small(config), max_rows, first=row)
            assert torch.equal(actual[0], block[row]), (cursor, row, max_rows)
        assert torch.equal(case.attend(cursor, 6, small(config), 6)[:6], block[:6])
        assert torch.equal(case.k, k) and torch.equal(case.v, v)


@pytest.mark.usefixtures("ordered_sums")
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("8 heads a key", torch.bfloat16),
        ("6 heads a key", torch.float32),
        ("sinks", torch.bfloat16),
        ("values are keys", torch.float32),
    ],
    ids=str,
)
def test_a_row_alone_may_take_a_launch_less(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the bits that it has in a block, keys and values too: in one split and in several, in a step of a split and
    in several."""
    config = LAYERS.get(name) or layer(2, 1, 32, None, value_is_key=True)
    tiles = replace(SMALL_FULL, split=32, keys=16, alone=True)
    for cursor in (0, 15, 133):
        separate = make(config, 150, dtype)
        together = separate.copy()
        expected = separate.attend(cursor, 1, tiles, 2)
        with monkeypatch.context() as patch:
            patch.setattr(attention, "norm_rope_store", None)  # which is not launched
            assert torch.equal(together.attend(cursor, 1, tiles, 1), expected), cursor
        assert torch.equal(together.k, separate.k) and torch.equal(together.v, separate.v), cursor


@pytest.mark.parametrize("cursor", [1016, 1360])
def test_splits_grow_with_the_position(cursor: int, ordered_sums: None) -> None:
    """In blocks and row by row; a block may lie where they do, and its rows have splits of two sizes."""
    tiles = replace(SMALL_FULL, split=16)
    case = make(layer(2, 1, 16, None), 1400)
    block = case.attend(cursor, 16, tiles)
    torch.testing.assert_close(block, case.copy().reference(cursor, 16), atol=1e-5, rtol=1e-5)
    for row in (7, 8):
        assert torch.equal(case.attend(cursor + row, 1, tiles, max_rows=1, first=row)[0], block[row]), row


def test_nothing_runs_without_rows() -> None:
    for name in ("drafter sliding", "drafter full"):
        case = make(LAYERS[name], 65)
        k, v = case.k.clone(), case.v.clone()
        assert all((case.attend(40, 0, max_rows=most) == 7.0).all() for most in (1, 16))
        assert torch.equal(case.k, k) and torch.equal(case.v, v)


def test_what_lies_past_the_cursor_does_not_count() -> None:
    """Refused rows stay in the cache behind the cursor, and fresh caches hold anything, even what is no number."""
    for name in ("8 heads a key", "sliding"):
        case = make(LAYERS[name], 150 if LAYERS[name].window is None else 55)
        expected = case.copy().attend(33, 4, small(case.config))
        case.k[:, 33:], case.v[:, 33:] = float("nan"), float("nan")
        assert torch.equal(case.attend(33, 4, small(case.config)), expected)
