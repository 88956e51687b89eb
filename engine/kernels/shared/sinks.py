"""Attention sinks inside kernels: a score of each head that joins its softmax's sum once, and mixes nothing."""

from __future__ import annotations

from math import e, log2

from ..toolchain.jit import jit, tl

LOG2_E = tl.constexpr(log2(e)) if tl else log2(e)


@jit
def sink_score(sinks: tl.tensor, head: tl.tensor) -> tl.tensor:
    """Of heads, as scores are there: fp32, for powers of two. Fused by name: left to itself the compiler fuses it with
    what follows in one kernel and not in another, and a row has other bits alone than among sixteen."""
    return tl.fma(tl.load(sinks + head).to(tl.float32), LOG2_E, 0.0)
