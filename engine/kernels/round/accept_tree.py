"""Where a round ends whose drafts were a tree: which path of it the target says. Then as ``accept``, which see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...speculation.trees import CHOICES, Node
from ..decode.head import HeadOutput
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, jit, tl
from .accept import (
    ACCEPTED,
    CURSOR,
    DRAFT_PROBABILITIES,
    EMITTED,
    PROBABILITIES,
    RECORD_SIZE,
    ROWS,
    TARGET_PROBABILITIES,
    TOKENS,
    WIDTH,
    RoundState,
    end_round,
)
from .choices import Choices
from .sample import SampledRows
from .tree_rows import TreeRows

PATH, PARENTS, NUMBERS, DRAFTS = (RECORD_SIZE + 16 * part for part in range(4))
"""Where a record's further lists of 16 begin: the rows of the accepted path (entry 0 is the anchor's), the row that
each row follows, which of its position's choices it is, and the first choice of each position."""
CHOICE_PROBABILITIES = RECORD_SIZE + 16 * 4
"""Where it holds what the drafter gave each choice of each position: fp32 [16, 4]."""
TREE_RECORD_SIZE = CHOICE_PROBABILITIES + MAX_ROWS * CHOICES
"""Of ``RoundState.record`` where trees are drafted. What a chain's record holds means the same, with this difference:
emitted tokens and their probabilities are those of the accepted path, and drafts are first choices, by position. What
the target gave each draft is what the accepted path's row before it says, so it is known up to one behind that path."""


@dataclass(frozen=True, slots=True)
class AcceptedPath:
    """Which rows of a pass were committed, int32 on the device."""

    rows: Tensor
    """[16]: the anchor's, 0, and those of the accepted drafts; behind them each entry's own number."""
    count: Tensor
    """[1]: so many of these were committed; 0 when the answer had ended."""
    before: Tensor
    """[1]: where the cursor stood, which is the anchor's slot."""

    @classmethod
    def allocate(cls, device: torch.device) -> AcceptedPath:
        def number() -> Tensor:
            return torch.zeros(1, dtype=torch.int32, device=device)

        return cls(torch.arange(MAX_ROWS, dtype=torch.int32, device=device), number(), number())


def reference_path(tree: Sequence[Node], tokens: Sequence[int], said: Sequence[int]) -> list[int]:
    """Rows of the drafts that the target says, one behind the other.

    ``tokens`` and ``said`` of each row, the anchor's first: what stands there, and what the target says behind it.
    """
    path = [0]
    while True:
        children = [row for row, node in enumerate(tree, 1) if node.parent == path[-1]]
        right = [row for row in children if tokens[row] == said[path[-1]]]
        if not right:
            return path[1:]
        path.append(right[0])


def accept_tree(
    state: RoundState,
    ids: Tensor,
    tree: TreeRows,
    parents: Tensor,
    choices: Choices,
    head: HeadOutput,
    sampled: SampledRows | None,
    path: AcceptedPath,
) -> None:
    """Accepts the drafts of a tree that the target says, up to a stop token; moves the cursor; fills record and path.

    ``ids`` int64 [16 or more]: the rows. ``parents`` int32 [16]: the row that each follows, whose other children hold
    other tokens. ``sampled`` is None at temperature 0, where the head's most likely tokens are the target's; it must
    have been asked for the first choices. A scripted acceptance needs a tree that is a chain.
    """
    assert head.logits is not None
    assert state.record.shape == (TREE_RECORD_SIZE,)
    said = head if sampled is None else sampled
    _accept_tree[(1,)](
        ids,
        tree.depths,
        tree.paths,
        parents,
        choices.tokens,
        choices.probabilities,
        said.token,
        said.probability,
        head.peak if sampled is None else sampled.draft_probability,
        head.logits,
        head.peak,
        state.cursor,
        state.anchor,
        state.end,
        state.done,
        state.pending,
        state.width,
        state.script_length,
        state.script_place,
        state.script,
        state.stops,
        state.record,
        path.rows,
        path.count,
        path.before,
        VOCAB=head.logits.shape[1],
        GREEDY=sampled is None,
        CHOICES=CHOICES,
        WIDTH=WIDTH,
        ACCEPTED=ACCEPTED,
        EMITTED=EMITTED,
        CURSOR=CURSOR,
        ROWS=ROWS,
        TOKENS=TOKENS,
        DRAFT_PROBABILITIES=DRAFT_PROBABILITIES,
        PROBABILITIES=PROBABILITIES,
        TARGET_PROBABILITIES=TARGET_PROBABILITIES,
        PATH=PATH,
        num_warps=1,
    )


