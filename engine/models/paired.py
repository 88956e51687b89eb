"""Drafters that pair the target's hidden state behind a row with the token that comes next: from a pair their layers,
mostly one, make what the head reads the token after that from. For each further draft their own hidden state takes the
target's place. They keep keys and values of every pair that counts, also of the prompt's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..kernels.reference.rope import rope_table
from ..kv_cache.cache import Cache
from ..kv_cache.last_rows import LastRowsState
from ..kv_cache.layer_cache import LayerCache
from .drafter import Drafter
from .layers import RopeTable
from .target import TargetModel


class Pairs(NamedTuple):
    """Rows of pairs, [n, hidden] each."""

    embedded: Tensor
    """The embeddings of tokens, as the tap ``EMBEDDED`` has them."""
    hidden: Tensor
    """What stands behind the row before each."""


class Drafted(NamedTuple):
    """What a pass over one pair yields."""

    logits: Tensor
    """fp32 [1, vocabulary of the head]."""
    hidden: Tensor
    """[1, hidden]: what the next token is paired with."""


class PairedDrafter(Drafter):
    """Drafts one token after the other. Of what is committed it knows all rows but the newest, whose next token is the
    anchor: a draft begins with that row."""

    sequential = True
    frequencies: Tensor

    @abstractmethod
    def rows_of(self, features: Tensor) -> Pairs:
        """What is paired of committed rows: each row's own token, and what stands behind it."""

    @abstractmethod
    def remember(self, pairs: Pairs, start: int, keys: Sequence[LayerCache], rope: RopeTable) -> None:
        """Writes the keys and values of pairs at positions from ``start`` on, in each layer. Later ones see nothing
        else of them."""

    @abstractmethod
    def step(
        self, target: TargetModel, pair: Pairs, position: int, keys: Sequence[LayerCache], rope: RopeTable
    ) -> Drafted:
        """Drafts the token behind one pair, which stands at ``position``."""

    def ingest(self, features: Tensor, cache: Cache) -> None:
        embedded, hidden = self.rows_of(features)
        start, end = cache.length, cache.length + len(features)
        keys, rows = kept_of(cache)
        cache.note_written(end)
        if start == 0:  # no hidden state stands before the first token
            before, embedded = hidden[:-1], embedded[1:]
        else:
            before = torch.cat((rows.at(start - 1), hidden[:-1]))
        if len(before):
            first = max(start - 1, 0)
            self.remember(Pairs(embedded, before), first, keys, self._rope(first, len(before), cache))
        rows.write(start, hidden)
        cache.commit(end)

    def probabilities(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> Tensor:
        newest = cache.length - 1
        keys, rows = kept_of(cache)
        hidden, drafts = rows.at(newest), []
        token = torch.tensor([anchor], device=hidden.device)
        for position in range(newest, newest + block_size - 1):
            pair = Pairs(self.embed(target, token), hidden)
            logits, hidden = self.step(target, pair, position, keys, self._rope(position, 1, cache))
            drafts.append(logits.softmax(dim=-1))
            token = self.tokens(drafts[-1].argmax(dim=-1))
        return torch.cat(drafts)

    def embed(self, target: TargetModel, ids: Tensor) -> Tensor:
        """Embeddings [n, hidden] of tokens, as the tap ``EMBEDDED`` has them."""
        return self.embed_tokens(ids) if self.config.tables.embedding else target.embed(ids)

    def _rope(self, start: int, count: int, cache: Cache) -> RopeTable:
        return rope_table(cache.positions(start, start + count), self.frequencies)


def kept_of(cache: Cache) -> tuple[list[LayerCache], LastRowsState]:
    """What such a drafter's cache holds: each layer's keys and values, and what stands behind the newest rows."""
    rows = cache.layers[-1]
    assert isinstance(rows, LastRowsState)
    return cache.attention, rows
