"""Qwen3.5, one sequence, no batch dimension. Modules and parameters are named as in the published checkpoints. Two
things lie otherwise than there, and are laid so while they are read (``row_order``): the channels of a head that turn
begin its two halves, and the queries of an attention's heads lie behind all its gates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from ...kernels.decode.tiling.tiles import TargetTiles
from ...kernels.reference.delta import DeltaWeights, delta_rows, gated_norm, scan
from ...kernels.reference.norm import rms_norm
from ...kernels.reference.rope import apply_rope, rope_table
from ...kv_cache.cache import Cache
from ...kv_cache.delta_state import DeltaState
from ...kv_cache.layer_cache import LayerCache
from ...layer_config import DELTA_TAPS, AttentionConfig, DeltaConfig, MoeConfig
from ..attention_backends import TRITON
from ..family import AFTER_NORM, EMBEDDED
from ..layers import AttentionModule, GatedMLP, RMSNorm, RopeTable, SharedInputModule, linear
from ..pre_norm import modules as pre_norm
from ..target import DecodePass, PrefillPass, TargetOutput
from .config import Qwen35Config


class CentredNorm(nn.Module):
    """RMS norm whose weight [size] is what is added to one."""

    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self.eps = eps

    @property
    def scales(self) -> Tensor:
        """The factor of each channel, 1 + weight, [size]: in fp32, or fp64 where the weight is."""
        return 1 + self.weight.to(torch.promote_types(self.weight.dtype, torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.scales, self.eps)


class Qwen35Attention(AttentionModule):
    """Attention whose heads' outputs are multiplied by the sigmoid of gates, channel by channel."""

    def __init__(self, layer: AttentionConfig, config: Qwen35Config):
        super().__init__(layer)
        hidden, eps = config.hidden_size, config.rms_norm_eps
        size, kv_size = layer.num_heads * layer.head_dim, layer.num_kv_heads * layer.head_dim
        self.q_proj = linear(hidden, 2 * size)
        """The projection of the heads' gates, then of their queries."""
        self.k_proj, self.v_proj = linear(hidden, kv_size), linear(hidden, kv_size)
        self.o_proj = linear(size, hidden)
        self.q_norm, self.k_norm = CentredNorm(layer.head_dim, eps), CentredNorm(layer.head_dim, eps)

    def forward(self, x: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> Tensor:
        """Attends rows x [n, hidden] at positions start .. start + n - 1; their keys and values go into the cache."""
        gated, k, v = self.read(x, self.q_proj, self.k_proj, self.v_proj)
        gate, q = gated.chunk(2, dim=-1)
        q, k = self._turned(q, self.q_norm, rope), self._turned(k, self.k_norm, rope)
        k, v = cache.extend(start, k, self._heads(v))
        mixed = self.attend(q, k, v, causal=True, window=None, scale=self.config.scale)
        wide = torch.promote_types(x.dtype, torch.float32)
        out: Tensor = self.o_proj((mixed.to(wide) * gate.to(wide).sigmoid()).to(x.dtype))
        return out

    def remember(self, x: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> None:
        """Writes keys and values of rows x [n, hidden] at start .. start + n - 1 into the cache, where nothing else of
        them is wanted."""
        cache.write(start, self._turned(self.k_proj(x), self.k_norm, rope), self._heads(self.v_proj(x)))

    def _heads(self, columns: Tensor) -> Tensor:
        """Rows [n, heads, head_dim] of ``columns`` [n, heads * head_dim]."""
        return columns.reshape(len(columns), -1, self.config.head_dim)

    def _turned(self, columns: Tensor, norm: CentredNorm, rope: RopeTable) -> Tensor:
        wide = torch.promote_types(columns.dtype, torch.float32)
        return apply_rope(norm(self._heads(columns).to(wide)), rope).to(columns.dtype)


class Convolution(nn.Module):
    """The weights of a causal convolution over the last four rows, in which each channel sees itself alone."""

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, 1, DELTA_TAPS))


