"""Picks the drafted ids from a drafter's logits."""

from __future__ import annotations

from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn

from ...kernels.decode.products.head import HeadOutput, pick_rows
from ...kernels.decode.tiling.tiles import Tiles
from ...kernels.round.choices import DraftChoices, pick_choices
from ...kernels.round.walk import CANDIDATES, reference_walk, walk
from ...kernels.toolchain.jit import MAX_ROWS
from ..drafter import Draft
from ..layers import linear


class Picker(Protocol):
    """Picks the drafted ids: ``pick`` defines how, ``launch`` does the same by kernels."""

    reads_logits: ClassVar[bool]
    """Whether ``launch`` needs ``logits`` of ``out``, which are kept only for those that do."""

    def pick(self, logits: Tensor, rows: Tensor, anchor: int, ids: Tensor | None) -> Draft:
        """The draft from fp32 logits [block - 1, vocabulary], and from the rows [block - 1, hidden] of which they were
        made. ``ids``: int64 [vocabulary], the target's id of each token; None where they are the same."""

    def launch(self, out: HeadOutput, rows: Tensor, block: Tensor, choices: DraftChoices | None, tiles: Tiles) -> None:
        """Fills ``token``, by its ``ids``, and ``probability`` of ``out``, which ``head_rows`` left with these
        ``tiles``, and ``choices`` where wanted. ``rows`` [16, hidden] are what the head read; ``block`` int64 [16]
        begins with the anchor."""


class ArgmaxPicker:
    """Picks the most likely token of each position by itself."""

    reads_logits: ClassVar[bool] = False

    def pick(self, logits: Tensor, rows: Tensor, anchor: int, ids: Tensor | None) -> Draft:
        best = logits.softmax(dim=-1).max(dim=-1)
        return Draft(best.indices if ids is None else ids[best.indices], best.values)

    def launch(self, out: HeadOutput, rows: Tensor, block: Tensor, choices: DraftChoices | None, tiles: Tiles) -> None:
        if choices is None:
            pick_rows(out)
        else:
            pick_choices(out, choices, tiles)


class CandidateSelector(nn.Module):
    """Scores, for DFlash 2, how well one token follows another."""

    def __init__(self, hidden: int, vocabulary: int, successors: int, rank: int):
        super().__init__()
        self.predecessor_codebook = nn.Parameter(torch.empty(vocabulary, rank))
        self.successor_codebook = nn.Parameter(torch.empty(successors, rank))
        self.hidden_projection = linear(hidden, rank)


class SelectorPicker:
    """Picks, for DFlash 2, among each position's likeliest tokens the one that also best follows the token drafted
    before it."""

    reads_logits: ClassVar[bool] = True

    def __init__(self, selector: CandidateSelector, most: int):
        """``most``: how many tokens a draft has, at most."""
        self._selector, self._most = selector, min(most, MAX_ROWS - 1)

    def pick(self, logits: Tensor, rows: Tensor, anchor: int, ids: Tensor | None) -> Draft:
        scores, candidates = logits.topk(min(CANDIDATES, logits.shape[-1]))
        selector = self._selector
        books = selector.predecessor_codebook, selector.successor_codebook
        return Draft(*reference_walk(scores, candidates, selector.hidden_projection(rows), *books, anchor, ids))

    def launch(self, out: HeadOutput, rows: Tensor, block: Tensor, choices: DraftChoices | None, tiles: Tiles) -> None:
        assert choices is None and out.logits is not None, "such drafts are chains"
        selector = self._selector
        scores, candidates = torch.topk(out.logits[: self._most], CANDIDATES)
        states = selector.hidden_projection(rows[: self._most])
        books = selector.predecessor_codebook, selector.successor_codebook
        walk(scores, candidates, states, *books, block, out.token, out.probability, out.ids)
