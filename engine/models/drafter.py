"""The interface of drafters: what any kind of drafter does for decoding. DFlash drafts a block in one pass, an MTP
assistant a token in each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from ..kernels.decode.products.head import HeadOutput
from ..kernels.decode.tiling.tile_trials import TileTrials
from ..kernels.decode.tiling.tiles import DraftTiles
from ..kernels.round.choices import DraftChoices
from ..kernels.weights.int8 import Int8Weight
from ..kernels.weights.kinds import weight_of
from ..kernels.weights.plain import PlainWeight
from ..kernels.weights.weight import Weight
from ..kv_cache.cache import Cache
from ..speculation.trees import Lattice
from .attention_backends import SDPA, Backend
from .family import DrafterConfig
from .layers import embedding, linear, use_attention
from .target import TargetModel


class Draft(NamedTuple):
    """The tokens that a drafter guesses behind an anchor."""

    ids: Tensor
    """int64 [block - 1]: the drafted token at each position after the anchor."""
    probabilities: Tensor
    """fp32 [block - 1]: the drafter's probability of each of them."""


@dataclass(frozen=True, slots=True)
class RoundRows:
    """The rows of a round that the drafter runs and takes in, int32 [1] each on the device."""

    cursor: Tensor
    """The position at which the block's anchor stands."""
    draft_width: Tensor
    """How many rows the draft has, the anchor's included."""
    ingest_start: Tensor
    """The position of the first row that enters the drafter's context."""
    ingest_rows: Tensor
    """How many rows enter the drafter's context."""


class Committed(NamedTuple):
    """The rows of a target's pass that were accepted and enter the drafter's context: the first ``rows`` of them."""

    features: Tensor
    """[16, taps * hidden]: the target's features of the rows."""
    start: Tensor
    """int32 [1] on the device: the position of the first row."""
    rows: Tensor
    """int32 [1] on the device: how many of them."""


class DraftBinding(NamedTuple):
    """What a draft pass is bound to beside models and cache: the target's tensors, and what says how it drafts."""

    features: Tensor
    """[16, taps * hidden]: the target's features of committed rows."""
    tokens: Tensor
    """int64 [16]: takes the drafts, the first in place 0."""
    rows: RoundRows
    tiles: DraftTiles | None = None
    """The tiles of its products; None for those that suit the card."""
    head: Int8Weight | None = None
    """An 8-bit copy of the head that it drafts with: then its other products are in 8 bits, too."""
    choices: DraftChoices | None = None
    """Takes each position's further choices where a tree is drafted; None for a drafter that is ``sequential``."""


class DraftPass(Protocol):
    """Ingestion and drafting as launches for a CUDA graph: nothing is read back, what is allocated is the graph's own,
    and no launch depends on data."""

    block: Tensor
    """int64 [16]: the block to draft, the anchor and then ``mask_token``."""
    mask_token: int
    out: HeadOutput
    """The drafts and their probabilities: row i is about the i-th drafted token."""

    @property
    def tiles(self) -> DraftTiles:
        """The tiles of its products."""

    def trials(self) -> TileTrials[DraftTiles]:
        """Its products, to be launched with other tiles and timed."""

    def ingest(self, committed: Committed | None = None) -> None:
        """Takes committed rows into the drafter's context. By default they come from the features to which the pass is
        bound, as its ``RoundRows`` say."""

    def draft(self, count: int, tree: bool = False) -> None:
        """Drafts what follows the anchor of ``block`` and fills ``out``. At least ``count`` tokens are wanted.
        ``tree``: fills the choices that it was bound to, of which a tree will be grown, and perhaps not ``out``."""


