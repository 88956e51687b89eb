"""Experiments for products of many rows: rows, or rows and weight, by tensor descriptors. Not kept."""

from __future__ import annotations

from functools import partial
from itertools import product

import torch
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from engine.bench.shapes import read_shape
from engine.kernels.prefill.products import ManyTiles, _load_tile
from engine.kernels.toolchain.jit import cdiv, dot, jit, tl
from engine.kernels.weights.weight import Weight
from measure.gpu.check_prefill import Measured, microseconds, products_of


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


def main() -> None:
    for what in products_of(read_shape("26B-A4B").target):
        if what.experts or "full" in what.name:
            continue
        measured = Measured(what, torch.device("cuda"))
        for n, name in product((2048, 4096), ("fp8", "int4")):
            x, weights, said = measured.rows(n), measured.weights[name], []
            wanted = weights[0].linear(x)
            for columns, rows, warps, stages in (
                (128, 256, 8, 3), (128, 256, 8, 4), (128, 128, 8, 4), (256, 128, 8, 4),
            ):  # fmt: skip
                tiles = ManyTiles(columns, rows, 64, 64, warps, stages)
                try:
                    same = torch.equal(by_descriptors(x, weights[0], tiles), wanted)
                    runs = [partial(by_descriptors, x, each, tiles) for each in weights]
                    us = min(microseconds(runs, measured.device) for _ in range(3))
                    said.append(f"{columns}x{rows}/{warps}w{stages} {us:.0f} {same}")
                except Exception as error:
                    said.append(f"{columns}x{rows} {str(error)[:80]}")
            print(what.name, what.shape, name, n, ", ".join(said), flush=True)


if __name__ == "__main__":
    main()
