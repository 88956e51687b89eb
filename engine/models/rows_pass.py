"""What the decode passes of all families share: at most 16 rows as kernel launches, for decoding rounds. Nothing is
allocated or read back and no launch depends on the data, so a CUDA graph can capture it. Rows come from ``ids`` and
stand at the cursor; their number may change between replays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from ..commands import WeightFormat
from ..kernels.decode.attention.attend_rows import AttendScratch, attend_rows
from ..kernels.decode.norm import NormStyle, embed_rows
from ..kernels.decode.products.dense import partial_sums, project
from ..kernels.decode.products.head import HeadOutput, head_rows, pick_rows
from ..kernels.decode.tiling.target_tiles import target_tiles, tiles_of_plain
from ..kernels.decode.tiling.tile_trials import TileTrials
from ..kernels.decode.tiling.tiles import TargetTiles
from ..kernels.round.accept import AcceptedPath
from ..kernels.round.tree_rows import TreeRows
from ..kernels.shared.heads import HeadNorms
from ..kernels.toolchain.card import card_of
from ..kernels.toolchain.jit import MAX_ROWS
from ..kernels.toolchain.memory_split import SPLIT
from ..kernels.weights.kinds import format_of
from ..kernels.weights.plain import PlainWeight
from ..kernels.weights.weight import Weight
from ..kv_cache.cache import Cache
from ..kv_cache.layer_cache import LayerCache
from ..layer_config import AttentionConfig
from .family import AFTER_NORM, EMBEDDED, TargetConfig
from .packed import format_of_target
from .target import TargetModel


class AddedTerms(NamedTuple):
    """What some families' attention adds to its products and scores, as kernels read it."""

    qkv: Tensor | None = None
    """Biases [columns] of queries, keys and values, side by side as their weights."""
    output: Tensor | None = None
    """[hidden]: the bias of the output projection."""
    sinks: Tensor | None = None
    """[heads]: a score for each head that joins the softmax beside those of the keys, but mixes in no value."""


NOTHING_ADDED = AddedTerms()


class AttendingLayer(Protocol):
    """A layer as kernels read it, up to the end of its attention."""

    @property
    def config(self) -> AttentionConfig: ...
    @property
    def cache(self) -> LayerCache: ...
    @property
    def frequencies(self) -> Tensor: ...
    @property
    def qkv(self) -> Weight: ...
    @property
    def head_norms(self) -> HeadNorms: ...
    @property
    def output(self) -> Weight: ...
    @property
    def added(self) -> AddedTerms: ...


Layer = TypeVar("Layer")


class RowBuffers:
    """The tensors that one launch leaves for the next; all layers share them. Activations have the model's dtype."""

    def __init__(self, config: TargetConfig, tiles: TargetTiles, dtype: torch.dtype, device: torch.device):
        self._dtype, self._device = dtype, device
        hidden = config.hidden_size
        self.x = self.rows(hidden)
        """[16, hidden]: the residual stream."""
        self.normed = self.rows(hidden)
        """[16, hidden]: the residual stream, normed for the next product."""
        self.qkv = {layer: self.rows(layer.qkv_columns) for layer in set(config.attention)}
        self.mixed = {layer: self.rows(layer.num_heads * layer.head_dim) for layer in set(config.attention)}
        self.output = partial_sums(tiles.output, hidden, device)

    def rows(self, *shape: int) -> Tensor:
        return torch.zeros(MAX_ROWS, *shape, dtype=self._dtype, device=self._device)


class LayerLaunches(ABC, Generic[Layer]):
    """A model's layers as launches, bound to one cache and to the tensors that say which rows run."""

    norm_style: NormStyle
    buffers_of: ClassVar[type[RowBuffers]] = RowBuffers

    def __init__(
        self,
        config: TargetConfig,
        cache: Cache,
        cursor: Tensor,
        rows: Tensor,
        tiles: TargetTiles,
        of_formats: Mapping[WeightFormat, TargetTiles],
        dtype: torch.dtype,
    ):
        """``cursor`` and ``rows``, int32 [1] on the device: committed positions, and live rows of the 16. ``tiles`` are
        those of the model's format; ``of_formats``: of each that its weights may have."""
        self.cursor, self.rows, self.tiles = cursor, rows, tiles
        self._config, self._tiles = config, of_formats
        self._buffers = self.buffers_of(config, tiles, dtype, cursor.device)
        capacities = [layer.capacity for layer in cache.attention]
        self._scratch = AttendScratch(config.attention, capacities, cursor.device)

    @abstractmethod
    def _mix(self, layer: Layer, max_rows: int, tree: TreeRows | None) -> None:
        """Goes from the normed residual to the input of the feed-forward part."""

    @abstractmethod
    def _feed_forward(self, layer: Layer, features: Tensor | None, max_rows: int) -> None:
        """Goes from there to the layer's output, normed for the next layer."""

    def _attend(self, layer: AttendingLayer, max_rows: int, tree: TreeRows | None) -> None:
        """Goes from the normed residual to the partial sums of attention's output."""
        config, buffers = layer.config, self._buffers
        qkv, mixed = buffers.qkv[config], buffers.mixed[config]
        added = layer.added
        project(buffers.normed, layer.qkv, qkv, self._for(layer.qkv).qkv, max_rows, added.qkv)
        self._attend_projected(layer, qkv, mixed, max_rows, tree)
        project(mixed, layer.output, buffers.output, self._for(layer.output).output, max_rows, added.output)

    def _attend_projected(
        self, layer: AttendingLayer, qkv: Tensor, mixed: Tensor, max_rows: int, tree: TreeRows | None = None
    ) -> None:
        attend_rows(
            qkv, layer.head_norms, layer.frequencies, layer.cache.k, layer.cache.v, self.cursor, self.rows,
            layer.config, mixed, self._scratch,
            max_rows=max_rows, tree=tree, sinks=layer.added.sinks, lets_go=self._for(layer.output).lets_go,
        )  # fmt: skip

    def _for(self, weight: Weight) -> TargetTiles:
        """The tiles for the format of a weight: a file may leave some products in bf16."""
        return self._tiles[format_of(weight)]


