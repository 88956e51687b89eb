"""Passes of many texts at once through the engine's own models.

A family's modules know rows, and leave to the cache where rows stand and to a function how they attend. Here the rows
of all texts lie behind one another, the cache is a ``Pass``, and attention puts each row back into its text. So what
is trained on, and what is trained, is what the engine runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, cast

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from ...errors import UsageFailure
from ...kv_cache.cache import Cache
from ...layer_config import AttentionConfig
from ...models.attention_backends import Backend
from ...models.dflash.modules import DFlashDrafter
from ...models.target import TargetModel, TargetOutput
from .masks import MaskedAttention, Predicate

Window = int | None


class LayerRows(Protocol):
    """What one layer's attention asks of a pass; ``LayerCache`` answers the same for a single text."""

    def extend(self, start: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]: ...
    def write(self, start: int, k: Tensor, v: Tensor) -> None: ...
    def read(self, first: int, end: int) -> tuple[Tensor, Tensor]: ...


class Pass(ABC):
    """One pass over many texts, which takes a cache's place in a model's forward. Rows [texts, n] are flat there:
    [texts * n]."""

    length = 0
    attention: Sequence[LayerRows]

    @abstractmethod
    def positions(self, start: int, end: int) -> Tensor:
        """The positions of all rows, whatever the cursor says; see ``Cache.positions``."""

    @abstractmethod
    def attend(self, q: Tensor, k: Tensor, v: Tensor, causal: bool, window: Window, scale: float) -> Tensor:
        """Attends like an ``AttentionFunction``; keys and values are what the layer's ``LayerRows`` returned."""

    def note_written(self, end: int) -> None:  # noqa: B027
        """Does nothing, since there is no cursor."""

    def commit(self, length: int) -> None:  # noqa: B027
        """Does nothing, since there is no cursor."""


class Batched:
    """A model that runs passes of many texts. It no longer decodes as the engine does: its attention asks the pass."""

    def __init__(self, model: TargetModel | DFlashDrafter) -> None:
        self._running: Pass | None = None
        backend = Backend("batched", self._attend, lambda head_dim, device, dtype: None)
        model.use_attention([backend] * len(model.config.layers))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool, window: Window, scale: float) -> Tensor:
        assert self._running is not None
        return self._running.attend(q, k, v, causal, window, scale)

    def enter(self, running: Pass) -> Cache:
        """Makes ``running`` the pass in progress, and returns it as a model's forward takes it."""
        self._running = running
        return cast(Cache, running)


class BatchedTarget(Batched):
    """A target that runs passes of many texts. Raises ``UsageFailure`` for one whose layers ask no pass: with attention
    sinks, or where they recur."""

    def __init__(self, model: TargetModel) -> None:
        if any(layer.sinks for layer in model.config.attention):
            what = "A drafter can't be trained for this target: its attention has sinks, which training lacks."
            raise UsageFailure(what, "Name a target of another family.")
        if len(model.config.attention) < len(model.config.layers):
            what = "A drafter can't be trained for this target: its layers recur, which training lacks."
            raise UsageFailure(what, "Name a target of another family.")
        super().__init__(model)
        self.model = model

    def __call__(self, ids: Tensor, running: Pass, taps: Sequence[int] = ()) -> TargetOutput:
        """Runs ``ids`` [texts, n]; hidden states and features are returned as [texts, n, ...]."""
        out = self.model(ids.flatten(), 0, self.enter(running), taps)
        features = None if out.features is None else out.features.view(*ids.shape, -1)
        return TargetOutput(out.hidden.view(*ids.shape, -1), features)


class BatchedDrafter(Batched):
    def __init__(self, model: DFlashDrafter) -> None:
        super().__init__(model)
        self.model = model

    def __call__(self, features: Tensor, embedded: Tensor, running: TrainedDraft) -> Tensor:
        """Runs features [texts, m, taps * hidden] of context rows and embedded blocks [texts, n, hidden]; returns
        normed hidden states [texts, n, hidden], of which row k predicts the token at its own position."""
        cache = self.enter(running)
        running.at_context()
        self.model.ingest(features.flatten(0, 1), cache)
        running.at_blocks()
        return self.model.hidden(embedded.flatten(0, 1), cache).view(embedded.shape)


