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
from ....kernels.decode.products.head import HeadOutput, head_rows, pick_rows
from ....kernels.decode.tiling.target_tiles import target_tiles
from ....kernels.decode.tiling.tile_trials import TileTrials
from ....kernels.decode.tiling.tiles import DraftTiles, TargetTiles, draft_tiles
from ....kernels.round.pair_rows import DraftPlaces, PairNorms, pair_committed, pair_first, pair_next
from ....kernels.toolchain.card import card_of
from ....kernels.toolchain.jit import MAX_ROWS
from ....kernels.weights.int8 import Int8Weight
from ....kernels.weights.kinds import weight_of
from ....kernels.weights.plain import PlainWeight
from ....kernels.weights.weight import Weight
from ....kv_cache.cache import Cache
from ...drafter import Committed, RoundRows
from ...paired import kept_of
from ...target import TargetModel
from ..gated_layers import GatedLayers
from ..kernel_layers import AttendingMixer, Qwen35KernelLayer, kernel_layer
from ..modules import Qwen35DecoderLayer
from .config import QwenMtpConfig
from .modules import QwenMtp


class QwenMtpDraftPass:
    """Ingestion and drafting, bound to one cache and to the tensors that say which rows run."""

    mask_token = 0

    def __init__(
        self,
        drafter: QwenMtp,
        target: TargetModel,
        cache: Cache,
        features: Tensor,
        tokens: Tensor,
        rows: RoundRows,
        tiles: DraftTiles | None = None,
        head: Int8Weight | None = None,
    ):
        """See ``Drafter.draft_pass``; with ``head`` products read copies in 8 bits. Merges the drafter's weights in
        place."""
        config, device, dtype = drafter.config, features.device, features.dtype
        in_8_bits = head is not None or drafter.in_8_bits
        self.tiles = draft_tiles(in_8_bits, card_of(device)) if tiles is None else tiles
        self.block = torch.zeros(MAX_ROWS, dtype=torch.int64, device=device)
        out = HeadOutput.allocate(target.config.vocab_size, self.tiles.head, device, keep_logits=False)
        self.out = replace(out, token=tokens)
        self._target, self._rows, self._eps = target, rows, config.target.rms_norm_eps
        self._waiting = Committed(features, rows.ingest_start, rows.ingest_rows)
        (keys,), last_rows = kept_of(cache)
        self._hidden_rows = last_rows.rows

        def read(weight: Weight) -> Weight:
            return Int8Weight.of(weight.values) if in_8_bits and isinstance(weight, PlainWeight) else weight

        mtp, module = drafter.mtp, drafter.mtp.layers[0]
        assert isinstance(module, Qwen35DecoderLayer)
        self._norms = PairNorms(mtp.pre_fc_norm_embedding.scales, mtp.pre_fc_norm_hidden.scales, self._eps)
        self._first_norm = module.input_layernorm.scales
        self._fc = read(weight_of(mtp.fc))
        self._head = PlainWeight(target.head) if head is None else head
        self._layer = _read_by(read, kernel_layer(module, keys, drafter.frequencies, mtp.norm.scales))
        self._mixer = self._layer.mixer
        assert isinstance(self._mixer, AttendingMixer)
        qkv = self._mixer.qkv
        self._kv = qkv.rows(2 * self._mixer.columns, qkv.shape[0])
        self._first = torch.zeros(1, dtype=torch.int32, device=device)
        """int32 [1]: where the first committed row's pair stands."""
        self._steps = DraftPlaces.allocate(device)
        self._row = _Row(config, cache, self._steps, self.tiles, dtype)
        self._pairs = torch.zeros(MAX_ROWS, 2 * config.target.hidden_size, dtype=dtype, device=device)
        self._sums = partial_sums(self.tiles.context, config.target.hidden_size, device)
        self._new_kv = torch.zeros(MAX_ROWS, self._kv.shape[0], dtype=dtype, device=device)

    def trials(self) -> TileTrials[DraftTiles]:
        """Nothing to try: it uses a DFlash drafter's tiles."""
        return {}

    def ingest(self, committed: Committed | None = None) -> None:
        """Keeps keys and values of committed rows, and the hidden states behind them."""
        features, start, count = committed or self._waiting
        mixer, normed, tiles = self._mixer, self._row.normed, self.tiles
        assert isinstance(mixer, AttendingMixer)
        pair_committed(features, start, count, self._hidden_rows, self._norms, self._first, self._pairs)
        project(self._pairs, self._fc, self._sums, tiles.context)
        add_and_norm(self._sums, None, self._first_norm, self._eps, normed, "gemma")
        project(normed, self._kv, self._new_kv, tiles.context_kv)
        norm_rope_store(
            self._new_kv, mixer.head_norms, mixer.frequencies, mixer.cache.k, mixer.cache.v, self._first, count
        )

    def draft(self, count: int) -> None:
        """Drafts ``count`` tokens, one behind the other."""
        for index in range(count):
            self._pair(index)
            project(self._pairs, self._fc, self._sums, self.tiles.context, max_rows=1)
            row = self._row
            add_and_norm(self._sums, None, self._first_norm, self._eps, row.normed, "gemma", row.x, max_rows=1)
            row.run(self._layer, index)
            out = self.out
            out = replace(out, token=out.token[index:], probability=out.probability[index:], peak=out.peak[index:])
            head_rows(row.normed, self._head, None, out, self.tiles.head, max_rows=1)
            pick_rows(out, max_rows=1)

    def _pair(self, index: int) -> None:
        """Lays the token before and the hidden state that it was read from side by side."""
        embedding, scale = self._target.embed_tokens.weight, self._target.embedding_scale
        if index > 0:
            token = self.out.token[index - 1 :]
            pair_next(token, embedding, scale, self._row.normed, self._norms, self._pairs)
            return
        rows = self._rows
        pair_first(
            self.block, embedding, scale, self._hidden_rows, rows.cursor, rows.draft_width, self._norms, self._steps,
            self._pairs,
        )  # fmt: skip


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
