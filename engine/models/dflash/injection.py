"""DSpine: behind each of DFlash's layers, every place of a block hears from the place before it (*adjacent injection*),
so that one pass drafts tokens that know of one another; and which candidate follows which is scored by the last layer's
states as they would be behind each candidate (arXiv 2609.36173)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...errors import WeightsFailure
from ...files.json_fields import DOWNLOAD_AGAIN
from ...kernels.round.choices import reference_candidates
from ...kernels.round.edges import reference_walk_edges
from ...kernels.round.lattice import Edges, befores
from ...kv_cache.cache import Cache
from ..drafter import Draft, DraftBinding
from ..layers import linear
from ..target import TargetModel
from .draft_pass import DFlashDraftPass
from .dspine import CODES, DSpineConfig
from .modules import DFlashDrafter

UNIT = 0.5, 2.0
"""Between which lengths the middle one of the codes lies, which are unit vectors."""


class AdjacentInjection(nn.Module):
    """What a place hears from the one before it. ``rank`` channels of a layer's states, as unit vectors times its root,
    are what places read of one another, and what a token's code stands for."""

    def __init__(self, hidden: int, layers: int, rank: int, message: int):
        super().__init__()
        self.readouts = nn.ModuleList(linear(hidden, rank) for _ in range(layers))
        self.writes = nn.ModuleList(linear(message, hidden) for _ in range(layers))
        self.message = linear(rank, message)
        self.receiver_gate = linear(rank, message)
        self.predecessor_gate = linear(rank, message)
        self.bias = nn.Parameter(torch.empty(message))

    def features(self, x: Tensor, layer: int) -> Tensor:
        """[..., rank] of states x [..., hidden] behind a layer, before anything is injected."""
        unit: Tensor = F.normalize(self.readouts[layer](x).float(), dim=-1)
        return (math.sqrt(unit.shape[-1]) * unit).to(x.dtype)

    def write(self, x: Tensor, receiver: Tensor, predecessor: Tensor, layer: int) -> Tensor:
        """States x [..., hidden] with what they hear: ``receiver`` are their own features, ``predecessor`` those of the
        place before each, or its token's code."""
        gate = torch.sigmoid(self.receiver_gate(receiver) + self.predecessor_gate(predecessor) + self.bias)
        heard: Tensor = self.writes[layer](gate * self.message(predecessor))
        size: Tensor = torch.linalg.vector_norm(x.float(), dim=-1, keepdim=True) / math.sqrt(x.shape[-1])
        return x + size.to(x.dtype) * heard


class DSpineDrafter(DFlashDrafter):
    """A DSpine drafter."""

    config: DSpineConfig

    def __init__(self, config: DSpineConfig):
        super().__init__(config)
        assert config.vocab_size is not None
        self.injection = AdjacentInjection(config.hidden_size, len(config.layers), config.rank, config.message)
        self.transfer_codes = nn.Parameter(torch.empty(config.vocab_size, config.rank))

    @property
    def conditioned(self) -> bool:
        return True

    def products(self) -> Iterator[tuple[str, nn.Parameter]]:
        for name, parameter in super().products():
            if not name.startswith(("injection.", CODES)):  # small, or of which single rows are looked up
                yield name, parameter

    def prepare(self) -> None:
        super().prepare()
        if self.transfer_codes.is_meta:
            return
        middle = float(torch.linalg.vector_norm(self.transfer_codes.detach(), dim=-1, dtype=torch.float32).median())
        if not UNIT[0] < middle < UNIT[1]:
            raise WeightsFailure(
                f"This DSpine drafter's {CODES} are damaged: half of them are longer than {middle:.3g}, and they should"
                " be unit vectors.",
                DOWNLOAD_AGAIN,
            )

    def draft_pass(self, target: TargetModel, cache: Cache, bound: DraftBinding) -> DFlashDraftPass:
        from . import dspine_pass

        return dspine_pass.DSpineDraftPass(self, target, cache, bound)

    def draft(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> Draft:
        _, edges = self.edges(target, anchor, block_size, cache)
        return Draft(*reference_walk_edges(edges))

    def edges(
        self, target: TargetModel, anchor: int, block_size: int, cache: Cache, candidates: Tensor | None = None
    ) -> tuple[Tensor, Edges]:
        """Candidates are the likeliest tokens by rows alone, and only they count."""
        rows, states, features = self._block(target, anchor, block_size, cache)
        logits = self.logits(target, rows)
        tokens = reference_candidates(logits, tokens=candidates).tokens
        refined = self._refined(states[:, None], features[:, None], befores(tokens, anchor))
        return logits, Edges(tokens, refined.float() @ target.head[tokens].float().mT)

    def _refined(self, states: Tensor, features: Tensor, before: Tensor) -> Tensor:
        """Normed states [..., hidden] as if the token at the place before each were that of ``before`` [...]."""
        layer = len(self.layers) - 1
        refined: Tensor = self.norm(self.injection.write(states, features, self._codes(before), layer))
        return refined

    def _codes(self, tokens: Tensor) -> Tensor:
        return math.sqrt(self.config.rank) * self.transfer_codes[tokens]

    def _block(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> tuple[Tensor, Tensor, Tensor]:
        """Of the rows that draft: normed [n, hidden], and states [n, hidden] and features [n, rank] of the last layer
        before anything is injected behind it."""
        first = self._codes(torch.tensor([anchor], device=self.norm.weight.device))
        last: dict[int, tuple[Tensor, Tensor]] = {}

        def inject(x: Tensor, layer: int) -> Tensor:
            features = self.injection.features(x, layer)
            last[0] = x[1:], features[1:]
            heard = self.injection.write(x[1:], features[1:], torch.cat((first, features[1:-1])), layer)
            return torch.cat((x[:1], heard))

        rows = self.rows(target, anchor, block_size, cache, inject)
        return rows, *last[0]