class TrainedDraft(Pass):
    """A drafter's pass: context rows first, then rows of blocks."""

    def __init__(self, context_positions: Tensor, block_positions: Tensor) -> None:
        self.context_positions, self.block_positions = context_positions, block_positions
        self.at_context()

    def at_context(self) -> None:
        self._standing = self.context_positions

    def at_blocks(self) -> None:
        self._standing = self.block_positions

    def positions(self, start: int, end: int) -> Tensor:
        return self._standing.flatten()

    def joined(self, x: Tensor) -> Tensor:
        """Keys or values of all contexts, then of all blocks, [kv_heads, keys, d] -> [texts, kv_heads, m + n, d]."""
        texts, n = self.block_positions.shape
        split = x.shape[1] - texts * n
        parts = (half.reshape(len(x), texts, -1, x.shape[2]) for half in (x[:, :split], x[:, split:]))
        return torch.cat([half.transpose(0, 1) for half in parts], dim=2)


class _Passing:
    """The rows of one layer in a pass without a cache: what is written is what attention sees."""

    def extend(self, start: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k.transpose(0, 1), v.transpose(0, 1)


class _Held:
    """The rows of one drafter layer: holds the context's keys and values, with their gradients, for the block's
    pass."""

    def write(self, start: int, k: Tensor, v: Tensor) -> None:
        self.rows = k.transpose(0, 1), v.transpose(0, 1)

    def first_visible(self, position: int) -> int:
        return 0

    def read(self, first: int, end: int) -> tuple[Tensor, Tensor]:
        return self.rows


class PackedPass(Pass):
    """A pass over whole rows of packed texts at ``positions`` [rows, length]; ``visible`` is the mask for each
    window."""

    def __init__(self, positions: Tensor, layers: Sequence[AttentionConfig], visible: Callable[[Window], Predicate]):
        rows, length = positions.shape
        self.rows_positions = positions
        windows = {layer.window for layer in layers}
        self.masks = {each: MaskedAttention(visible(each), rows, length, length, positions.device) for each in windows}
        self.attention = [cast(LayerRows, _Passing()) for _ in layers]

    def positions(self, start: int, end: int) -> Tensor:
        return self.rows_positions.flatten()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, causal: bool, window: Window, scale: float) -> Tensor:
        rows = len(self.rows_positions)
        k, v = (x.reshape(x.shape[0], rows, -1, x.shape[2]).transpose(0, 1) for x in (k, v))
        return flat(self.masks[window](*alike(by_text(q, rows), k, v), scale), q)


class PackedDraftPass(TrainedDraft):
    """A drafter's pass over blocks of packed rows; ``visible`` is the mask for each kind of layer (causal, window)."""

    def __init__(
        self,
        context_positions: Tensor,
        block_positions: Tensor,
        layers: Sequence[AttentionConfig],
        visible: Callable[[bool, Window], Predicate],
    ) -> None:
        super().__init__(context_positions, block_positions)
        rows, queries = block_positions.shape
        keys = context_positions.shape[1] + queries
        kinds = {(layer.causal, layer.window) for layer in layers}
        self.masks = {
            kind: MaskedAttention(visible(*kind), rows, queries, keys, block_positions.device) for kind in kinds
        }
        self.attention = [cast(LayerRows, _Held()) for _ in layers]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, causal: bool, window: Window, scale: float) -> Tensor:
        queries = by_text(q, len(self.block_positions))
        return flat(self.masks[causal, window](*alike(queries, self.joined(k), self.joined(v)), scale), q)


def alike(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The three tensors in the narrowest of their dtypes: under autocast norms are fp32 and products bf16."""
    dtype = q.dtype
    for x in (k, v):
        if x.dtype.itemsize < dtype.itemsize:
            dtype = x.dtype
    return q.to(dtype), k.to(dtype), v.to(dtype)


def by_text(q: Tensor, texts: int) -> Tensor:
    """Reshapes [texts * n, heads, d] to [texts, heads, n, d]."""
    return q.reshape(texts, -1, *q.shape[1:]).transpose(1, 2)


def flat(mixed: Tensor, q: Tensor) -> Tensor:
    """Reshapes [texts, heads, n, d] to [texts * n, heads * d], as an ``AttentionFunction`` returns it."""
    return mixed.transpose(1, 2).reshape(q.shape[0], -1).to(q.dtype)


def attend_grouped(q: Tensor, k: Tensor, v: Tensor, visible: Tensor, scale: float) -> Tensor:
    """Attention over a cache: queries of one group are stacked as rows, so that keys are read once per key head.

    ``visible`` is boolean [texts, n, m]; every query must see at least one key.
    """
    texts, heads, n, d = q.shape
    groups = heads // k.shape[1]
    rows = q.reshape(texts, k.shape[1], groups * n, d)
    mask = visible[:, None].repeat(1, 1, groups, 1)
    return scaled_dot_product_attention(rows, k, v, mask, scale=scale).reshape(texts, heads, n, d)
