"""Makes tensors of numbers in GGUF files, which come in blocks of neighbours, packed as llama.cpp's ``ggml-quants``
does it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .headers import BLOCKS

ROWS_AT_ONCE = 8192


def q4_0(content: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Splits blocks into bytes [..., depth / 2], each of two numbers plus 8, those of a block's first half in the lower
    bits, and fp16 scales [..., depth / 32]."""
    blocks = _blocks(content, shape, "Q4_0")
    return blocks[..., 2:].flatten(-2), _fp16(blocks[..., :2])


def restored(content: Tensor, shape: tuple[int, ...], name: str, dtype: torch.dtype) -> Tensor:
    """The floats of a weight [..., depth] that is stored in one of ``RESTORE``'s formats."""
    rows = _blocks(content, shape, name).flatten(0, -3)
    result = torch.empty(len(rows), shape[-1], dtype=dtype, device=content.device)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        chunk = slice(start, start + ROWS_AT_ONCE)
        result[chunk] = RESTORE[name](rows[chunk]).flatten(-2)
    return result.view(shape)


def _q4_1(blocks: Tensor) -> Tensor:
    """Unpacks numbers from 0 to 15, those of a block's first half in the lower bits, a scale, and an offset."""
    scale, least = (_fp16(blocks[..., at : at + 2]).float()[..., None] for at in (0, 2))
    values = blocks[..., 4:]
    return torch.cat((values & 15, values >> 4), dim=-1) * scale + least


def _q8_0(blocks: Tensor) -> Tensor:
    numbers: Tensor = blocks[..., 2:].contiguous().view(torch.int8) * _fp16(blocks[..., :2]).float()[..., None]
    return numbers


def _q6_k(blocks: Tensor) -> Tensor:
    """Unpacks 256 numbers of four lower and two upper bits, with a scale of 8 bits for each 16 and one in fp16 for
    all."""
    many = blocks.shape[:-1]
    low = blocks[..., :128].reshape(*many, 2, 1, 64)
    low = torch.cat((low & 15, low >> 4), dim=-2).reshape(*many, 8, 32)
    high = blocks[..., 128:192].reshape(*many, 2, 1, 32)
    high = torch.cat([high >> shift & 3 for shift in (0, 2, 4, 6)], dim=-2).reshape(*many, 8, 32)
    numbers = (low | high << 4).reshape(*many, 16, 16).float() - 32
    units: Tensor = blocks[..., 192:208].contiguous().view(torch.int8) * _fp16(blocks[..., 208:]).float()[..., None]
    return (numbers * units[..., None]).flatten(-2)


RESTORE: dict[str, Callable[[Tensor], Tensor]] = {"Q4_1": _q4_1, "Q8_0": _q8_0, "Q6_K": _q6_k}
"""By format, what makes floats [..., blocks, numbers] of bytes [..., blocks, bytes]."""


def _blocks(content: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    numbers, size = BLOCKS[name]
    return content.view(*shape[:-1], shape[-1] // numbers, size)


def _fp16(pairs: Tensor) -> Tensor:
    """fp16 numbers [...] from bytes [..., 2]."""
    return pairs.contiguous().view(torch.float16).squeeze(-1)