class GatedDeltaNet(SharedInputModule):
    """Mixes rows into a state that forgets, and reads from it."""

    def __init__(self, layer: DeltaConfig, config: Qwen35Config):
        super().__init__()
        self.config = layer
        hidden, heads = config.hidden_size, layer.num_value_heads
        self.fused = config.fused
        if self.fused:
            self.in_proj_qkvz, self.in_proj_ba = (
                linear(hidden, layer.channels + layer.values),
                linear(hidden, 2 * heads),
            )
        else:
            self.in_proj_qkv, self.in_proj_z = linear(hidden, layer.channels), linear(hidden, layer.values)
            self.in_proj_b, self.in_proj_a = linear(hidden, heads), linear(hidden, heads)
        self.conv1d = Convolution(layer.channels)
        self.A_log, self.dt_bias = nn.Parameter(torch.empty(heads)), nn.Parameter(torch.empty(heads))
        self.norm = RMSNorm(layer.value_dim, config.rms_norm_eps)
        self.out_proj = linear(layer.values, hidden)

    @property
    def row_weights(self) -> DeltaWeights:
        return DeltaWeights(self.conv1d.weight, self.A_log, self.dt_bias)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> GatedDeltaNet:
        """Moves or casts the parameters as ``SharedInputModule``'s does, but leaves those in fp32 that decide how long
        a state remembers."""
        before = {"A_log": self.A_log.detach(), "dt_bias": self.dt_bias.detach()}
        super()._apply(fn, recurse)
        for name, parameter in before.items():
            now = getattr(self, name)
            if now.dtype.itemsize < parameter.dtype.itemsize:
                setattr(self, name, nn.Parameter(parameter.to(now.device), requires_grad=now.requires_grad))
        return self

    def forward(self, x: Tensor, start: int, state: DeltaState) -> Tensor:
        """Mixes rows x [n, hidden] at positions start .. start + n - 1 into the state, one after the other; returns
        what they read from it, [n, hidden]."""
        layer = self.config
        raw, z, b, a = self._projected(x)
        state.begin(start)
        q, rows = delta_rows(raw, state.now.window, b, a, self.row_weights, layer.num_key_heads, layer.key_dim)
        now = state.now
        if state.store_rows(rows):  # the state itself stays behind until it is known which of them count
            mixed = scan(now.recurrent.clone(), rows, q)
        else:
            mixed = scan(now.recurrent, rows, q)
            now.slide(raw)
            state.wrote(len(x))
        assert mixed is not None
        out: Tensor = self.out_proj(gated_norm(mixed, self.norm.weight, z, self.norm.eps).flatten(1))
        return out

    def _projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Projects rows x [n, hidden] to the convolution's inputs, the outputs' gates, and raw learning rates and
        decays."""
        layer = self.config
        if self.fused:
            raw, z = self.in_proj_qkvz(x).split((layer.channels, layer.values), dim=-1)
            return (raw, z.contiguous(), *self.in_proj_ba(x).chunk(2, dim=-1))
        raw, z = self.read(x, self.in_proj_qkv, self.in_proj_z)
        return raw, z, self.in_proj_b(x), self.in_proj_a(x)


class Qwen35SparseMLP(pre_norm.SparseMLP):
    """Experts that a router chooses, and one that all rows share, multiplied by a gate of its own."""

    def __init__(self, config: Qwen35Config, moe: MoeConfig):
        super().__init__(config.hidden_size, moe, config.activation)
        self.shared_expert = GatedMLP(config.hidden_size, config.intermediate_size, config.activation)
        self.shared_expert_gate = linear(config.hidden_size, 1)

    def forward(self, x: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        share = self.shared_expert_gate(x).to(wide).sigmoid()
        shared = (self.shared_expert(x).to(wide) * share).to(x.dtype)
        out: Tensor = super().forward(x) + shared
        return out


class Qwen35DecoderLayer(nn.Module):
    """A layer that recurs (``linear_attn``) or attends (``self_attn``), then an MLP or experts."""

    def __init__(self, config: Qwen35Config, layer: AttentionConfig | DeltaConfig):
        super().__init__()
        hidden, eps = config.hidden_size, config.rms_norm_eps
        if isinstance(layer, DeltaConfig):
            self.linear_attn = GatedDeltaNet(layer, config)
        else:
            self.self_attn = Qwen35Attention(layer, config)
        self.recurs = isinstance(layer, DeltaConfig)
        self.mlp = (
            GatedMLP(hidden, config.intermediate_size, config.activation)
            if config.moe is None
            else Qwen35SparseMLP(config, config.moe)
        )
        self.input_layernorm, self.post_attention_layernorm = CentredNorm(hidden, eps), CentredNorm(hidden, eps)

    def forward(self, x: Tensor, start: int, state: LayerCache | DeltaState, rope: RopeTable) -> Tensor:
        normed = self.input_layernorm(x)
        if isinstance(state, DeltaState):
            x = x + self.linear_attn(normed, start, state)
        else:
            x = x + self.self_attn(normed, start, state, rope)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class Qwen35Target(pre_norm.OneRopeTarget):
    """The weights and forward pass of a Qwen3.5."""

    has_decode_pass = True
    branch_ends = (
        "self_attn.o_proj.weight", "linear_attn.out_proj.weight", "down_proj.weight", "experts.down_proj",
    )  # fmt: skip
    read_together = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"), ("in_proj_qkv", "in_proj_z"))
    never_packed = (
        "in_proj_b.weight", "in_proj_a.weight", "in_proj_ba.weight", "conv1d.weight", "shared_expert_gate.weight",
    )  # fmt: skip

    config: Qwen35Config
    norm: CentredNorm

    def __init__(self, config: Qwen35Config):
        kinds = (layer for layer in config.layers if isinstance(layer, AttentionConfig | DeltaConfig))
        norm = CentredNorm(config.hidden_size, config.rms_norm_eps)
        super().__init__(config, (Qwen35DecoderLayer(config, layer) for layer in kinds), norm, config.tied)
        self.config = config

    def row_order(self, name: str) -> Tensor | None:
        return row_order(self.config, name)

    def forward(self, ids: Tensor, start: int, cache: Cache, taps: Sequence[int] = ()) -> TargetOutput:
        rope = rope_table(cache.positions(start, start + ids.shape[0]), self.frequencies)
        x = self.embed(ids)
        tapped: dict[int, Tensor] = {EMBEDDED: self.embedded(ids, x)}
        for index, (layer, state) in enumerate(zip(self.layers, cache.layers, strict=True)):
            x = layer(x, start, state, rope)
            if index in taps:
                tapped[index] = x
        tapped[AFTER_NORM] = normed = self.norm(x)
        features = torch.cat([tapped[index] for index in taps], dim=-1) if taps else None
        return TargetOutput(normed, features)

    def prefill_pass(self, cache: Cache) -> PrefillPass:
        """Where every layer attends with Triton, kernels do the rest of a prompt as well."""
        from . import prefill_pass

        return prefill_pass.Qwen35PrefillPass(self, cache) if self.attention_backend == TRITON.name else self

    def decode_pass(
        self, cache: Cache, cursor: Tensor, rows: Tensor, taps: Sequence[int] = (), tiles: TargetTiles | None = None
    ) -> DecodePass:
        from . import decode_pass

        return decode_pass.Qwen35DecodePass(self, cache, cursor, rows, taps, tiles)


def row_order(config: Qwen35Config, name: str) -> Tensor | None:
    """For each row of a parameter, which row of the file's tensor it is, int64; None where both have one order."""
    recurring = next((layer for layer in config.layers if isinstance(layer, DeltaConfig)), None)
    if recurring is not None and name.endswith("in_proj_qkvz.weight"):
        values = recurring.values // recurring.num_key_heads
        return part_by_part(recurring.num_key_heads, [recurring.key_dim] * 2 + [values] * 2)
    if recurring is not None and name.endswith("in_proj_ba.weight"):
        return part_by_part(recurring.num_key_heads, [recurring.num_value_heads // recurring.num_key_heads] * 2)
    if not name.endswith(("q_proj.weight", "k_proj.weight", "q_norm.weight", "k_norm.weight")):
        return None
    layer = config.attention[0]
    channels = turning_first(layer)
    if "norm" in name:
        return channels
    heads = torch.arange(layer.num_kv_heads if "k_proj" in name else layer.num_heads)[:, None]
    if "k_proj" in name:
        return (heads * layer.head_dim + channels).flatten()
    rows = heads * 2 * layer.head_dim
    gates = rows + layer.head_dim + torch.arange(layer.head_dim)
    return torch.cat((gates.flatten(), (rows + channels).flatten()))


def part_by_part(groups: int, sizes: Sequence[int]) -> Tensor:
    """Reorders rows that lie group by group, each group with parts of ``sizes``: all first parts come first, then all
    second ones. Returns the rows' old places: ``part_by_part(2, [1, 2])`` is [0, 3, 1, 2, 4, 5]."""
    rows = torch.arange(groups * sum(sizes)).view(groups, -1)
    return torch.cat([section.flatten() for section in rows.split_with_sizes(list(sizes), dim=1)])


def turning_first(layer: AttentionConfig) -> Tensor:
    """For each channel of a head as it lies here, its place in the published head. There the channels that turn come
    first; here their first half begins the head's first half, and their second half its second."""
    half, turning = layer.head_dim // 2, int(layer.rope.rotated_fraction * layer.head_dim) // 2
    first, second = torch.arange(2 * turning, layer.head_dim).chunk(2)
    assert len(first) == len(second) == half - turning
    return torch.cat((torch.arange(turning), first, torch.arange(turning, 2 * turning), second))
