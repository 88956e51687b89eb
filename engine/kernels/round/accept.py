"""Ends a round: decides which drafts are accepted, where the cursor moves, and when to stop. Chain and tree share one
source; a chain's rows are their own path, so its kernel reads none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...speculation.trees import Node
from ..decode.products.head import HeadOutput
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, jit, tl
from .choices import DraftChoices
from .sample import SampledRows
from .state import (
    ACCEPTED,
    AT_ANCHOR,
    AT_CURSOR,
    AT_DONE,
    AT_END,
    AT_PENDING,
    AT_RECORD,
    AT_STOPS,
    AT_WIDTH,
    CURSOR,
    DRAFT_PROBABILITIES,
    EMITTED,
    PATH,
    PROBABILITIES,
    ROWS,
    TARGET_PROBABILITIES,
    TOKENS,
    TREE_RECORD_SIZE,
    WIDTH,
    RoundState,
    list_at,
)
from .tree_rows import TreeRows


@dataclass(frozen=True, slots=True)
class AcceptedPath:
    """The rows of a pass that were committed, int32 on the device."""

    rows: Tensor
    """[16]: the anchor's row 0, and those of the accepted drafts; behind them each entry is its own number."""
    count: Tensor
    """[1]: how many of these were committed; 0 when the answer had ended."""
    before: Tensor
    """[1]: where the cursor stood, which is the anchor's slot."""

    @classmethod
    def allocate(cls, device: torch.device) -> AcceptedPath:
        def number() -> Tensor:
            return torch.zeros(1, dtype=torch.int32, device=device)

        return cls(torch.arange(MAX_ROWS, dtype=torch.int32, device=device), number(), number())


@dataclass(frozen=True, slots=True)
class DraftTree:
    """A tree of drafts on the device, and the path of it that is accepted."""

    rows: TreeRows
    parents: Tensor
    """int32 [16]: the parent of each row. A parent's children hold different tokens."""
    choices: DraftChoices
    """The drafter's choices."""
    path: AcceptedPath

    @classmethod
    def allocate(cls, choices: DraftChoices) -> DraftTree:
        device = choices.tokens.device
        parents = torch.zeros(MAX_ROWS, dtype=torch.int32, device=device)
        return cls(TreeRows.allocate(device), parents, choices, AcceptedPath.allocate(device))

    def set_tree(self, tree: Sequence[Node]) -> None:
        """Sets the rows to a tree's, given in row order."""
        self.rows.set_tree(tree)
        self.parents[1 : len(tree) + 1] = torch.tensor([node.parent for node in tree], dtype=torch.int32)


def reference_path(tree: Sequence[Node], tokens: Sequence[int], samples: Sequence[int]) -> list[int]:
    """The rows of the accepted drafts. ``tokens``: those of all rows, the anchor's first; ``samples``: the target's
    sample behind each."""
    path = [0]
    while True:
        children = [row for row, node in enumerate(tree, 1) if node.parent == path[-1]]
        right = [row for row in children if tokens[row] == samples[path[-1]]]
        if not right:
            return path[1:]
        path.append(right[0])


def accept_rows(
    state: RoundState,
    ids: Tensor,
    head: HeadOutput,
    sampled: SampledRows | None,
    drafter_probability: Tensor,
    text: Tensor | None = None,
    lanes: int = MAX_ROWS,
    tree: DraftTree | None = None,
) -> None:
    """Accepts a chain as far as it equals the target's samples, up to a stop token; moves the cursor; fills the record.
    ``ids`` int64 [17]: the rows, the last unread. ``sampled`` is None at temperature 0 (the head's best token).
    ``drafter_probability`` fp32 [16]. ``text`` int32 takes the tokens, each at its position. ``lanes``: 64 in a wide
    round, whose tensors have 64 rows in place of 16. ``tree``: rows that are one, as ``accept_tree`` has them."""
    assert len(ids) > lanes and len(drafter_probability) >= lanes and head.logits is not None
    samples = head if sampled is None else sampled
    of_tree: tuple[Tensor | None, ...] = (None,) * 7
    stride = 1
    if tree is not None:
        rows, path = tree.rows, tree.path
        stride = tree.choices.first_tokens.stride(0)
        of_tree = tree.choices.first_tokens, rows.depths, rows.paths, tree.parents, path.rows, path.count, path.before
    _accept[(1,)](
        state.numbers, ids, samples.token, samples.probability,
        head.peak if sampled is None else sampled.draft_probability, drafter_probability, head.logits, head.peak,
        *of_tree, text, VOCAB=head.logits.shape[1], GREEDY=sampled is None, TREE=tree is not None, STRIDE=stride,
        KEEPS_TEXT=text is not None, LANES=lanes, num_warps=1,
    )  # fmt: skip


def accept_tree(
    state: RoundState,
    ids: Tensor,
    tree: DraftTree,
    head: HeadOutput,
    sampled: SampledRows | None,
    text: Tensor | None = None,
) -> None:
    """``accept_rows`` for a tree, whose ``path`` it fills; ``sampled`` must hold the probabilities of first choices."""
    assert state.record.shape == (TREE_RECORD_SIZE,)
    accept_rows(state, ids, head, sampled, tree.choices.first_probabilities, text, tree=tree)


@jit
def _path_rows(right: tl.tensor, depth: tl.tensor, wanted: tl.tensor) -> tl.tensor:
    """For each depth in ``wanted``, the row at that depth that is ``right``; the depth itself where there is none."""
    row = tl.arange(0, 16)
    row_at_depth = tl.max(tl.where(right[:, None] & (depth[:, None] == wanted[None, :]), row[:, None], -1), 0)
    return tl.where(row_at_depth < 0, wanted, row_at_depth)


