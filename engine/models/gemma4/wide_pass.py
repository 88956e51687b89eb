"""The target's pass of 32 or 64 rows, for copies. One tile of sixteen rows after the other runs what a pass of sixteen
does; each layer's experts, which are most of its bytes, run for all rows together. A row has the bits that it has in
any other pass. The rest of a layer is read once for each tile; the head is read once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...kernels.decode.experts.experts import expert_down_rows, expert_gate_up_rows
from ...kernels.decode.experts.router import Assignment
from ...kernels.decode.experts.wide_experts import WideAssignment, merge_assignments
from ...kernels.decode.norm import embed_rows
from ...kernels.decode.products.head import HeadOutput, pick_rows
from ...kernels.decode.products.wide_head import wide_head_rows
from ...kernels.decode.tiling.tiles import TargetTiles
from ...kernels.round.tile_places import TilePlaces, place_tiles
from ...kernels.toolchain.jit import MAX_ROWS
from ...kernels.weights.plain import PlainWeight
from ...kv_cache.cache import Cache
from ...speculation.trees import WIDE_ROWS
from ..family import AFTER_NORM, EMBEDDED
from .decode_pass import Gemma4DecodePass
from .kernel_layers import Gemma4Experts, Gemma4KernelLayer, kernel_layers
from .modules import Gemma4

MOST_TILES = WIDE_ROWS[-1] // MAX_ROWS


class TilePass(Gemma4DecodePass):
    """One tile of sixteen rows of a wide pass."""

    def __init__(
        self,
        number: int,
        target: Gemma4,
        cache: Cache,
        places: TilePlaces,
        taps: Sequence[int],
        tiles: TargetTiles | None,
    ):
        super().__init__(target, cache, places.cursors[number], places.rows[number], taps, tiles)
        self._number = number
        moe = target.config.moe
        assert moe is not None
        self._nothing = Assignment.allocate(moe.num_experts, moe.top_k, target.device, self.tiles.pairs)

    def share(self, rows: WideRows, first: TilePass) -> None:
        """Makes the tile use its part of the tensors that all tiles have together, and the first tile's where only one
        tile at a time needs them."""
        here = slice(self._number * MAX_ROWS, (self._number + 1) * MAX_ROWS)
        self.ids, self.features, self.out = rows.ids[here], rows.features[here], rows.out.tile(self._number)
        own, of_first = self._buffers, first._buffers
        own.normed, own.expert_input, own.pairs = rows.normed[here], rows.expert_input[here], rows.pairs[here]
        own.qkv, own.mixed, own.output, own.act = of_first.qkv, of_first.mixed, of_first.output, of_first.act
        own.router_input, own.splits, own.pair_act = of_first.router_input, of_first.splits, of_first.pair_act
        self._scratch, self._nothing = first._scratch, first._nothing
        self._assignment = rows.assignment.tile(self._number)

    def embed(self) -> None:
        target, buffers = self._target, self._buffers
        embed_rows(
            self.ids, target.embed_tokens.weight, target.embedding_scale, buffers.x, buffers.normed, self._first_norm,
            target.config.rms_norm_eps, self.norm_style,
            tiles=self.tiles.rows,
        )  # fmt: skip
        if (columns := self._feature_columns(EMBEDDED, 0)) is not None:
            columns.copy_(target.embedded(self.ids, buffers.x))

    def attend_and_choose(self, layer: Gemma4KernelLayer, routed: Gemma4Experts) -> None:
        """Runs all of a layer before its experts, the choice of experts included, and the dense MLP."""
        self._mix(layer, MAX_ROWS, None)
        forced = routed.router.forced
        forced = None if forced is None else forced[self._number * MAX_ROWS % len(forced) :]
        self._route(layer, routed, forced, self._assignment, MAX_ROWS)
        # The launch that computes this product in any other pass, here without an expert: its sums are the same.
        up_tiles, act = self._for(routed.gate_up).expert_gate_up, self._buffers.pair_act
        dense = self._dense_down(layer)
        expert_gate_up_rows(self._buffers.expert_input, routed.gate_up, self._nothing, act, up_tiles, dense)

    def run_experts(self, routed: Gemma4Experts, together: WideRows, assignment: WideAssignment) -> None:
        """Runs the experts of a layer for all tiles at once."""
        joint = assignment.together
        pairs, rows = joint.weights.numel(), len(joint.weights)
        act = together.pair_act[:pairs]
        up_tiles, down_tiles = self._for(routed.gate_up).expert_gate_up, self._for(routed.down).expert_down
        expert_gate_up_rows(together.expert_input, routed.gate_up, joint, act, up_tiles, None, rows)
        expert_down_rows(act, routed.down, joint, together.pairs[:rows], down_tiles, rows)

    def join(self, index: int, layer: Gemma4KernelLayer) -> None:
        self._join(layer, self._feature_columns(index, 0), MAX_ROWS)

    def keep_normed(self) -> None:
        """Keeps the normed rows that the head reads, where a drafter reads them, too."""
        if (columns := self._feature_columns(AFTER_NORM, 0)) is not None:
            columns.copy_(self._buffers.normed)


class WideRows:
    """The tensors that all tiles have together, a part for each."""

    def __init__(self, target: Gemma4, tiles: TargetTiles, taps: Sequence[int]):
        config, device, dtype = target.config, target.device, target.dtype
        assert config.moe is not None
        rows, hidden, moe = MOST_TILES * MAX_ROWS, config.hidden_size, config.moe

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(rows, *shape, dtype=dtype, device=device)

        self.ids = torch.zeros(rows, dtype=torch.int64, device=device)
        self.features = zeros(len(taps) * hidden)
        self.out = HeadOutput.allocate(config.vocab_size, tiles.head, device, rows=rows)
        self.normed, self.expert_input, self.pairs = zeros(hidden), zeros(hidden), zeros(moe.top_k, hidden)
        self.pair_act = zeros(moe.top_k, moe.intermediate_size).flatten(0, 1)
        self.assignment = WideAssignment.allocate(MOST_TILES, moe.num_experts, moe.top_k, device, tiles.pairs)


class Gemma4WidePass:
    """A Gemma 4's pass of 32 or 64 rows, bound to one cache and to the tensors that say which rows run."""

    def __init__(
        self,
        target: Gemma4,
        cache: Cache,
        cursor: Tensor,
        rows: Tensor,
        taps: Sequence[int] = (),
        tiles: TargetTiles | None = None,
    ):
        """``cursor`` and ``rows``, int32 [1] on the device: committed positions, and how many of up to 64 rows count.
        ``taps`` as in ``TargetModel.forward``. Merges the target's weights in place."""
        self._target, self._cursor, self._count = target, cursor, rows
        self.places = TilePlaces.allocate(MOST_TILES, target.device)
        self._tiles: list[TilePass] = []
        self._layers = kernel_layers(target, cache)
        for number in range(MOST_TILES):
            tile = TilePass(number, target, cache, self.places, taps, tiles)
            if number == 0:
                self._rows = WideRows(target, tile.tiles, taps)
            self._tiles.append(tile)
            tile.share(self._rows, self._tiles[0])  # before another one with memory of its own is made
        self.features, self.out = self._rows.features, self._rows.out

    @property
    def ids(self) -> Tensor:
        return self._rows.ids

    @ids.setter
    def ids(self, ids: Tensor) -> None:
        self._rows.ids = ids
        for tile in self._tiles:
            tile.share(self._rows, self._tiles[0])

    def forward(self, rows: int) -> None:
        """Runs the first 32 or 64 of ``ids``: fills ``out`` and ``features``, writes keys and values past the cursor.
        ``rows`` bounds how many of them count."""
        tiles = self._tiles[: rows // MAX_ROWS]
        assignment = self._rows.assignment.first(len(tiles))
        place_tiles(self._cursor, self._count, self.places)
        for tile in tiles:
            tile.embed()
        for index, layer in enumerate(self._layers):
            routed = layer.routed
            assert routed is not None
            for tile in tiles:
                tile.attend_and_choose(layer, routed)
            merge_assignments(assignment)
            tiles[0].run_experts(routed, self._rows, assignment)
            for tile in tiles:
                tile.join(index, layer)
        for tile in tiles:
            tile.keep_normed()
        head, softcap, choices = PlainWeight(self._target.head), self._target.config.logit_softcap, tiles[0].tiles
        wide_head_rows(self._rows.normed[:rows], head, softcap, self.out, choices.head)
        pick_rows(self.out, choices.rows, rows)
