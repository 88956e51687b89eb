"""The plain family with layers that recur: gated delta nets, as Qwen3.5 has them, between layers that attend.

What such a layer keeps can't be rewound by moving a cursor. Its state remembers where the last pass began and replays
as much of it as is committed; to get further back, it needs a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.kv_cache.layer_state import LayerState, Restore
from engine.layer_config import AttentionConfig, RopeConfig
from engine.models.layers import RMSNorm, linear
from tests.engine.checkpoints import VOCAB_SIZE, randomised
from tests.engine.models.plain_family import PlainAttention, PlainConfig, PlainTarget

MOST_REPLAYED = 16
"""Rows that a pass may have for some of them to be refused: a block's. Those of a longer piece of a prompt all count,
and what they were is not kept."""


class Moment(NamedTuple):
    """What a layer keeps at one position."""

    recurrent: Tensor
    """[value heads, key channels, value channels], fp32 even where the model is bf16."""
    conv: Tensor
    """The last inputs of the convolution, [kernel - 1, channels]."""


Replay = Callable[[int], Moment]
"""Where the first rows of a pass lead, by how many they are."""


@dataclass(frozen=True, slots=True)
class DeltaConfig:
    """One gated delta net."""

    num_key_heads: int
    num_value_heads: int
    key_dim: int
    value_dim: int
    kernel: int

    @property
    def channels(self) -> int:
        """Of the convolution: queries, keys and values."""
        return 2 * self.num_key_heads * self.key_dim + self.num_value_heads * self.value_dim

    def new_state(self, max_context: int, slack: int, dtype: torch.dtype, device: torch.device) -> DeltaState:
        shape, wide = (self.num_value_heads, self.key_dim, self.value_dim), torch.promote_types(dtype, torch.float32)
        recurrent = torch.zeros(shape, dtype=wide, device=device)
        return DeltaState(Moment(recurrent, torch.zeros(self.kernel - 1, self.channels, dtype=dtype, device=device)))


class DeltaState(LayerState):
    """The moment at the cursor, and the pass that led there. No tensor is written to once it is here."""

    def __init__(self, empty: Moment):
        self._empty = empty
        self._stand(empty, 0)

    def _stand(self, now: Moment, length: int) -> None:
        self.now = self._before = self._after = now
        self._start = self._end = length
        self._replay: Replay | None = None

    @property
    def nbytes(self) -> int:
        """Before and after a pass, a snapshot, and the rows to replay."""
        recurrent, conv = self._empty
        heads, _, _ = recurrent.shape
        rows = MOST_REPLAYED * (conv[0].nbytes + 2 * heads * recurrent.itemsize)
        return 3 * (recurrent.nbytes + conv.nbytes) + rows

    def run(self, start: int, count: int, after: Moment, replay: Replay) -> None:
        """A pass of ``count`` rows, from ``now`` to ``after``."""
        self._before, self._after = self.now, after
        self._start, self._end = start, start + count
        self._replay = replay if count <= MOST_REPLAYED else None

    def commit(self, length: int) -> None:
        self.now = self._after = self._at(length)
        self._end = length

    def follow(self, start: int, length: int, written: int) -> None:
        """Has nothing to do: no device runs its rounds."""

    def pretend(self, length: int) -> None:
        """Has nothing to do: nobody measures it."""

    def can_rewind_to(self, length: int, written: int) -> bool:
        return length == self._end or (self._replay is not None and self._start <= length < self._end)

    def snapshot(self, length: int) -> Restore:
        then = self._at(length)
        return lambda: self._stand(then, length)

    def clear(self) -> None:
        self._stand(self._empty, 0)

    def _at(self, length: int) -> Moment:
        if length == self._end:
            return self._after
        assert self._replay is not None and self._start <= length < self._end, "its rows are forgotten"
        return self._before if length == self._start else self._replay(length - self._start)


class GatedDeltaNet(nn.Module):
    """Parameters have the names of the published ones."""

    def __init__(self, config: DeltaConfig, hidden: int, eps: float):
        super().__init__()
        self.config = config
        values = config.num_value_heads * config.value_dim
        self.in_proj_qkv = linear(hidden, config.channels)
        self.in_proj_z = linear(hidden, values)
        self.in_proj_a, self.in_proj_b = linear(hidden, config.num_value_heads), linear(hidden, config.num_value_heads)
        self.conv1d = nn.Conv1d(config.channels, config.channels, config.kernel, groups=config.channels, bias=False)
        self.A_log = nn.Parameter(torch.empty(config.num_value_heads))
        self.dt_bias = nn.Parameter(torch.empty(config.num_value_heads))
        self.norm = RMSNorm(config.value_dim, eps, "qwen")
        self.out_proj = linear(values, hidden)

    def forward(self, x: Tensor, start: int, state: DeltaState, rope: object) -> Tensor:
        """Mixes rows x [n, hidden] into what the state holds of all the rows before them."""
        inputs, before = self.in_proj_qkv(x), state.now
        kept = torch.exp(-self.A_log.exp() * F.softplus(self.in_proj_a(x) + self.dt_bias))
        learned = self.in_proj_b(x).sigmoid()
        after, mixed = self._scan(before, inputs, kept, learned)
        replay = lambda n: self._scan(before, inputs[:n], kept[:n], learned[:n])[0]  # noqa: E731
        state.run(start, len(x), after, replay)
        gate = F.silu(self.in_proj_z(x)).view_as(mixed)
        out: Tensor = self.out_proj((self.norm(mixed) * gate).flatten(1))
        return out

    def _scan(self, moment: Moment, inputs: Tensor, kept: Tensor, learned: Tensor) -> tuple[Moment, Tensor]:
        """Row by row. ``inputs`` [n, channels] of the convolution; ``kept`` and ``learned``, [n, value heads], are the
        shares of the old state and of what is new. Returns [n, value heads, value channels]."""
        config, keys = self.config, self.config.num_key_heads * self.config.key_dim
        window = torch.cat((moment.conv, inputs))
        rows = F.silu(self.conv1d(window.T)).T
        q, k, v = rows.split((keys, keys, config.num_value_heads * config.value_dim), dim=-1)
        group = config.num_value_heads // config.num_key_heads
        q, k = (self._unit(part.reshape(len(rows), -1, config.key_dim)).repeat_interleave(group, 1) for part in (q, k))
        v = v.reshape(len(rows), -1, config.value_dim)
        recurrent, mixed = moment.recurrent, []
        for row in range(len(rows)):
            recurrent = recurrent * kept[row, :, None, None]
            error = v[row] - torch.einsum("hkv,hk->hv", recurrent, k[row])
            recurrent = recurrent + torch.einsum("hk,hv->hkv", k[row], error * learned[row, :, None])
            mixed.append(torch.einsum("hkv,hk->hv", recurrent, q[row]) * config.key_dim**-0.5)
        return Moment(recurrent, window[1 - config.kernel :]), torch.stack(mixed)

    @staticmethod
    def _unit(x: Tensor) -> Tensor:
        return x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentConfig(PlainConfig):
    def build(self) -> RecurrentTarget:
        return RecurrentTarget(self)


class RecurrentTarget(PlainTarget):
    def mixer(self, layer: object) -> nn.Module:
        if isinstance(layer, DeltaConfig):
            return GatedDeltaNet(layer, self.config.hidden_size, self.config.rms_norm_eps)
        assert isinstance(layer, AttentionConfig)
        return PlainAttention(layer, self.config.hidden_size)


DELTA = DeltaConfig(num_key_heads=2, num_value_heads=4, key_dim=8, value_dim=12, kernel=4)


def recurrent_target(windows: Sequence[int | None] = (48, None), seed: int = 0) -> RecurrentTarget:
    """Random weights; before each layer that attends, with these windows, one that recurs."""
    layers = [
        layer
        for window in windows
        for layer in (
            DELTA,
            AttentionConfig(
                kind="full_attention" if window is None else "sliding_attention",
                num_heads=4,
                num_kv_heads=2,
                head_dim=16,
                rope=RopeConfig(1e4, 16),
                scale=0.25,
                window=window,
            ),
        )
    ]
    config = RecurrentConfig(
        hidden_size=64,
        intermediate_size=96,
        vocab_size=VOCAB_SIZE,
        rms_norm_eps=1e-6,
        max_context=4096,
        layers=tuple(layers),
        stop_token_ids=(),
    )
    target = randomised(config.build(), seed)
    for layer in target.layers:
        if isinstance(layer.self_attn, GatedDeltaNet):
            layer.self_attn.A_log.sub_(3)  # it forgets slowly: what went wrong long ago still shows
    target.prepare()
    return target