class Drafter(nn.Module, ABC):
    """Weights of a drafter, and its two operations: ``ingest`` features, ``draft`` a block."""

    branch_ends: ClassVar[tuple[str, ...]]
    """Endings of the names of the parameters through which branches join the residual stream."""
    read_together: ClassVar[tuple[tuple[str, ...], ...]] = (("gate_proj", "up_proj"),)
    """Names of products that read the same rows, so that a CPU computes them as one: as
    ``TargetModel.read_together``."""
    sequential: ClassVar[bool] = False
    """Whether each drafted token takes a pass of its own behind the one before; such drafts are chains, as long as
    their tokens are worth it."""

    config: DrafterConfig
    token_ids: Tensor | None
    """int64 [vocabulary of its head]: the target's id of each token that it drafts among; None where these are all of
    the target's."""

    @property
    def conditioned(self) -> bool:
        """Whether the chances of a position's choices depend on the token before, so that ``lattice`` has them."""
        return False

    def __init__(self) -> None:
        super().__init__()
        self.attention_backend = SDPA.name
        self.register_buffer("token_ids", None, persistent=False)

    def _bring_tables(self, hidden: int) -> None:
        """Makes the modules of the tables that are its own; the others are the target's."""
        tables, vocabulary = self.config.tables, self.config.vocab_size
        if tables.embedding:
            assert vocabulary is not None
            self.embed_tokens = embedding(vocabulary, hidden)
        if tables.head:
            count = tables.vocabulary or vocabulary
            assert count is not None
            self.lm_head = linear(hidden, count)
        if tables.vocabulary is not None:
            self.token_ids = torch.zeros(tables.vocabulary, dtype=torch.int64)

    def embedding_of(self, target: TargetModel) -> nn.Embedding:
        """The embedding that it reads: its own or the target's."""
        return self.embed_tokens if self.config.tables.embedding else target.embed_tokens

    def head_of(self, target: TargetModel) -> Weight:
        """The head that it drafts with: its own or the target's."""
        return weight_of(self.lm_head) if self.config.tables.head else target.head_weight

    def plain_head(self, target: TargetModel) -> Weight:
        """The same for launches, which don't take a packed copy of the target's."""
        return weight_of(self.lm_head) if self.config.tables.head else PlainWeight(target.head)

    def head_in_8_bits(self, target: TargetModel) -> Int8Weight:
        """A copy in 8 bits of the head that it drafts with, unless that is in 8 bits itself."""
        head = self.plain_head(target)
        return head if isinstance(head, Int8Weight) else Int8Weight.of(head.values)

    def tokens(self, places: Tensor) -> Tensor:
        """The target's ids of the tokens in these places of the drafter's vocabulary."""
        return places if self.token_ids is None else self.token_ids[places]

    never_packed: ClassVar[tuple[str, ...] | None] = None
    """Endings of the names of its matrices that stay floats where its products are held in 8 bits; None for a kind
    that never is."""

    @property
    def in_8_bits(self) -> bool:
        """Whether it holds its products' weights in 8 bits."""
        return False

    def products(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Names and parameters of those of its products that 8 bits could hold."""
        never_packed = self.never_packed
        for name, parameter in self.named_parameters():
            if never_packed is not None and parameter.ndim == 2 and not name.endswith(never_packed):
                yield name, parameter

    def row_order(self, name: str) -> Tensor | None:
        """For each row of the parameter ``name``, which row of the checkpoint's tensor it is; None where both have one
        order."""
        return None

    def use_attention(self, backends: Sequence[Backend]) -> None:
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

    def draft(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> Draft:
        """Drafts block_size - 1 tokens after the anchor, which stands at the cursor: by default the likeliest ones."""
        best = self.probabilities(target, anchor, block_size, cache).max(dim=-1)
        return Draft(self.tokens(best.indices), best.values)

    @abstractmethod
    def probabilities(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> Tensor:
        """fp32 [block_size - 1, vocabulary of its head]: the whole distributions at the positions behind the anchor,
        of a drafter that isn't ``conditioned``. ``tokens`` says which tokens these are."""

    def lattice(
        self, target: TargetModel, anchor: int, block_size: int, cache: Cache
    ) -> tuple[list[list[int]], Lattice]:
        """The target's ids of the candidates at each position behind the anchor, and the chances of the best of them
        behind each candidate of the position before; of a drafter that is ``conditioned``."""
        raise NotImplementedError

    @abstractmethod
    def draft_pass(self, target: TargetModel, cache: Cache, bound: DraftBinding) -> DraftPass:
        """The same drafting as launches, bound to one cache and to the tensors of ``bound``."""
