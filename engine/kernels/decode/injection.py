"""What DSpine does between two of its products: what a place makes of what it hears from the place before it, and how
that is added to its states. Definition: ``models.dflash.injection.AdjacentInjection``."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..shared.rows import add_up, inverse_rms, load_row, load_scales, rounded, scale_row, store_row
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import power_of_two, tl

SMALLEST = 1e-12
"""The length below which a vector is no more divided by its own (``torch.nn.functional.normalize``'s)."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a layer's places say to one another: the products of what is read of them."""

    read: Tensor
    """[16, rank]: what is read of the states, not yet of unit length."""
    products: Tensor
    """[16, 3 * message]: products of ``read`` with the message, the predecessor's and the receiver's gate."""
    bias: Tensor
    """[message]: the gates'."""


def gate_messages(heard: Heard, codes: Tensor, out: Tensor, each: int = 1) -> None:
    """``out`` [n, message]: the messages that reach places from the ones before them, gated. ``codes`` [..., 2 *
    message]: products of tokens' codes, at unit length, with the message and the predecessor's gate. With ``each`` 1
    row i hears from row i - 1, and row 1 from ``codes``; row 0 is of no use. Else rows ``each`` * i and following are
    row i + 1 behind each of ``each`` tokens of ``codes``."""
    rank, message = heard.read.shape[1], out.shape[1]
    assert heard.products.shape[1] == 3 * message and codes.shape[-1] == 2 * message
    _gate_messages[(out.shape[0],)](
        heard.read, heard.products, heard.bias, codes, out, rank**0.5, SMALLEST,
        RANK=rank, MESSAGE=message, EACH=each, BLOCK_R=power_of_two(rank), BLOCK_M=power_of_two(message), num_warps=4,
    )  # fmt: skip


def inject_and_norm(
    partials: Tensor, x: Tensor, weight: Tensor, eps: float, normed: Tensor, each: int = 1, keep: bool = True
) -> None:
    """``normed`` [n, hidden]: states with what they hear, after a norm. ``partials`` [splits, n, hidden] of any float
    dtype are the products of the messages. With ``each`` 1, x [16, hidden] becomes the states themselves, unless they
    aren't to be kept, and row 0 hears nothing; else rows ``each`` * i and following are of row i + 1. The launch just
    before may not write x."""
    hidden = normed.shape[1]
    _inject_and_norm[(normed.shape[0],)](
        partials, x, weight, eps, hidden**-0.5, normed,
        HIDDEN=hidden, SPLITS=partials.shape[0], APART=partials.stride(0), EACH=each, KEEP=keep and each == 1,
        BLOCK=power_of_two(hidden), num_warps=8 if hidden > 2048 else 4,
    )  # fmt: skip


@early_kernel
def _gate_messages(
    read: tl.tensor, products: tl.tensor, bias: tl.tensor, codes: tl.tensor, out: tl.tensor, root: tl.tensor,
    smallest: tl.tensor,
    RANK: tl.constexpr, MESSAGE: tl.constexpr, EACH: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_M: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each row of ``out``."""
    row = tl.program_id(0)
    lane, channel = tl.arange(0, BLOCK_R), tl.arange(0, BLOCK_M)
    added = load_row(bias, channel, MESSAGE)
    slot = row if EACH == 1 else row // EACH + 1
    before = tl.maximum(slot - 1, 0)
    wait_for_inputs()
    receiver = load_row(read + slot * RANK, lane, RANK)
    receiver_factor = root / tl.maximum(tl.sqrt(tl.sum(receiver * receiver, axis=0)), smallest)
    asks = rounded(load_row(products + slot * 3 * MESSAGE + 2 * MESSAGE, channel, MESSAGE) * receiver_factor, out)
    if EACH > 1:
        message = rounded(load_row(codes + row * 2 * MESSAGE, channel, MESSAGE) * root, out)
        offers = rounded(load_row(codes + row * 2 * MESSAGE + MESSAGE, channel, MESSAGE) * root, out)
    elif slot <= 1:
        message = rounded(load_row(codes, channel, MESSAGE) * root, out)
        offers = rounded(load_row(codes + MESSAGE, channel, MESSAGE) * root, out)
    else:
        other = load_row(read + before * RANK, lane, RANK)
        factor = root / tl.maximum(tl.sqrt(tl.sum(other * other, axis=0)), smallest)
        message = rounded(load_row(products + before * 3 * MESSAGE, channel, MESSAGE) * factor, out)
        offers = rounded(load_row(products + before * 3 * MESSAGE + MESSAGE, channel, MESSAGE) * factor, out)
    let_next_start()
    gate = rounded(tl.sigmoid(rounded(rounded(asks + offers, out) + added, out)), out)
    store_row(out + row * MESSAGE, channel, gate * message, MESSAGE)


@early_kernel
def _inject_and_norm(
    partials: tl.tensor, residual: tl.tensor, weight: tl.tensor, eps: tl.tensor, inverse_root: tl.tensor,
    normed: tl.tensor,
    HIDDEN: tl.constexpr, SPLITS: tl.constexpr, APART: tl.constexpr, EACH: tl.constexpr, KEEP: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each row of ``normed``."""
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    slot = row if EACH == 1 else row // EACH + 1
    scales = load_scales(weight, lane, HIDDEN)
    x = load_row(residual + slot * HIDDEN, lane, HIDDEN)  # written before the product just before
    size = rounded(tl.sqrt(tl.sum(x * x, axis=0)) * inverse_root, normed)
    wait_for_inputs()
    heard = rounded(add_up(partials + row * HIDDEN, APART, lane, HIDDEN, SPLITS), normed)
    let_next_start()
    x = tl.where(slot > 0, rounded(x + rounded(size * heard, normed), normed), x)
    if KEEP:
        store_row(residual + row * HIDDEN, lane, x, HIDDEN)
    store_row(normed + row * HIDDEN, lane, scale_row(x, inverse_rms(x, eps, HIDDEN), scales, True), HIDDEN)
