"""Operations inside kernels on a whole row [HIDDEN] that a program holds in registers, in ``BLOCK`` lanes, zero past
its end."""

from __future__ import annotations

from ..toolchain.jit import jit, tl


@jit
def rounded(value: tl.tensor, like: tl.tensor) -> tl.tensor:
    """fp32 values as they are after a round trip through the dtype that ``like`` points to."""
    return value.to(like.dtype.element_ty).to(tl.float32)


@jit
def load_row(pointer: tl.tensor, lane: tl.tensor, HIDDEN: tl.constexpr) -> tl.tensor:
    """A row as fp32, whatever is stored."""
    return load_scales(pointer, lane, HIDDEN).to(tl.float32)


@jit
def load_scales(pointer: tl.tensor, lane: tl.tensor, HIDDEN: tl.constexpr) -> tl.tensor:
    """A norm's weight as it is stored: nothing waits for it before it is used, and it takes half the registers."""
    return tl.load(pointer + lane, mask=lane < HIDDEN, other=0.0)


@jit
def store_row(pointer: tl.tensor, lane: tl.tensor, value: tl.tensor, HIDDEN: tl.constexpr) -> None:
    tl.store(pointer + lane, value.to(pointer.dtype.element_ty), mask=lane < HIDDEN)


@jit
def add_up(
    first: tl.tensor, stride: tl.constexpr, lane: tl.tensor, HIDDEN: tl.constexpr, COUNT: tl.constexpr
) -> tl.tensor:
    """The sum of ``COUNT`` rows that lie ``stride`` apart, in order."""
    total = load_row(first, lane, HIDDEN)
    for index in tl.static_range(1, COUNT):
        total += load_row(first + index * stride, lane, HIDDEN)
    return total


@jit
def inverse_rms(x: tl.tensor, eps: tl.tensor, HIDDEN: tl.constexpr) -> tl.tensor:
    """The inverse root mean square of a row [BLOCK], or of rows side by side [BLOCK, rows]."""
    return tl.rsqrt(tl.sum(x * x, axis=0) / HIDDEN + eps)


@jit
def scale_row(x: tl.tensor, inverse: tl.tensor, scales: tl.tensor, QWEN: tl.constexpr) -> tl.tensor:
    """x, fp32, times its ``inverse`` RMS and the norm's weight ``scales``; with QWEN it is rounded to the weight's
    dtype in between."""
    x *= inverse
    return (x.to(scales.dtype).to(tl.float32) if QWEN else x) * scales.to(tl.float32)
