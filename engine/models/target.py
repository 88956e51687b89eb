"""The interface of targets: what decoding, drafting, loading and measuring ask of any family."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from ..kernels.decode.products.head import HeadOutput
from ..kernels.decode.tiling.tile_trials import TileTrials
from ..kernels.decode.tiling.tiles import TargetTiles
from ..kernels.round.accept import AcceptedPath
from ..kernels.round.tile_places import TilePlaces
from ..kernels.round.tree_rows import TreeRows
from ..kernels.toolchain.jit import MAX_ROWS
from ..kernels.weights.plain import PlainWeight
from ..kernels.weights.weight import Weight
from ..kv_cache.cache import Cache
from .attention_backends import SDPA, Backend
from .family import TargetConfig
from .layers import use_attention


class TargetOutput(NamedTuple):
    hidden: Tensor
    """[n, hidden] after the final norm: what the head reads."""
    features: Tensor | None
    """[n, taps * hidden]: the outputs of the tapped layers side by side, what a drafter reads."""


PrefillPass = Callable[[Tensor, int, Cache, Sequence[int]], TargetOutput]
"""Does what ``TargetModel.forward`` does; only the last row's hidden state is needed."""


class DecodePass(Protocol):
    """A pass of at most 16 rows as launches for a CUDA graph: nothing is allocated or read back, and no launch depends
    on data."""

    ids: Tensor
    """int64 [16]: tokens of the rows."""
    features: Tensor
    """Outputs of the tapped layers side by side, [17, taps * hidden]; the last row is for a pass ``beside``."""
    out: HeadOutput
    tiles: TargetTiles

    def forward(self, max_rows: int = MAX_ROWS, beside: bool = False, tree: TreeRows | None = None) -> None:
        """Runs the rows in ``ids``: fills ``out`` and ``features``, writes keys and values past the cursor."""

    def keep_path(self, path: AcceptedPath) -> None:
        """Moves what else the pass has kept of a tree's accepted rows to where a chain's rows would be."""

    def trials(self) -> TileTrials[TargetTiles]:
        """Its products, to be launched with other tiles and timed."""


class WidePass(Protocol):
    """A pass of more rows as launches for a CUDA graph. Each row has the bits that it has among 16."""

    ids: Tensor
    """int64 [64]: tokens of the rows."""
    features: Tensor
    """[64, taps * hidden]: outputs of the tapped layers side by side."""
    out: HeadOutput
    """The head's output for 64 rows."""
    places: TilePlaces
    """The place of each 16 of its rows, once it ran."""

    def forward(self, rows: int) -> None:
        """Runs the first ``rows`` of ``ids``, 32 or 64: fills ``out`` and ``features``, writes keys and values past the
        cursor."""


class Router(Protocol):
    """The module that chooses the experts of a layer."""

    forced: Tensor | None
    """For measuring: fp32 scores [rows, experts] that replace the router's own, row by row and over again."""


class TargetModel(nn.Module, ABC):
    """A target: weights and forward pass. Its modules are called ``embed_tokens``, ``layers`` and ``norm``."""

    has_decode_pass: ClassVar[bool] = False
    """Whether the family has a decode pass; without one the host runs the rounds."""
    branch_ends: ClassVar[tuple[str, ...]]
    """Endings of the names of the parameters through which a layer's branches join the residual stream."""
    read_together: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Projections beside one another in a module that a kernel reads as one weight, so they must be of one kind."""

    never_packed: ClassVar[tuple[str, ...]] = ()
    """Endings of the names of parameters that stay floats, besides head and routers: small ones that decide much."""

    config: TargetConfig
    embed_tokens: nn.Embedding
    layers: nn.ModuleList
    norm: nn.Module
    embedding_scale: float = 1.0
    """The factor of embeddings; a drafter that borrows them applies it, too."""
    widest_pass: int = MAX_ROWS
    """Rows of the widest pass of device rounds: 64 where there is a ``wide_pass`` and its rows are cheap."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_backend = SDPA.name
        self.packed_head: Weight | None = None
        """A copy of the head in fewer bits, where products on the host use that."""
        self.drafters_embedding: Tensor | None = None
        """[vocab, hidden]: what the tap ``EMBEDDED`` reads where a drafter embeds tokens by a table of its own."""
        self.cache_dtype: torch.dtype | None = None
        """The dtype of keys and values, and of attention's sums; None: ``dtype``."""

    @property
    def head(self) -> Tensor:
        """[vocab, hidden]: the output head's weight. Tied models have one matrix for this and the embedding."""
        return self.embed_tokens.weight

    @property
    def head_weight(self) -> Weight:
        """The head as a weight, which products on the host take."""
        return self.packed_head or PlainWeight(self.head)

    @property
    def device(self) -> torch.device:
        """Where the layers are. The embedding may lie elsewhere (``host_embedding``)."""
        return next(self.norm.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of weights and activations."""
        return self.embed_tokens.weight.dtype

    @property
    def routers(self) -> Sequence[Router]:
        """The router of each layer with experts."""
        return ()

    def row_order(self, name: str) -> Tensor | None:
        """For each row of the parameter ``name``, which row of the checkpoint's tensor it is, int64; None where both
        have one order."""
        return None

    def use_attention(self, backends: Sequence[Backend]) -> None:
        self.attention_backend = use_attention(self, backends)

    @abstractmethod
    def prepare(self) -> None:
        """Computes what depends only on the device. Called once, after the weights are in place."""

    def when_settled(self) -> None:
        """Called once the weights of a model on a CPU are merged and stay what they are."""

    def embed(self, ids: Tensor) -> Tensor:
        """Scaled embeddings [n, hidden] of token ids [n]."""
        scaled: Tensor = self.embed_tokens(ids) * self.embedding_scale
        return scaled

    def embedded(self, ids: Tensor, x: Tensor) -> Tensor:
        """What the tap ``EMBEDDED`` takes of token ids [n], which the target itself embeds as ``x`` [n, hidden]."""
        table = self.drafters_embedding
        return x if table is None else nn.functional.embedding(ids, table)

    @abstractmethod
    def forward(self, ids: Tensor, start: int, cache: Cache, taps: Sequence[int] = ()) -> TargetOutput:
        """Runs token ids [n] at positions start .. start + n - 1 and writes into the cache; the caller moves the
        cursor. ``taps``: the layers whose outputs make up the features, ``AFTER_NORM`` for what the head reads."""

    @abstractmethod
    def logits(self, hidden: Tensor) -> Tensor:
        """fp32 logits [n, vocab] of normed rows [n, hidden]."""

    def prefill_pass(self, cache: Cache) -> PrefillPass:
        """What runs pieces of prompts into this cache: the modules, unless the family has something faster."""
        return self

    def decode_pass(
        self, cache: Cache, cursor: Tensor, rows: Tensor, taps: Sequence[int] = (), tiles: TargetTiles | None = None
    ) -> DecodePass:
        """A decode pass bound to one cache; only where ``has_decode_pass``. ``cursor`` and ``rows``, int32 [1] on the
        device: committed positions, and live rows of the 16. ``tiles`` are for measuring."""
        raise NotImplementedError

    def wide_pass(
        self, cache: Cache, cursor: Tensor, rows: Tensor, taps: Sequence[int] = (), tiles: TargetTiles | None = None
    ) -> WidePass:
        """A wide pass, with the arguments of ``decode_pass``; only where ``widest_pass`` says that the family has
        one."""
        raise NotImplementedError
