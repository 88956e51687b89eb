"""Stores keys and values of a few rows in all layers of a drafter's context, in one launch. The kernel finds the
layers' caches by their distance in memory from the first, so their addresses must stay."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ....kv_cache.layer_cache import LayerCache
from ...shared.heads import HeadNorms, cos_sin
from ...toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...toolchain.jit import MAX_ROWS, tl


class ContextStores:
    """Where the layers of one drafter keep their context. All have heads of one kind and one number."""

    def __init__(self, caches: Sequence[LayerCache], norms: Sequence[HeadNorms]):
        first = caches[0].k
        stores = [(cache.k, cache.v) for cache in caches]
        assert all(k.shape[::2] == first.shape[::2] and k.dtype == first.dtype for k, _ in stores)
        assert all(norm.rounded_first and not norm.norm_values and norm.eps == norms[0].eps for norm in norms)

        def distance(store: Tensor) -> int:
            return (store.data_ptr() - first.data_ptr()) // first.itemsize

        self.first = first
        self.stores = stores
        """Keys and values of each layer; held, since the kernel is given the first alone."""
        self.distances = torch.tensor([[distance(k), distance(v)] for k, v in stores], device=first.device)
        """int64 [layers, 2]: how many elements each layer's keys and values lie behind ``first``."""
        self.capacities = torch.tensor([cache.capacity for cache in caches], dtype=torch.int32, device=first.device)
        self.norms = torch.stack([norm.k for norm in norms if norm.k is not None])
        """The weights of the keys' norms, [layers, head_dim]."""
        assert len(self.norms) == len(norms), "a drafter's keys are normed in every layer"
        self.eps = norms[0].eps

    @property
    def columns(self) -> int:
        """Columns of a row that holds keys and values of all layers."""
        kv_heads, _, head_dim = self.first.shape
        return len(self.stores) * 2 * kv_heads * head_dim


def store_context(projected: Tensor, stores: ContextStores, frequencies: Tensor, start: Tensor, rows: Tensor) -> None:
    """Norms and turns the keys of up to 16 rows, and stores keys and values in every layer, as ``rope.norm_rope_store``
    bit for bit. ``projected`` [16, columns]: [keys | values] of the first layer, then the next. ``start`` and ``rows``
    int32 [1] on the device: row r goes to (start + r) % capacity, rows from ``rows`` on nowhere."""
    kv_heads, _, head_dim = stores.first.shape
    assert projected.shape == (MAX_ROWS, stores.columns) and projected.is_contiguous()
    _store_context[(MAX_ROWS, len(stores.stores) * 2 * kv_heads)](
        projected, stores.norms, frequencies, stores.first, stores.distances, stores.capacities, start, rows,
        stores.eps,
        COLUMNS=stores.columns, KV_HEADS=kv_heads, HEAD_DIM=head_dim, num_warps=1,
    )  # fmt: skip


@early_kernel
def _store_context(
    projected: tl.tensor, norms: tl.tensor, frequencies: tl.tensor, first: tl.tensor, distances: tl.tensor,
    capacities: tl.tensor, start: tl.tensor, rows: tl.tensor, eps: tl.tensor,
    COLUMNS: tl.constexpr, KV_HEADS: tl.constexpr, HEAD_DIM: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each (row, head): a layer's keys, its values, then the next layer's. Everything is loaded before it
    is used."""
    row = tl.program_id(0)
    head = tl.program_id(1)
    layer = head // (2 * KV_HEADS)
    kind = head // KV_HEADS % 2  # 0 for keys, 1 for values
    half: tl.constexpr = HEAD_DIM // 2
    lane = tl.arange(0, half)
    weight_1 = tl.load(norms + layer * HEAD_DIM + lane)
    weight_2 = tl.load(norms + layer * HEAD_DIM + half + lane)
    frequency = tl.load(frequencies + lane)
    wait_for_inputs()
    position = tl.load(start) + row
    live = row < tl.load(rows)
    distance = tl.load(distances + 2 * layer + kind)
    capacity = tl.load(capacities + layer)
    source = projected + row * COLUMNS + head * HEAD_DIM + lane
    x = tl.load(source).to(tl.float32)
    y = tl.load(source + half).to(tl.float32)
    let_next_start()
    dtype = projected.dtype.element_ty
    if kind == 0:
        inverse = tl.rsqrt(tl.sum(x * x + y * y, axis=0) / HEAD_DIM + eps)
        x = (x * inverse).to(dtype).to(tl.float32)
        y = (y * inverse).to(dtype).to(tl.float32)
        x = (x * weight_1.to(tl.float32)).to(dtype).to(tl.float32)
        y = (y * weight_2.to(tl.float32)).to(dtype).to(tl.float32)
        cos, sin = cos_sin(position.to(tl.float32) * frequency)
        turned = x * cos - y * sin
        y = y * cos + x * sin
        x = turned
    target = first + distance + ((head % KV_HEADS) * capacity + position % capacity) * HEAD_DIM + lane
    tl.store(target, x.to(dtype), mask=live & (lane >= 0))
    tl.store(target + half, y.to(dtype), mask=live & (lane >= 0))
