"""The gated delta rule in PyTorch, row by row: a row's numbers never depend on how many stand behind it. A head's state
S [value channels, key channels] forgets a share, then learns what it failed to say:

    S = decay * S;   S = S + rate * (v - S k) k^T;   out = S q
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ...layer_config import DELTA_TAPS

EPS = 1e-6
"""Added to the sum of squares of queries and keys, before they are divided by its root."""
VECTOR = 32
"""How many numbers a CPU passes through a function at a time. A rest is computed in another way, and rounds
differently; so rows are padded to multiples, or a number's bits would depend on how many rows there are."""


class DeltaRows(NamedTuple):
    """The rows of a gated delta net, as its state takes them in. Numbers are fp32, or fp64 where the state is."""

    raw: Tensor
    """[n, channels], the convolution's inputs: queries, keys and values side by side, in the model's dtype."""
    k: Tensor
    """[n, key heads, key channels], of length 1."""
    v: Tensor
    """[n, value heads, value channels]: the values."""
    decay: Tensor
    """[n, value heads]: the share of the state that is kept."""
    rate: Tensor
    """[n, value heads]: the share of the new value that is learnt."""

    def first(self, count: int) -> DeltaRows:
        return DeltaRows(*(tensor[:count] for tensor in self))

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self)


class DeltaWeights(NamedTuple):
    """The weights by which a layer makes its rows."""

    conv: Tensor
    """[channels, 1, 4]: the convolution's weights for each channel, that of the row itself last."""
    a_log: Tensor
    """[value heads]: the logarithm of how fast each head forgets."""
    dt_bias: Tensor
    """[value heads]: added to the raw decays."""


def delta_rows(
    raw: Tensor, window: Tensor, b: Tensor, a: Tensor, weights: DeltaWeights, key_heads: int, key_dim: int
) -> tuple[Tensor, DeltaRows]:
    """Makes queries [n, key heads, key channels], scaled, and the rows for the state. ``raw`` [n, channels] follows
    ``window`` [3, channels]; ``b``, ``a`` [n, value heads] are raw learning rates and decays."""
    wide = torch.promote_types(window.dtype, torch.float32)
    n, keys, heads = len(raw), key_heads * key_dim, b.shape[1]
    seen, taps = torch.cat((window, raw)).to(wide), weights.conv.flatten(1).to(wide)
    mixed = seen[:n] * taps[:, 0]
    for tap in range(1, DELTA_TAPS):
        mixed = mixed + seen[tap : tap + n] * taps[:, tap]
    mixed = F.silu(mixed).to(raw.dtype).to(wide)
    q, k = (unit(rows.reshape(n, key_heads, key_dim)) for rows in (mixed[:, :keys], mixed[:, keys : 2 * keys]))
    v = mixed[:, 2 * keys :].reshape(n, heads, -1).contiguous()  # kernels take no strided rows
    more = -heads % VECTOR
    a, b, a_log, dt_bias = (F.pad(each.to(wide), (0, more)) for each in (a, b, weights.a_log, weights.dt_bias))
    decay = torch.exp(-a_log.exp() * F.softplus(a + dt_bias))[:, :heads].contiguous()
    return q * key_dim**-0.5, DeltaRows(raw.contiguous(), k, v, decay, b.sigmoid()[:, :heads].contiguous())


def unit(x: Tensor) -> Tensor:
    """Vectors [..., size] scaled to length 1."""
    return x * (x.square().sum(-1, keepdim=True) + EPS).rsqrt()


def scan(state: Tensor, rows: DeltaRows, q: Tensor | None = None) -> Tensor | None:
    """Takes rows into ``state`` [value heads, value channels, key channels], in place. With queries, returns the
    state's answers behind each row: [n, value heads, value channels]."""
    group = state.shape[0] // rows.k.shape[1]
    k = rows.k.repeat_interleave(group, 1)
    q = None if q is None else q.repeat_interleave(group, 1).unsqueeze(-1)
    out = None if q is None else torch.empty_like(rows.v)
    for row in range(len(k)):
        state.mul_(rows.decay[row, :, None, None])
        wrong = rows.v[row] - torch.bmm(state, k[row].unsqueeze(-1)).squeeze(-1)
        state.baddbmm_((wrong * rows.rate[row, :, None]).unsqueeze(-1), k[row].unsqueeze(1))
        if out is not None and q is not None:
            out[row] = torch.bmm(state, q[row]).squeeze(-1)
    return out


def gated_norm(x: Tensor, weight: Tensor, gate: Tensor, eps: float) -> Tensor:
    """Heads x [n, heads, size], normed, times silu(``gate``) of the same size; in the gate's dtype, rounded once."""
    normed = F.rms_norm(x, x.shape[-1:], weight.to(x.dtype), eps)
    return (normed * F.silu(gate.view(x.shape).to(x.dtype))).to(gate.dtype)
