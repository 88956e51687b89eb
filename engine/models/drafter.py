"""The interface of drafters: what any kind of drafter does for decoding. DFlash drafts a block in one pass, an MTP
assistant a token in each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from ..kernels.decode.head import HeadOutput
from ..kernels.decode.tile_trials import TileTrials
from ..kernels.decode.tiles import DraftTiles
from ..kernels.round.choices import Choices
from ..kernels.weights.int8 import Int8Weight
from ..kv_cache.cache import Cache
from .attention_backends import SDPA, Backend
from .family import DrafterConfig
from .layers import use_attention
from .target import TargetModel


class Draft(NamedTuple):
    ids: Tensor
    """int64 [block - 1]: the drafted token at each position after the anchor."""
    probabilities: Tensor
    """fp32 [block - 1]: the drafter's probability of each of them."""


@dataclass(frozen=True, slots=True)
class RoundRows:
    """The rows of a round that the drafter runs and takes in, int32 [1] each on the device."""

    cursor: Tensor
    """The block's first position."""
    draft_width: Tensor
    ingest_start: Tensor
    ingest_rows: Tensor


class Committed(NamedTuple):
    """Rows of a pass that enter the drafter's context: the first ``rows``, int32 [1] on the device as ``start``."""

    features: Tensor
    """[16, taps * hidden]."""
    start: Tensor
    """The position of the first row."""
    rows: Tensor


class DraftPass(Protocol):
    """Ingestion and drafting as launches for a CUDA graph: nothing is allocated or read back, and no launch depends on
    data."""

    block: Tensor
    """int64 [16]: the block to draft, the anchor and then ``mask_token``."""
    mask_token: int
    out: HeadOutput
    """Row i is about the i-th drafted token."""

    @property
    def tiles(self) -> DraftTiles:
        """The tiles of its products."""

    def trials(self) -> TileTrials[DraftTiles]:
        """Its products, to be launched with other tiles and timed."""

    def ingest(self, committed: Committed | None = None) -> None:
        """Takes committed rows into the drafter's context. By default they come from the features to which the pass is
        bound, as its ``RoundRows`` say."""

    def draft(self, count: int) -> None:
        """Drafts what follows the anchor of ``block`` and fills ``out``. At least ``count`` tokens are wanted."""


class Drafter(nn.Module, ABC):
    """Weights of a drafter, and its two operations: ``ingest`` features, ``draft`` a block."""

    branch_ends: ClassVar[tuple[str, ...]]
    """See ``TargetModel.branch_ends``."""
    read_together: ClassVar[tuple[tuple[str, ...], ...]] = (("gate_proj", "up_proj"),)
    """See ``TargetModel.read_together``; used on a CPU."""
    sequential: ClassVar[bool] = False
    """Whether each drafted token takes a pass of its own behind the one before; such drafts are chains, as long as
    their tokens are worth it."""

    config: DrafterConfig

    @property
    def chained(self) -> bool:
        """Whether what it drafts at a position depends on what it drafted before, so that a position has only one
        choice."""
        return self.sequential

    def __init__(self) -> None:
        super().__init__()
        self.attention_backend = SDPA.name

    never_packed: ClassVar[tuple[str, ...] | None] = None
    """Endings of the names of its matrices that stay floats where its products are held in 8 bits; None for a kind
    that never is."""

    @property
    def in_8_bits(self) -> bool:
        """Whether it holds its products' weights in 8 bits."""
        return False

    def products(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Names and parameters of those of its products that 8 bits could hold."""
        kept = self.never_packed
        for name, parameter in self.named_parameters():
            if kept is not None and parameter.ndim == 2 and not name.endswith(kept):
                yield name, parameter

    def row_order(self, name: str) -> Tensor | None:
        """As ``TargetModel.row_order``."""
        return None

    def use_attention(self, backends: Sequence[Backend]) -> None:
        """Sets one attention backend for each layer."""
        self.attention_backend = use_attention(self, backends)

    @abstractmethod
    def prepare(self) -> None:
        """Computes what depends only on the device. Called once, after the weights are in place."""

    def new_cache(self, target: Cache, max_context: int, slack: int, dtype: torch.dtype, device: torch.device) -> Cache:
        """An empty cache for what it keeps of a text whose target's cache is ``target``."""
        return Cache(self.config.states, max_context, slack, dtype, device)

    @abstractmethod
    def ingest(self, features: Tensor, cache: Cache) -> None:
        """Appends committed rows, features [n, taps * hidden], to the context at the cursor, and moves the cursor."""

    @abstractmethod
    def draft(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> Draft:
        """Drafts block_size - 1 tokens after the anchor, which stands at the cursor."""

    @abstractmethod
    def probabilities(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> Tensor:
        """fp32 [block_size - 1, vocabulary]: the whole distributions at the positions behind the anchor."""

    @abstractmethod
    def draft_pass(
        self,
        target: TargetModel,
        cache: Cache,
        features: Tensor,
        tokens: Tensor,
        rows: RoundRows,
        tiles: DraftTiles | None = None,
        head: Int8Weight | None = None,
        choices: Choices | None = None,
    ) -> DraftPass:
        """A draft pass bound to one cache. ``features`` [16, taps * hidden] are the target's; ``tokens`` int64 [16]
        takes the drafts, the first in place 0. ``head``: an 8-bit copy of the target's, for a drafter that borrows it;
        ``choices`` take further choices, where it isn't ``sequential``; ``tiles`` are for measuring."""