@jit
def _path_rows(right: tl.tensor, depth: tl.tensor, wanted: tl.tensor) -> tl.tensor:
    """The right row of each wanted depth, where there is one; elsewhere the number of the depth."""
    row = tl.arange(0, 16)
    found = tl.max(tl.where(right[:, None] & (depth[:, None] == wanted[None, :]), row[:, None], -1), 0)
    return tl.where(found < 0, wanted, found)


@early_kernel
def _accept_tree(
    ids: tl.tensor,
    depths: tl.tensor,
    paths: tl.tensor,
    parents: tl.tensor,
    choice_tokens: tl.tensor,
    choice_probabilities: tl.tensor,
    sampled: tl.tensor,
    probability: tl.tensor,
    draft_probability: tl.tensor,
    logits: tl.tensor,
    peak: tl.tensor,
    cursor: tl.tensor,
    anchor: tl.tensor,
    end: tl.tensor,
    done: tl.tensor,
    pending: tl.tensor,
    width_in: tl.tensor,
    script_length: tl.tensor,
    script_place: tl.tensor,
    script: tl.tensor,
    stops: tl.tensor,
    record: tl.tensor,
    path_rows: tl.tensor,
    path_count: tl.tensor,
    path_before: tl.tensor,
    VOCAB: tl.constexpr,
    GREEDY: tl.constexpr,
    CHOICES: tl.constexpr,
    WIDTH: tl.constexpr,
    ACCEPTED: tl.constexpr,
    EMITTED: tl.constexpr,
    CURSOR: tl.constexpr,
    ROWS: tl.constexpr,
    TOKENS: tl.constexpr,
    DRAFT_PROBABILITIES: tl.constexpr,
    PROBABILITIES: tl.constexpr,
    TARGET_PROBABILITIES: tl.constexpr,
    PATH: tl.constexpr,
) -> None:
    wait_for_inputs()
    let_next_start()
    lane = tl.arange(0, 16)
    # Every load before the first store, those that need another's result behind the others.
    width = tl.load(width_in)
    row = tl.load(ids + lane)
    depth = tl.load(depths + lane)
    ancestor = tl.load(paths + lane[:, None] * 16 + lane[None, :])
    parent = tl.load(parents + lane)
    first_choice = tl.load(choice_tokens + lane * CHOICES)
    by_drafter = tl.load(choice_probabilities + lane * CHOICES)
    stop = tl.load(stops + lane).to(tl.int64)
    steps = tl.load(script_length)
    place = tl.load(script_place)
    before = tl.load(cursor)
    waiting = tl.load(pending)
    last = tl.load(end)
    told = tl.load(script + place % tl.maximum(steps, 1))
    live = lane < width
    # A row is right when the target says it and all between the anchor and it; right rows make one path.
    said_before = tl.load(sampled + parent, mask=live, other=-1)
    itself = live & ((lane == 0) | (row == said_before))
    wrong = tl.sum(tl.where(itself, 0, 1 << lane), 0)
    needed = tl.sum(tl.where(lane[None, :] <= depth[:, None], 1 << ancestor, 0), 1)
    right = live & ((needed & wrong) == 0)
    scripted = (steps > 0) & (width > 1)
    right = tl.where(scripted, live & (lane <= told), right)
    accepted = tl.max(tl.where(right, depth, 0), 0)
    path = _path_rows(right, depth, lane)
    draft = tl.load(ids + _path_rows(right, depth, lane + 1), mask=lane < accepted, other=0)
    said = tl.load(sampled + path, mask=live, other=-1)
    given = tl.load(probability + path)
    if GREEDY:
        asked = tl.load(logits + path * VOCAB + first_choice, mask=lane <= accepted, other=0.0)
        of_draft = tl.exp(asked - tl.load(peak + path)) * given
    else:
        of_draft = tl.load(draft_probability + path)
    token = tl.where(lane < accepted, draft, said)
    emitted = end_round(
        token,
        accepted,
        width,
        scripted,
        place,
        before,
        waiting,
        last,
        stop,
        row,
        by_drafter,
        given,
        of_draft,
        cursor,
        anchor,
        done,
        pending,
        script_place,
        record,
        WIDTH,
        ACCEPTED,
        EMITTED,
        CURSOR,
        ROWS,
        TOKENS,
        DRAFT_PROBABILITIES,
        PROBABILITIES,
        TARGET_PROBABILITIES,
    )
    tl.store(path_count, tl.where(width > 0, emitted, 0))
    if width > 0:
        tl.store(path_before, before)
        tl.store(path_rows + lane, path)
        tl.store(record + PATH + lane, path)
