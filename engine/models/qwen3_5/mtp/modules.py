"""Qwen3.5's layer that drafts (MTP). From the target's hidden state behind a row and the token that comes next it makes
the hidden state that the target's head reads the token after that from; for each further draft its own takes the
target's place. It keeps keys and values of every row that counts, also of the prompt's."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ....kernels.reference.rope import inverse_frequencies, rope_table
from ....kv_cache.cache import Cache
from ....kv_cache.last_rows import LastRowsState
from ....kv_cache.layer_cache import LayerCache
from ...drafter import Draft, Drafter
from ...layers import RopeTable, linear
from ...target import TargetModel
from ..modules import CentredNorm, DecoderLayer, row_order
from .config import QwenMtpConfig


class MtpLayer(nn.Module):
    """What files call ``mtp``."""

    def __init__(self, config: QwenMtpConfig):
        super().__init__()
        hidden, eps = config.target.hidden_size, config.target.rms_norm_eps
        self.pre_fc_norm_embedding, self.pre_fc_norm_hidden = CentredNorm(hidden, eps), CentredNorm(hidden, eps)
        self.fc = linear(2 * hidden, hidden)
        self.layers = nn.ModuleList(DecoderLayer(config.target, layer) for layer in config.layers)
        self.norm = CentredNorm(hidden, eps)

    def forward(self, embedded: Tensor, hidden: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> Tensor:
        """What the head reads, [n, hidden], of rows at start .. start + n - 1: hidden states there, and embeddings of
        the tokens behind them."""
        x = self.fc(torch.cat((self.pre_fc_norm_embedding(embedded), self.pre_fc_norm_hidden(hidden)), dim=-1))
        for layer in self.layers:
            x = layer(x, start, cache, rope)
        normed: Tensor = self.norm(x)
        return normed


class QwenMtp(Drafter):
    """Drafts one token after the other. Of what is committed it knows all rows but the newest, whose next token is the
    anchor: a draft begins with that row."""

    branch_ends = ("self_attn.o_proj.weight", "down_proj.weight", "experts.down_proj")
    read_together = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
    sequential = True
    config: QwenMtpConfig

    def __init__(self, config: QwenMtpConfig):
        super().__init__()
        self.config = config
        self.mtp = MtpLayer(config)

    def row_order(self, name: str) -> Tensor | None:
        return row_order(self.config.target, name)

    def prepare(self) -> None:
        self.frequencies = inverse_frequencies(self.config.layers[0].rope, self.mtp.fc.weight.device)

    def ingest(self, features: Tensor, cache: Cache) -> None:
        hidden, embedded = features.chunk(2, dim=-1)
        start, end = cache.length, cache.length + len(features)
        _, rows = _kept(cache)
        cache.note_written(end)
        if start == 0:  # no hidden state stands before the first token
            before, embedded = hidden[:-1], embedded[1:]
        else:
            before = torch.cat((rows.at(start - 1), hidden[:-1]))
        if len(before):
            self._run(embedded, before, max(start - 1, 0), cache)
        rows.write(start, hidden)
        cache.commit(end)

    def draft(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> Draft:
        best = self.probabilities(target, anchor, block_size, cache).max(dim=-1)
        return Draft(best.indices, best.values)

    def probabilities(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> Tensor:
        newest = cache.length - 1
        hidden, found = _kept(cache)[1].at(newest), []
        token = torch.tensor([anchor], device=hidden.device)
        for step in range(block_size - 1):
            hidden = self._run(target.embed(token), hidden, newest + step, cache)
            found.append(target.logits(hidden).softmax(dim=-1))
            token = found[-1].argmax(dim=-1)
        return torch.cat(found)

    def _run(self, embedded: Tensor, hidden: Tensor, start: int, cache: Cache) -> Tensor:
        rope = rope_table(cache.positions(start, start + len(embedded)), self.frequencies)
        out: Tensor = self.mtp(embedded, hidden, start, _kept(cache)[0], rope)
        return out


def _kept(cache: Cache) -> tuple[LayerCache, LastRowsState]:
    """Keys and values, and the target's newest hidden states."""
    keys, rows = cache.layers
    assert isinstance(keys, LayerCache) and isinstance(rows, LastRowsState)
    return keys, rows
