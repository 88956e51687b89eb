"""DSpine as kernel launches: what happens behind each layer, and the choice among candidates. ``injection`` defines
both. Its own matrices stay floats whatever the others are."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from ...kernels.decode.injection import Heard, gate_messages, inject_and_norm
from ...kernels.decode.products.dense import partial_sums, project
from ...kernels.decode.tiling.tiles import draft_tiles
from ...kernels.round.choices import CANDIDATES, Candidates, pick_candidates
from ...kernels.round.edges import score_edges, walk_edges
from ...kernels.round.lattice import befores, choose_edges
from ...kernels.toolchain.card import card_of
from ...kernels.toolchain.jit import MAX_ROWS
from ...kernels.weights.kinds import weight_of
from ...kernels.weights.plain import PlainWeight
from ...kv_cache.cache import Cache
from ..drafter import DraftBinding
from ..target import TargetModel
from .draft_pass import DFlashDraftPass
from .injection import DSpineDrafter


class DSpineDraftPass(DFlashDraftPass):
    """Ingestion and drafting of a DSpine drafter."""

    reads_logits: ClassVar[bool] = True
    _first: Tensor
    """[1, 2 * message]: what the anchor's code says to the place behind it."""

    def __init__(self, drafter: DSpineDrafter, target: TargetModel, cache: Cache, bound: DraftBinding):
        super().__init__(drafter, target, cache, bound)
        config, x, injection = drafter.config, self._buffers.x, drafter.injection
        in_8_bits = bound.head is not None or drafter.in_8_bits
        tiles = draft_tiles(False, card_of(x.device), config.sizes) if in_8_bits else self._tiles
        self._reading, self._writing = tiles.qkv, tiles.down
        parts = injection.message, injection.predecessor_gate, injection.receiver_gate
        self._saying = torch.cat([each.weight for each in parts])
        self._of_tokens = self._saying[: 2 * config.message]
        self._injection, self._codes, self._table = injection, drafter.transfer_codes, target.head
        self._heard = Heard(
            x.new_zeros(MAX_ROWS, config.rank), x.new_zeros(MAX_ROWS, 3 * config.message), injection.bias
        )
        self._messages = x.new_zeros(MAX_ROWS, config.message)
        self._written = partial_sums(self._writing, config.hidden_size, x.device)
        self._norm, self._last_write = drafter.norm.weight, injection.writes[-1].get_parameter("weight")
        self._last = len(config.layers) - 1
        self._most = min(config.block_size, MAX_ROWS) - 1

    def draft(self, count: int, tree: bool = False) -> None:
        self._first = self._of_codes(self.block[:1])
        super().draft(count, tree)

    def _behind(self, index: int, next_norm: Tensor) -> None:
        buffers, heard, last = self._buffers, self._heard, index == self._last
        eps = self._drafter.config.rms_norm_eps
        project(buffers.x, weight_of(self._injection.readouts[index]), heard.read, self._reading)
        project(heard.read, PlainWeight(self._saying), heard.products, self._reading)
        gate_messages(heard, self._first, self._messages)
        project(self._messages, weight_of(self._injection.writes[index]), self._written, self._writing)
        inject_and_norm(self._written, buffers.x, next_norm, eps, buffers.normed, keep=not last)

    def _pick(self, rows: Tensor, tree: bool) -> None:
        out, states, count = self.out, self._buffers.x, self._most
        candidates = Candidates.allocate(count, states.device)
        pick_candidates(out, candidates, self._tiles.head)
        tokens = befores(candidates.tokens, self.block[0]).flatten()
        messages = states.new_empty(len(tokens), self._messages.shape[1])
        gate_messages(self._heard, self._of_codes(tokens), messages, CANDIDATES)
        written = F.linear(messages, self._last_write)
        refined, edges = torch.empty_like(written), states.new_empty(count, CANDIDATES, CANDIDATES, dtype=torch.float32)
        inject_and_norm(written[None], states, self._norm, self._drafter.config.rms_norm_eps, refined, CANDIDATES)
        score_edges(refined, self._table, candidates.tokens, edges)
        if tree and self._choices is not None:
            choose_edges(candidates, edges, self.block, self._choices)
        else:
            walk_edges(edges, candidates.tokens, out.token, out.probability)

    def _of_codes(self, tokens: Tensor) -> Tensor:
        """[n, 2 * message]: what tokens' codes say to the place behind them."""
        return F.linear(F.embedding(tokens, self._codes), self._of_tokens)