@jit
def _end_round(
    state: tl.tensor, before: tl.tensor, waiting: tl.tensor, last: tl.tensor, stop: tl.tensor, width: tl.tensor,
    accepted: tl.tensor, token: tl.tensor, row: tl.tensor, by_drafter: tl.tensor, given: tl.tensor, of_draft: tl.tensor,
    LANES: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """Moves the cursor behind the accepted ones of ``token`` [LANES] and one more, up to a stop token; fills the
    record. Returns how many tokens that is, at least 1 even in an idle round, which stores only its width."""
    lane = tl.arange(0, LANES)
    record = state + AT_RECORD
    ends = tl.max((token[:, None] == stop[None, :]).to(tl.int32), 1) > 0
    first_stop = tl.min(tl.where(ends & (lane <= accepted), lane, LANES), 0)
    emitted = tl.minimum(accepted, first_stop) + 1
    position = before + emitted
    tl.store(record + WIDTH, width)
    if width > 0:
        tl.store(state + AT_CURSOR, position)
        tl.store(state + AT_ANCHOR, tl.sum(tl.where(lane == emitted - 1, token, 0), 0).to(tl.int32))
        tl.store(state + AT_PENDING, waiting + emitted)
        tl.store(state + AT_DONE, ((first_stop < LANES) | (position + 1 >= last)).to(tl.int32))
        tl.store(record + ACCEPTED, tl.minimum(accepted, emitted))
        tl.store(record + EMITTED, emitted)
        tl.store(record + CURSOR, position)
        tl.store(record + list_at(ROWS, LANES) + lane, row.to(tl.int32))
        tl.store(record + list_at(TOKENS, LANES) + lane, token.to(tl.int32))
        tl.store(record + list_at(DRAFT_PROBABILITIES, LANES) + lane, by_drafter.to(tl.int32, bitcast=True))
        tl.store(record + list_at(PROBABILITIES, LANES) + lane, given.to(tl.int32, bitcast=True))
        tl.store(record + list_at(TARGET_PROBABILITIES, LANES) + lane, of_draft.to(tl.int32, bitcast=True))
    return emitted


@early_kernel
def _accept(
    state: tl.tensor, ids: tl.tensor, sampled: tl.tensor, probability: tl.tensor, draft_probability: tl.tensor,
    drafter_probability: tl.tensor, logits: tl.tensor, peak: tl.tensor, first_tokens: tl.tensor, depths: tl.tensor,
    paths: tl.tensor, parents: tl.tensor, path_rows: tl.tensor, path_count: tl.tensor, path_before: tl.tensor,
    text: tl.tensor,
    VOCAB: tl.constexpr, GREEDY: tl.constexpr, TREE: tl.constexpr, STRIDE: tl.constexpr, KEEPS_TEXT: tl.constexpr,
    LANES: tl.constexpr,
) -> None:  # fmt: skip
    wait_for_inputs()
    let_next_start()
    lane = tl.arange(0, LANES)
    # Every load comes before the first store; those that need another's result come last. Behind the last row there is
    # something to read, too.
    width = tl.load(state + AT_WIDTH)
    row = tl.load(ids + lane)
    stop = tl.load(state + AT_STOPS + tl.arange(0, 16)).to(tl.int64)
    before = tl.load(state + AT_CURSOR)
    waiting = tl.load(state + AT_PENDING)
    last = tl.load(state + AT_END)
    live = lane < width
    if TREE:
        depth = tl.load(depths + lane)
        ancestor = tl.load(paths + lane[:, None] * 16 + lane[None, :])
        parent = tl.load(parents + lane)
        asked_for = tl.load(first_tokens + lane * STRIDE)
        by_drafter = tl.load(drafter_probability + lane * STRIDE)
        # A row is right when the target's samples equal it and all rows between the anchor and it; right rows make one
        # path.
        said_before = tl.load(sampled + parent, mask=live, other=-1)
        itself = live & ((lane == 0) | (row == said_before))
        wrong = tl.sum(tl.where(itself, 0, 1 << lane), 0)
        needed = tl.sum(tl.where(lane[None, :] <= depth[:, None], 1 << ancestor, 0), 1)
        right = live & ((needed & wrong) == 0)
        accepted = tl.max(tl.where(right, depth, 0), 0)
        path = _path_rows(right, depth, lane)
        draft = tl.load(ids + _path_rows(right, depth, lane + 1), mask=lane < accepted, other=0)
        judged = lane <= accepted
    else:
        path = lane
        draft = tl.load(ids + 1 + lane)
        by_drafter = tl.load(drafter_probability + lane)
        judged = lane + 1 < width
        draft = tl.where(judged, draft, 0)
        asked_for = draft
    samples = tl.load(sampled + path, mask=live, other=-1)
    given = tl.load(probability + path)
    if GREEDY:
        asked = tl.load(logits + path * VOCAB + asked_for, mask=judged, other=0.0)
        of_draft = tl.exp(asked - tl.load(peak + path)) * given
    else:
        of_draft = tl.load(draft_probability + path)
    if not TREE:
        accepted = tl.min(tl.where(judged & (draft == samples), LANES, lane), 0)
    token = tl.where(lane < accepted, draft, samples)
    emitted = _end_round(
        state, before, waiting, last, stop, width, accepted, token, row, by_drafter, given, of_draft, LANES
    )
    if KEEPS_TEXT:
        tl.store(text + before + 1 + lane, token.to(tl.int32), mask=lane < tl.where(width > 0, emitted, 0))
    if TREE:
        tl.store(path_count, tl.where(width > 0, emitted, 0))
        if width > 0:
            tl.store(path_before, before)
            tl.store(path_rows + lane, path)
            tl.store(state + AT_RECORD + PATH + lane, path)


assert MAX_ROWS == 16, "the kernels above are written for tiles of 16 rows"
