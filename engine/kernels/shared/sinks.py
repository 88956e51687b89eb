"""Attention sinks inside kernels: a score of each head that joins its softmax's sum once, and mixes nothing."""

from __future__ import annotations

from math import e, log2

from ..toolchain.jit import jit, tl

LOG2_E = tl.constexpr(log2(e)) if tl else log2(e)


@jit
def sink_score(sinks: tl.tensor, head: tl.tensor) -> tl.tensor:
    """The sinks of heads in the unit of scores there: fp32, as exponents of two."""
    return tl.load(sinks + head).to(tl.float32) * LOG2_E
