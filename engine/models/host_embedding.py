"""An embedding in the machine's memory, for cards that are short of their own: a pass reads a few rows of what is a
tenth of Qwen3.8-27B in INT4, and a GPU fetches those over its bus (3 us for one row, 6 for sixteen on an H200)."""

from __future__ import annotations

import mmap
import weakref
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import DeviceFailure, Option
from .target import TargetModel


class HostEmbedding(nn.Embedding):
    """Embeddings [n, hidden] on the device of the ids, from a table [vocab, hidden] in registered host memory."""

    def __init__(self, table: Tensor):
        super().__init__(len(table), table.shape[1], _weight=table, _freeze=True)

    def forward(self, ids: Tensor) -> Tensor:
        from ..kernels.prefill.gather import gather  # needs Triton, which rounds on the device need as well

        return gather(self.weight, ids)


def hold_embedding_on_host(target: TargetModel) -> None:
    """Moves the embedding out of the card's memory, in place. Only for a target with a head of its own, once its
    weights are in place. Raises ``DeviceFailure`` where the system registers no such memory."""
    table = target.embed_tokens.weight
    assert target.head is not table, "its head reads all of the embedding in every pass"
    target.embed_tokens = HostEmbedding(table.detach())
    if table.device.type == "cuda":
        _move(target.embed_tokens)
        del table
        torch.cuda.empty_cache()


def _move(embedding: HostEmbedding) -> None:
    """Copies the table into memory that the GPU may read, for as long as the module lives. PyTorch's own pinned memory
    comes in powers of two: 4 GB for 2.5."""
    table = embedding.weight
    memory = torch.frombuffer(mmap.mmap(-1, table.nbytes), dtype=torch.uint8)
    cuda: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    address = memory.data_ptr()
    if int(refused := cuda.cudaHostRegister(address, table.nbytes, 0)):
        raise DeviceFailure(
            f"The GPU may not read {table.nbytes / 1e9:.1f} GB of this machine's memory, where the embedding was to lie"
            f" (CUDA says {refused}).",
            ("Close other programs, or leave room for it on the card by a smaller ", Option("max_context", 8192), "."),
        )
    weakref.finalize(embedding, cuda.cudaHostUnregister, address).atexit = False
    embedding.weight = nn.Parameter(memory.view(table.dtype).view(table.shape).copy_(table), requires_grad=False)
