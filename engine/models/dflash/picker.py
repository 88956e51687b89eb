"""Picks the drafted ids from a drafter's logits."""

from __future__ import annotations

from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn

from ...kernels.decode.products.head import HeadOutput, pick_rows
from ...kernels.decode.tiling.tiles import Tiles
from ...kernels.round.choices import Candidates, DraftChoices, pick_candidates, pick_choices, reference_candidates
from ...kernels.round.lattice import Edges, Tables, choose_edges, reference_edges
from ...kernels.round.walk import reference_walk, walk
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


class ConditionedPicker(Picker, Protocol):
    """Picks each token by the one before it, so that each has choices of its own behind it."""

    others_count: ClassVar[bool]
    """Whether tokens that are no candidates have a chance, too."""

    def edges(self, candidates: Candidates, rows: Tensor, anchor: int, ids: Tensor | None) -> Edges:
        """The scores of candidates behind those of the position before, of which ``launch`` fills ``choices``. Beside
        them it takes what ``pick`` takes."""


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
    others_count: ClassVar[bool] = False

    def __init__(self, selector: CandidateSelector, most: int):
        """``most``: how many tokens a draft has, at most."""
        self._selector, self._most = selector, min(most, MAX_ROWS - 1)

    def _tables(self, rows: Tensor) -> Tables:
        selector = self._selector
        books = selector.predecessor_codebook, selector.successor_codebook
        return Tables(*books, selector.hidden_projection(rows))

    def pick(self, logits: Tensor, rows: Tensor, anchor: int, ids: Tensor | None) -> Draft:
        candidates, (before, after, states) = reference_candidates(logits), self._tables(rows)
        assert states is not None
        return Draft(*reference_walk(candidates.logits, candidates.tokens, states, before, after, anchor, ids))

    def edges(self, candidates: Candidates, rows: Tensor, anchor: int, ids: Tensor | None) -> Edges:
        return reference_edges(candidates, self._tables(rows), anchor, ids)

    def launch(self, out: HeadOutput, rows: Tensor, block: Tensor, choices: DraftChoices | None, tiles: Tiles) -> None:
        candidates = Candidates.allocate(self._most, rows.device)
        pick_candidates(out, candidates, tiles)
        tables = self._tables(rows[: self._most])
        if choices is not None:
            choose_edges(candidates, tables, block, choices, out.ids)
            return
        before, after, states = tables
        assert states is not None
        walk(candidates, states, before, after, block, out.token, out.probability, out.ids)
