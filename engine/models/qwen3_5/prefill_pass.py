"""The target's pass over a piece of a prompt, with fused kernels between products; ``modules.Qwen35Target`` defines it.
Layers that recur take rows one behind the other here, too, by the function that rounds use: no piece of a prompt, and
no place where it was cut, changes a bit of a state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from ...kernels.decode.recurrent.delta import Projected, prepare_rows, scan_rows, take_by_kernels
from ...kernels.decode.recurrent.gates import gate_heads, norm_and_gate
from ...kernels.prefill.attention import chunk_attention
from ...kernels.prefill.gate import gated_product
from ...kernels.prefill.norm import ExpertOutputs, join, spread
from ...kernels.prefill.products import product
from ...kernels.prefill.rope import norm_rope_split
from ...kernels.prefill.route import route_many, router_scores
from ...kernels.reference.delta import DeltaRows
from ...kernels.toolchain.jit import MAX_ROWS
from ...kv_cache.cache import Cache
from ..family import AFTER_NORM, EMBEDDED
from ..target import TargetOutput
from .kernel_layers import AttendingMixer, Qwen35KernelLayer, RecurringMixer, Routed, kernel_layers, layers_of
from .modules import Qwen35Target

ROWS_AT_ONCE = 512
"""How many rows' keys and values, in fp32, are made ready for a state at a time."""


class Qwen35PrefillPass:
    """A Qwen3.5's pass over a piece of a prompt, bound to one cache."""

    def __init__(self, target: Qwen35Target, cache: Cache):
        """Lays the target's merged weights side by side, which its modules keep using."""
        self._target, self._cache = target, cache
        self._layers = kernel_layers(target, cache)
        self._first_norm = layers_of(target)[0].input_layernorm
        for layer in self._layers:
            if isinstance(layer.mixer, RecurringMixer):
                layer.mixer.state.take = partial(take_by_kernels, layer.mixer.config)

    def __call__(self, ids: Tensor, start: int, cache: Cache, taps: Sequence[int] = ()) -> TargetOutput:
        assert cache is self._cache
        slots, config = {layer: slot for slot, layer in enumerate(taps)}, self._target.config
        x = self._target.embed(ids)
        normed = self._first_norm(x)
        features = x.new_empty(len(ids), len(taps) * config.hidden_size) if taps else None

        def columns(index: int) -> Tensor | None:
            """The columns of the features that belong to the tap ``index``; None where it isn't tapped."""
            if features is None or index not in slots:
                return None
            return features[:, slots[index] * config.hidden_size :][:, : config.hidden_size]

        if (embedded := columns(EMBEDDED)) is not None:
            embedded.copy_(self._target.embedded(ids, x))
        for index, layer in enumerate(self._layers):
            mixer = layer.mixer
            mixed = (
                self._recur(mixer, normed, start)
                if isinstance(mixer, RecurringMixer)
                else _attend(mixer, normed, start)
            )
            normed = self._finish(layer, product(mixed, mixer.output), x, columns(index))
        if (read := columns(AFTER_NORM)) is not None:
            read.copy_(normed)
        return TargetOutput(normed[-1:], features)

    def _finish(self, layer: Qwen35KernelLayer, out: Tensor, x: Tensor, features: Tensor | None) -> Tensor:
        """Goes from a mixer's output to the layer's, in x [n, hidden]; returns it normed for the next layer."""
        normed, eps = torch.empty_like(x), self._target.config.rms_norm_eps
        join(out, None, x, layer.middle_norm, eps, normed, "gemma")
        dense = sparse = None
        if layer.routed is None:
            dense = product(gated_product(normed, layer.gate_up, activation="silu"), layer.down)
        else:
            shared = product(gated_product(normed, layer.routed.gate_up, activation="silu"), layer.routed.down)
            x += shared * (normed @ layer.routed.gate.T).float().sigmoid()
            sparse = _run_experts(layer, layer.routed, normed)
        join(dense, sparse, x, layer.next_norm, eps, normed, "gemma", features)
        return normed

    def _recur(self, mixer: RecurringMixer, normed: Tensor, start: int) -> Tensor:
        state, config, n = mixer.state, mixer.config, len(normed)
        projected, rates = product(normed, mixer.rows), product(normed, mixer.rates)[None]
        state.begin(start)
        keeps = n <= MAX_ROWS
        if keeps:
            state.set_num_rows(n)
        else:
            state.begin_long()
        out, scratch = normed.new_empty(n, config.values), _Scratch(mixer, min(n, ROWS_AT_ONCE), normed.device)
        for first in range(0, n, ROWS_AT_ONCE):
            count = min(ROWS_AT_ONCE, n - first)
            chunk = Projected(projected[first:][:count], rates[:, first:][:, :count])
            rows = state.rows if keeps else scratch.rows
            prepare_rows(chunk, state.now.window, mixer.weights, config, scratch.q, rows, None, None, None, count)
            scratch.count.fill_(count)
            scan_rows(state.now.recurrent, scratch.q, rows, scratch.read, scratch.count, config, writes=not keeps)
            norm_and_gate(scratch.read, mixer.norm, self._target.config.rms_norm_eps, chunk, out[first:], config, count)
            if not keeps:
                state.now.slide(chunk.rows[:, : config.channels])
        if not keeps:
            state.wrote(n)
        return out


class _Scratch:
    """Memory for ``count`` rows of one layer on their way into its state."""

    def __init__(self, mixer: RecurringMixer, count: int, device: torch.device):
        config, wide = mixer.config, partial(torch.empty, dtype=torch.float32, device=device)
        heads, keys = config.num_value_heads, config.num_key_heads
        raw = mixer.state.rows.raw  # no row is kept of a long pass
        self.q, self.read = wide(count, keys, config.key_dim), wide(count, heads, config.value_dim)
        self.rows = DeltaRows(
            raw[:0], wide(count, keys, config.key_dim), wide(count, heads, config.value_dim), wide(count, heads),
            wide(count, heads),
        )  # fmt: skip
        self.count = torch.zeros(1, dtype=torch.int32, device=device)


def _run_experts(layer: Qwen35KernelLayer, routed: Routed, normed: Tensor) -> ExpertOutputs:
    router = routed.router
    scores = router_scores(normed, router.weight, router.bias) if router.forced is None else router.forced
    routed_rows = route_many(scores, len(normed), router.top_k, None)
    rows = spread(normed, None, 0.0, routed_rows.places)
    act = gated_product(rows, layer.gate_up, routed_rows.ends, "silu", None)
    return ExpertOutputs(product(act, layer.down, routed_rows.ends), routed_rows.places, routed_rows.weights)


def _attend(mixer: AttendingMixer, normed: Tensor, start: int) -> Tensor:
    config, cache, end = mixer.config, mixer.cache, start + len(normed)
    projected = product(normed, mixer.qkv)
    q = normed.new_empty(len(normed), config.num_heads, config.head_dim)
    norm_rope_split(
        projected[:, mixer.columns :], mixer.head_norms, mixer.frequencies, (cache.k, cache.v), None, end, q
    )
    mixed = chunk_attention(q, cache.k[:, :end], cache.v[:, :end], causal=True, window=None, scale=config.scale)
    gate_heads(mixed, projected, mixed, config.head_dim, len(normed))
    return mixed
