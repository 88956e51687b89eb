"""Qwen3.5's layer that drafts, as kernel launches; ``modules.QwenMtp`` defines it. Committed rows enter as no more than
their keys and values, all at once; a draft is one row, again for each token, and stands from the newest committed row
on. Like in ``decode_pass``, nothing is allocated or read back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from ....kernels.decode.attention.rope import norm_rope_store
from ....kernels.decode.norm import add_and_norm
from ....kernels.decode.products.dense import partial_sums, project
from ....kernels.decode.tiling.target_tiles import target_tiles
from ....kernels.decode.tiling.tiles import DraftTiles, TargetTiles
from ....kernels.round.pair_rows import DraftPlaces, PairNorms
from ....kernels.toolchain.card import card_of
from ....kernels.toolchain.jit import MAX_ROWS
from ....kernels.weights.kinds import weight_of
from ....kernels.weights.weight import Weight
from ....kv_cache.cache import Cache
from ...drafter import DraftBinding
from ...paired_pass import PairedDraftPass
from ...target import TargetModel
from ..gated_layers import GatedLayers
from ..kernel_layers import AttendingMixer, Qwen35KernelLayer, kernel_layer
from ..modules import Qwen35DecoderLayer
from .config import QwenMtpConfig
from .modules import QwenMtp


class QwenMtpDraftPass(PairedDraftPass):
    """Ingestion and drafting, bound to one cache and to the tensors that say which rows run."""

    def __init__(self, drafter: QwenMtp, target: TargetModel, cache: Cache, bound: DraftBinding):
        """See ``Drafter.draft_pass``. Merges the drafter's weights in place."""
        config, device, dtype = drafter.config, bound.features.device, bound.features.dtype
        mtp, module, eps = drafter.mtp, drafter.mtp.layers[0], config.target.rms_norm_eps
        assert isinstance(module, Qwen35DecoderLayer)
        norms = PairNorms(mtp.pre_fc_norm_embedding.scales, mtp.pre_fc_norm_hidden.scales, eps)
        super().__init__(drafter, target, cache, bound, norms)
        self._eps, (keys,) = eps, self._keys
        self._first_norm = module.input_layernorm.scales
        self._fc = self._read(weight_of(mtp.fc))
        self._layer = _read_by(self._read, kernel_layer(module, keys, drafter.frequencies, mtp.norm.scales))
        self._mixer = self._layer.mixer
        assert isinstance(self._mixer, AttendingMixer)
        qkv = self._mixer.qkv
        self._kv = qkv.rows(2 * self._mixer.columns, qkv.shape[0])
        self._row = _Row(config, cache, self._steps, self.tiles, dtype)
        self._sums = partial_sums(self.tiles.context, config.target.hidden_size, device)
        self._new_kv = torch.zeros(MAX_ROWS, self._kv.shape[0], dtype=dtype, device=device)

    @property
    def normed(self) -> Tensor:
        return self._row.normed

    def _joined(self, features: Tensor) -> Tensor:
        return features

    def _remember(self, count: Tensor) -> None:
        mixer, row, tiles = self._mixer, self._row, self.tiles
        assert isinstance(mixer, AttendingMixer)
        project(self._pairs, self._fc, self._sums, tiles.context)
        add_and_norm(self._sums, None, self._first_norm, self._eps, row.normed, "gemma")
        project(row.normed, self._kv, self._new_kv, tiles.context_kv)
        norm_rope_store(
            self._new_kv, mixer.head_norms, mixer.frequencies, mixer.cache.k, mixer.cache.v, self._first, count
        )

    def _step(self, index: int) -> None:
        project(self._pairs, self._fc, self._sums, self.tiles.context, max_rows=1)
        row = self._row
        add_and_norm(self._sums, None, self._first_norm, self._eps, row.normed, "gemma", row.x, max_rows=1)
        row.run(self._layer, index)


class _Row(GatedLayers):
    """The launches of the layer that drafts, for a single row."""

    def __init__(self, config: QwenMtpConfig, cache: Cache, steps: DraftPlaces, tiles: DraftTiles, dtype: torch.dtype):
        self._steps = steps
        alone = replace(config.target, layers=config.layers)
        of_draft = _tiles_of(config, tiles, steps.cursors.device)
        first = steps.cursors[0, :1], steps.rows[0, :1]
        super().__init__(alone, cache, *first, of_draft, {"bf16": of_draft}, dtype)

    @property
    def x(self) -> Tensor:
        """[16, hidden]: the residual stream."""
        return self._buffers.x

    @property
    def normed(self) -> Tensor:
        """[16, hidden]: normed for what comes next."""
        return self._buffers.normed

    def run(self, layer: Qwen35KernelLayer, step: int) -> None:
        """Goes from the residual, normed for the layer, to its output, normed for the head."""
        self.cursor, self.rows = self._steps.cursors[step, :1], self._steps.rows[step, :1]
        self._mix(layer, 1, None)
        self._feed_forward(layer, None, 1)


def _tiles_of(config: QwenMtpConfig, tiles: DraftTiles, device: torch.device) -> TargetTiles:
    """The tiles of the layer's products: the drafter's, and for experts those of a target in bf16."""
    whole = target_tiles(config.target.moe, card_of(device), "bf16", config.target.sizes)
    same = {name: getattr(tiles, name) for name in ("qkv", "output", "gate_up", "down", "head")}
    return replace(whole, **same)


def _read_by(read: Callable[[Weight], Weight], layer: Qwen35KernelLayer) -> Qwen35KernelLayer:
    """The layer with ``read`` applied to all of its weights but the routed experts'."""
    mixer, routed = layer.mixer, layer.routed
    mixer = (
        replace(mixer, qkv=read(mixer.qkv), output=read(mixer.output)) if isinstance(mixer, AttendingMixer) else mixer
    )
    if routed is None:
        return replace(layer, mixer=mixer, gate_up=read(layer.gate_up), down=read(layer.down))
    return replace(layer, mixer=mixer, routed=replace(routed, gate_up=read(routed.gate_up), down=read(routed.down)))
