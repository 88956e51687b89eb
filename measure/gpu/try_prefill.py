"""Experiments for products of many rows: rows, or rows and weight, by tensor descriptors. Not kept."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import torch
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from engine.bench.shapes import read_shape
from engine.kernels.prefill.products import GROUPED, ManyTiles, _load_tile, multiply_many
from engine.kernels.toolchain.jit import cdiv, dot, jit, tl
from engine.kernels.weights.weight import Weight
from measure.gpu.check_prefill import Measured, defined, microseconds, products_of


@jit
def _tma(
    x_desc, x, weight, scales, out, max_rows,
    N: tl.constexpr, K: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr,
    FORMAT: tl.constexpr,
):  # fmt: skip
    row_tiles = (max_rows + BLOCK_M - 1) // BLOCK_M
    column = tl.program_id(0) // row_tiles * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.program_id(0) % row_tiles * BLOCK_M
    row = first + tl.arange(0, BLOCK_M)
    inside = tl.minimum(column, N - 1)
    total = tl.zeros([BLOCK_N, BLOCK_M], dtype=tl.float32)
    for at in tl.range(0, K, BLOCK_K):
        factor = _load_tile(weight, scales, inside, at, x, K, FORMAT, BLOCK_N, BLOCK_K)
        total = dot(factor, x_desc.load([first, at]).T, total)
    if FORMAT <= 2:
        total *= tl.load(scales + inside)[:, None]
    at = out + row[None, :].to(tl.int64) * N + column[:, None]
    tl.store(at, total.to(out.dtype.element_ty), mask=(row[None, :] < max_rows) & (column[:, None] < N))


def by_descriptors(x: Tensor, weight: Weight, tiles: ManyTiles) -> Tensor:
    n, depth = x.shape
    columns = weight.shape[0]
    out = torch.empty(n, columns, dtype=x.dtype, device=x.device)
    _tma[(cdiv(n, tiles.rows) * cdiv(columns, tiles.columns),)](
        TensorDescriptor.from_tensor(x, [tiles.rows, tiles.depth]), x, weight.values, weight.scales, out, n,
        N=columns, K=depth, BLOCK_N=tiles.columns, BLOCK_M=tiles.rows, BLOCK_K=tiles.depth, FORMAT=weight.format,
        num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    return out


def diagnose() -> None:
    """Which results of experts in INT4 are wrong, by tiles."""
    for what in products_of(read_shape("26B-A4B").target):
        if not what.experts:
            continue
        measured = Measured(what, torch.device("cuda"))
        x, ends, weight = measured.rows(2043), measured.ends(2043), measured.weights["int4"][0]
        wanted = defined(x, weight, ends)
        starts = torch.cat([ends.new_zeros(1), ends[:-1]])
        for tiles in (
            GROUPED,
            replace(GROUPED, stages=3),
            replace(GROUPED, stages=2),
            replace(GROUPED, few=16),
            replace(GROUPED, few=128),
            replace(GROUPED, warps=4),
            replace(GROUPED, rows=256),
        ):
            found = multiply_many(x, weight, ends, tiles=tiles)
            wrong = ((found.float() - wanted).abs() > 0.03 * wanted.abs().max()) | ~found.isfinite()
            rows, columns = wrong.any(1).nonzero().flatten(), wrong.any(0).nonzero().flatten()
            expert = torch.searchsorted(ends, rows.int(), right=True)
            place = rows - starts[expert.clamp(max=len(ends) - 1)]
            print(
                what.name, tiles, f"{int(wrong.sum())} wrong, rows {len(rows)}, columns {len(columns)}, experts",
                expert.unique().tolist()[:12], "places", place.unique().tolist()[:12], place.unique().tolist()[-6:],
                "columns", columns.tolist()[:12], columns.tolist()[-6:],
                "again", torch.equal(found, multiply_many(x, weight, ends, tiles=tiles)), flush=True,
            )  # fmt: skip


def main() -> None:
    diagnose()
    for what in products_of(read_shape("26B-A4B").target):
        if what.experts or "full" in what.name:
            continue
        measured = Measured(what, torch.device("cuda"))
        for n, name in product((2048, 4096), ("fp8", "int4")):
            x, weights, said = measured.rows(n), measured.weights[name], []
            wanted = weights[0].linear(x)
            for columns, rows, depth, warps, stages in (
                (128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (128, 256, 128, 8, 3), (128, 128, 64, 8, 4),
                (128, 128, 64, 4, 4), (64, 256, 64, 4, 4),
            ):  # fmt: skip
                tiles = ManyTiles(columns, rows, 64, depth, warps, stages)
                try:
                    same = torch.equal(by_descriptors(x, weights[0], tiles), wanted)
                    runs = [partial(by_descriptors, x, each, tiles) for each in weights]
                    us = min(microseconds(runs, measured.device) for _ in range(3))
                    said.append(f"{columns}x{rows}x{depth}/{warps}w{stages} {us:.0f} {same}")
                except Exception as error:
                    said.append(f"{columns}x{rows} {str(error)[:80]}")
            print(what.name, what.shape, name, n, ", ".join(said), flush=True)


if __name__ == "__main__":
    main()