class RowsPass(LayerLaunches[Layer]):
    """A target's forward pass, bound to one cache and to the tensors that say which rows run."""

    def __init__(
        self,
        target: TargetModel,
        cache: Cache,
        cursor: Tensor,
        rows: Tensor,
        taps: Sequence[int] = (),
        tiles: TargetTiles | None = None,
    ):
        """``cursor`` and ``rows``, int32 [1] on the device: committed positions, and live rows of the 16. ``taps`` as
        in ``TargetModel.forward``. Merges the target's weights in place."""
        self._target = target
        self._first_norm, self._layers = self._read(cache)
        config, device, dtype = target.config, target.device, target.dtype
        moe, card, packed, sizes = config.moe, card_of(device), format_of_target(target), config.sizes
        tiles = target_tiles(moe, card, packed, sizes) if tiles is None else tiles
        SPLIT.share(tiles.shared, card)
        of_formats = {"bf16": tiles_of_plain(tiles, moe, card, packed, sizes), packed: tiles}
        super().__init__(config, cache, cursor, rows, tiles, of_formats, dtype)
        self.ids = torch.zeros(MAX_ROWS, dtype=torch.int64, device=device)
        """int64 [16]: the tokens of the rows, to be filled before a pass. Behind ``rows`` there may be any valid
        tokens."""
        self.features = torch.zeros(MAX_ROWS + 1, len(taps) * config.hidden_size, dtype=dtype, device=device)
        """Outputs of the tapped layers side by side, [17, taps * hidden]; the last row is for a pass ``beside``."""
        self.out = HeadOutput.allocate(config.vocab_size, tiles.head, device)
        """Logits, and the most likely token of each row."""
        self._taps = {layer: number for number, layer in enumerate(taps)}

    def forward(self, max_rows: int = MAX_ROWS, beside: bool = False, tree: TreeRows | None = None) -> None:
        """Runs the rows of ``ids``, in a chain or as ``tree`` says: fills ``out`` and ``features``, writes keys and
        values past the cursor. ``max_rows`` bounds the rows of any replay and changes no bit of a row. ``beside``: the
        features of a one-row pass go behind the sixteen places, which hold what the drafter has yet to take in."""
        target, buffers, config = self._target, self._buffers, self._target.config
        embed_rows(
            self.ids, target.embed_tokens.weight, target.embedding_scale, buffers.x, buffers.normed, self._first_norm,
            config.rms_norm_eps, self.norm_style,
            tiles=self.tiles.rows, max_rows=max_rows,
        )  # fmt: skip
        first_row = MAX_ROWS if beside else 0
        if (columns := self._feature_columns(EMBEDDED, first_row)) is not None:
            columns[:max_rows].copy_(target.embedded(self.ids[:max_rows], buffers.x[:max_rows]))
        for index, layer in enumerate(self._layers):
            self._mix(layer, max_rows, tree)
            self._feed_forward(layer, self._feature_columns(index, first_row), max_rows)
        if (columns := self._feature_columns(AFTER_NORM, first_row)) is not None:
            columns[:max_rows].copy_(buffers.normed[:max_rows])
        head = PlainWeight(target.head)
        head_rows(buffers.normed, head, config.logit_softcap, self.out, self.tiles.head, max_rows)
        pick_rows(self.out, self.tiles.rows, max_rows)

    def keep_path(self, path: AcceptedPath) -> None:
        pass  # keys, values and features are all that most layers keep of rows

    @abstractmethod
    def _read(self, cache: Cache) -> tuple[Tensor, Sequence[Layer]]:
        """The weight of the target's first norm, and the target's layers as kernels read them."""

    @abstractmethod
    def trials(self) -> TileTrials[TargetTiles]:
        """Its products, to be launched with other tiles and timed."""

    def _feature_columns(self, index: int, first_row: int) -> Tensor | None:
        """A tapped layer's part of the features, from a row on; None where the layer isn't tapped."""
        if index not in self._taps:
            return None
        hidden = self._target.config.hidden_size
        return self.features[first_row:, self._taps[index] * hidden :][:, :hidden]
