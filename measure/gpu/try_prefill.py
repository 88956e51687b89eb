"""Experiments for products of many rows: rows, or rows and weight, by tensor descriptors. Not kept."""

from __future__ import annotations

import torch
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from engine.kernels.prefill.products import ManyTiles
from engine.kernels.toolchain.jit import cdiv, dot, jit, tl
from engine.kernels.weights.fp8 import fp8_pairs
from engine.kernels.weights.weight import Weight


@jit
def _tma(
    x_desc,
    x,
    w_desc,
    weight,
    scales,
    out,
    max_rows,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
    WEIGHT: tl.constexpr,
):
    row_tiles = (max_rows + BLOCK_M - 1) // BLOCK_M
    start = tl.program_id(0) // row_tiles * BLOCK_N
    column = start + tl.arange(0, BLOCK_N)
    first = tl.program_id(0) % row_tiles * BLOCK_M
    row = first + tl.arange(0, BLOCK_M)
    inside = tl.minimum(column, N - 1)
    pairs = weight.to(tl.pointer_type(tl.uint16)) + inside[:, None] * (K // 2) + tl.arange(0, BLOCK_K // 2)[None, :]
    total = tl.zeros([BLOCK_N, BLOCK_M], dtype=tl.float32)
    for at in tl.range(0, K, BLOCK_K):
        tile = w_desc.load([start, at // 2]) if WEIGHT else tl.load(pairs + at // 2)
        one, two = fp8_pairs(tile.to(tl.uint16, bitcast=True), x)
        rows = x_desc.load([first, at])
        total = dot(tl.join(one, two).reshape(BLOCK_N, BLOCK_K), rows.T, total)
    total *= tl.load(scales + inside)[:, None]
    at = out + row[None, :].to(tl.int64) * N + column[:, None]
    tl.store(at, total.to(out.dtype.element_ty), mask=(row[None, :] < max_rows) & (column[:, None] < N))


def by_descriptors(x: Tensor, weight: Weight, tiles: ManyTiles, both: bool) -> Tensor:
    n, depth = x.shape
    columns = weight.shape[0]
    out = torch.empty(n, columns, dtype=x.dtype, device=x.device)
    pairs = weight.values.view(torch.int16)
    _tma[(cdiv(n, tiles.rows) * cdiv(columns, tiles.columns),)](
        TensorDescriptor.from_tensor(x, [tiles.rows, tiles.depth]),
        x,
        TensorDescriptor.from_tensor(pairs, [tiles.columns, tiles.depth // 2]),
        weight.values,
        weight.scales,
        out,
        n,
        N=columns,
        K=depth,
        BLOCK_N=tiles.columns,
        BLOCK_M=tiles.rows,
        BLOCK_K=tiles.depth,
        WEIGHT=both,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )
    return out


def main() -> None:
    from functools import partial

    from engine.bench.shapes import read_shape
    from measure.gpu.check_prefill import Measured, microseconds, products_of

    for what in products_of(read_shape("26B-A4B").target):
        if what.experts:
            continue
        measured = Measured(what, torch.device("cuda"))
        for n in (2048, 4096):
            x = measured.rows(n)
            wanted = measured.weights["fp8"][0].linear(x)
            said = []
            for both in (False, True):
                for cols, rows, warps, stages in (
                    (128, 256, 8, 3),
                    (128, 256, 8, 4),
                    (128, 128, 8, 4),
                    (256, 128, 8, 4),
                    (128, 128, 4, 4),
                ):
                    tiles = ManyTiles(cols, rows, 64, 64, warps, stages)
                    try:
                        same = torch.equal(by_descriptors(x, measured.weights["fp8"][0], tiles, both), wanted)
                        runs = [partial(by_descriptors, x, w, tiles, both) for w in measured.weights["fp8"]]
                        us = min(microseconds(runs, measured.device) for _ in range(3))
                        said.append(f"{'xw' if both else 'x'} {cols}x{rows}/{warps}w{stages} {us:.0f} {same}")
                    except Exception as error:
                        said.append(f"{both} {cols}x{rows} {str(error)[:80]}")
            print(what.name, what.shape, n, ", ".join(said), flush=True)


if __name__ == "__main__":
    main()
