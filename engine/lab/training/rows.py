"""Packs conversations back to back into rows of a fixed length, each seeing only itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from .masks import Predicate

RESPONSE_WEIGHT = 1.0


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids and the weight of each one's loss: 1 where the model speaks, 0 for markup that it is given."""

    ids: list[int]
    weights: list[float]


RowSource = Callable[[random.Random], Encoded]
"""Draws the next conversation to train on."""


@dataclass(frozen=True, slots=True)
class TextRows:
    """A batch of packed rows; every field is [rows, length]."""

    ids: Tensor
    positions: Tensor
    """Positions, which restart at 0 with every document."""
    documents: Tensor
    """The number of the document within its row."""
    weights: Tensor
    """The loss weight of predicting the token at this place."""

    @property
    def supervised(self) -> Tensor:
        """bool [rows, length]: whether the model itself wrote the token."""
        return self.weights == RESPONSE_WEIGHT

    def to(self, device: torch.device) -> TextRows:
        def move(x: Tensor) -> Tensor:
            return x.to(device, non_blocking=True)

        return TextRows(move(self.ids), move(self.positions), move(self.documents), move(self.weights))


def causal_within_documents(rows: TextRows, window: int | None) -> Predicate:
    """The mask in which a token sees itself and earlier tokens of its document; with a window only the last ``window``
    of them."""
    documents = rows.documents

    def visible(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        same = (documents[batch, query] == documents[batch, key]) & (key <= query)
        return same if window is None else same & (query - key < window)

    return visible


class RowDataset(Dataset[tuple[Tensor, ...]]):
    """Packs rows: row ``n`` depends only on the seed and ``n``."""

    def __init__(
        self, source: RowSource | Sequence[Encoded], seed: str, count: int, length: int, skipped: int = 0
    ) -> None:
        """``count`` rows of ``length`` tokens, of which the first ``skipped`` are left out because they were used
        before. If ``source`` is a sequence, each conversation comes once, in random order, before any comes again."""
        self.source = source
        self.turn = [] if callable(source) else _in_turn(source, seed, length)
        self.seed = seed
        self.count = count
        self.length = length
        self.skipped = skipped

    def __len__(self) -> int:
        return self.count - self.skipped

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        rng = random.Random(f"{self.seed}/{index + self.skipped}")
        ids: list[int] = []
        weights: list[float] = []
        positions: list[int] = []
        documents: list[int] = []
        for number, conversation in enumerate(self._conversations(index + self.skipped, rng)):
            ids += conversation.ids
            weights += conversation.weights
            positions += range(len(conversation.ids))
            documents += [number] * len(conversation.ids)
            if len(ids) >= self.length:  # the last conversation is cut off at the end of the row
                break
        row = ids[: self.length], positions[: self.length], documents[: self.length]
        return *(torch.tensor(values) for values in row), torch.tensor(weights[: self.length])

    def _conversations(self, row: int, rng: random.Random) -> Iterator[Encoded]:
        """Yields the conversations of a row, without end."""
        if callable(self.source):
            while True:
                yield self.source(rng)
        for index in self.turn[row % len(self.turn)]:
            yield self.source[index]
        while True:  # the last row of a turn is short
            yield self.source[rng.randrange(len(self.source))]


def _in_turn(conversations: Sequence[Encoded], seed: str, length: int) -> list[list[int]]:
    """For each row of ``length`` tokens, the indices of the conversations that it holds."""
    order = list(range(len(conversations)))
    random.Random(f"{seed}/turn").shuffle(order)
    rows: list[list[int]] = []
    room = 0
    for index in order:
        if room <= 0:
            rows.append([])
            room = length
        rows[-1].append(index)
        room -= len(conversations[index].ids)
    return rows


def batches(dataset: RowDataset, rows: int, device: torch.device) -> Iterator[TextRows]:
    """Yields batches on the device."""
    for fields in DataLoader(dataset, batch_size=rows, pin_memory=device.type == "cuda", drop_last=True):
        yield TextRows(*fields).to(device)
