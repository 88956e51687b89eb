"""Drafting from pairs as kernel launches (``paired.py`` defines it): a row for each token, from the newest committed
row on. A kind of drafter says what stands between a pair and what the head reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import torch
from torch import Tensor

from ..kernels.decode.products.head import HeadOutput, head_rows, pick_rows
from ..kernels.decode.tiling.tile_trials import TileTrials
from ..kernels.decode.tiling.tiles import DraftTiles, draft_tiles
from ..kernels.round.pair_rows import DraftPlaces, PairNorms, pair_committed, pair_first, pair_next
from ..kernels.toolchain.card import card_of
from ..kernels.toolchain.jit import MAX_ROWS
from ..kernels.weights.int8 import Int8Weight
from ..kernels.weights.plain import PlainWeight
from ..kernels.weights.weight import Weight
from ..kv_cache.cache import Cache
from .drafter import Committed, DraftBinding
from .paired import PairedDrafter, kept_of
from .target import TargetModel


class PairedDraftPass(ABC):
    """Ingestion and drafting, bound to one cache and to the tensors that say which rows run. With an 8-bit copy of the
    head its other products read such copies, too."""

    mask_token = 0

    def __init__(
        self,
        drafter: PairedDrafter,
        target: TargetModel,
        cache: Cache,
        bound: DraftBinding,
        norms: PairNorms,
        softcap: float | None = None,
    ):
        """See ``Drafter.draft_pass``; ``norms`` are those of a pair, ``softcap`` is that of its logits."""
        device, hidden = bound.features.device, target.config.hidden_size
        self._in_8_bits = bound.head is not None or drafter.in_8_bits
        self.tiles = bound.tiles or draft_tiles(self._in_8_bits, card_of(device))
        self.block = torch.zeros(MAX_ROWS, dtype=torch.int64, device=device)
        self._head = drafter.plain_head(target) if bound.head is None else bound.head
        out = HeadOutput.allocate(self._head.shape[0], self.tiles.head, device, keep_logits=False)
        self.out = replace(out, token=bound.tokens, ids=drafter.token_ids)
        self._rows, self._norms, self._softcap = bound.rows, norms, softcap
        self._embedding = drafter.embedding_of(target).weight
        self._scale = 1.0 if drafter.config.tables.embedding else target.embedding_scale
        self._waiting = Committed(bound.features, bound.rows.ingest_start, bound.rows.ingest_rows)
        self._keys, last_rows = kept_of(cache)
        self._hidden_rows = last_rows.rows
        self._first = torch.zeros(1, dtype=torch.int32, device=device)
        """int32 [1]: where the first committed row's pair stands."""
        self._steps = DraftPlaces.allocate(device)
        self._pairs = torch.zeros(MAX_ROWS, 2 * hidden, dtype=bound.features.dtype, device=device)

    def trials(self) -> TileTrials[DraftTiles]:
        """Nothing to try: it uses a DFlash drafter's tiles."""
        return {}

    def ingest(self, committed: Committed | None = None) -> None:
        """Keeps keys and values of committed rows, and the hidden states behind them."""
        features, start, count = committed or self._waiting
        rows = self._joined(features)
        pair_committed(rows, start, count, self._hidden_rows, self._norms, self._first, self._pairs)
        self._remember(count)

    def draft(self, count: int, tree: bool = False) -> None:
        """Drafts ``count`` tokens, one behind the other."""
        rows, residual = self._rows, self._residual()
        for index in range(count):
            if index == 0:
                pair_first(
                    self.block, self._embedding, self._scale, self._hidden_rows, rows.cursor, rows.draft_width,
                    self._norms, self._steps, self._pairs, *residual,
                )  # fmt: skip
            else:
                token = self.out.token[index - 1 :]
                pair_next(token, self._embedding, self._scale, self._before, self._norms, self._pairs, *residual)
            self._step(index)
            out = self.out
            out = replace(out, token=out.token[index:], probability=out.probability[index:], peak=out.peak[index:])
            head_rows(self.normed, self._head, self._softcap, out, self.tiles.head, max_rows=1)
            pick_rows(out, max_rows=1)

    def _read(self, weight: Weight) -> Weight:
        """What products read of a weight: it, or a copy in 8 bits."""
        return Int8Weight.of(weight.values) if self._in_8_bits and isinstance(weight, PlainWeight) else weight

    def _residual(self) -> tuple[Tensor, bool] | tuple[()]:
        """What a pair begins the residual stream in, and whether normed; nothing where a projection begins it."""
        return ()

    @property
    @abstractmethod
    def normed(self) -> Tensor:
        """[16, hidden]: the residual stream, normed for what comes next, at last for the head."""

    @property
    def _before(self) -> Tensor:
        """[16, hidden]: what the next token is paired with."""
        return self.normed

    @abstractmethod
    def _joined(self, features: Tensor) -> Tensor:
        """[16, hidden | embedding] of committed rows, from the target's features."""

    @abstractmethod
    def _remember(self, count: Tensor) -> None:
        """Writes keys and values of the first ``count`` of ``_pairs``."""

    @abstractmethod
    def _step(self, index: int) -> None:
        """Goes from the pair to what the head reads, ``normed``."""
