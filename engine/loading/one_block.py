"""Puts models' small tensors into one block of memory, for passes on a CPU. ``environment.py`` has PyTorch ask for
pages of 2 MB, which it does for tensors that fill one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import torch
from torch import Tensor, nn

from ..kernels.weights.weight import Weight

PAGE = 2 << 20
"""Bytes from which on PyTorch gives a tensor pages of its own."""
LINE = 64


@torch.no_grad()
def lay_together(*models: nn.Module) -> None:
    """Moves all weights' tensors that are no larger than a page together, each with all its views."""
    shared: dict[int, list[Tensor]] = {}
    for tensor in {id(tensor): tensor for model in models for tensor in _tensors(model)}.values():
        if tensor.layout is torch.strided and not tensor.is_meta and 0 < tensor.untyped_storage().nbytes() < PAGE:
            shared.setdefault(tensor.untyped_storage().data_ptr(), []).append(tensor)
    sizes = [-(-views[0].untyped_storage().nbytes() // LINE) * LINE for views in shared.values()]
    block = torch.empty(sum(sizes), dtype=torch.uint8)
    for start, views in zip(accumulate(sizes, initial=0), shared.values(), strict=False):
        storage = views[0].untyped_storage()
        block[start : start + storage.nbytes()] = torch.empty(0, dtype=torch.uint8).set_(storage)
        for view in views:
            offset = start // view.element_size() + view.storage_offset()
            view.data = block.view(view.dtype).as_strided(view.shape, view.stride(), offset)


def _tensors(model: nn.Module) -> Iterator[Tensor]:
    """Yields parameters, and the weights that modules keep beside them, which share their memory."""
    for module in model.modules():
        yield from module.parameters(recurse=False)
        for weight in vars(module).values():
            if isinstance(weight, Weight):
                yield from (tensor for tensor in (weight.values, weight.scales) if tensor is not None)
