"""Where a round begins and where it ends: how many rows run, what is accepted, where the cursor moves, when to stop.

Both are single programs that read and write numbers on the device alone, so that rounds can follow one another
without the host. A round after the last one has no rows, and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from ..decode.head import HeadOutput
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, jit, tl
from .sample import SampledRows

WIDTH, ACCEPTED, EMITTED, CURSOR, DRAFTED, CHANCE, COST_MS = range(7)
"""Where a record holds the rows that were verified, how many drafts were accepted and tokens emitted, the new cursor,
the rows that were drafted, and what decided how many of these were verified (two fp32 numbers)."""
ROWS, TOKENS, DRAFT_PROBABILITIES, PROBABILITIES, TARGET_PROBABILITIES = (16 * part for part in range(1, 6))
"""Where a record's lists of 16 begin: the rows (anchor and drafts), the emitted tokens, what the drafter gave each
draft, what the target gave its own token at each place, what the target gave each draft. The last three are fp32."""
RECORD_SIZE = 6 * 16

MAX_SCRIPT = 512
MAX_STOPS = 16


@dataclass(frozen=True, slots=True)
class RoundState:
    """What passes from round to round, int32 on the device, one element each unless said otherwise."""

    cursor: Tensor
    """Committed positions."""
    anchor: Tensor
    """The newest token, which stands at the cursor and isn't in the caches."""
    end: Tensor
    """The position past the last that this answer may fill."""
    block_size: Tensor
    """Tokens of a draft, anchor included; 1 decodes without drafts."""
    done: Tensor
    """1 once the answer has ended."""
    pending: Tensor
    """Rows that are committed and not yet in the drafter's context."""
    width: Tensor
    """Rows of this round's verification; 0 when the answer has ended."""
    draft_width: Tensor
    """Rows of this round's draft; 0 when there is no room for one."""
    ingest_start: Tensor
    ingest_rows: Tensor
    """Which rows enter the drafter's context, where a round takes some in."""
    script_length: Tensor
    script_place: Tensor
    """For measuring: how many scripted acceptances there are (0: none), and the next one."""
    script: Tensor
    """[512]."""
    stops: Tensor
    """[16]: tokens that end an answer, filled up with -1."""
    record: Tensor
    """[96]: what the host wants to know of the round; longer where trees are drafted (``accept_tree``)."""

    @classmethod
    def allocate(cls, device: torch.device, record_size: int = RECORD_SIZE) -> RoundState:
        sizes = {"script": MAX_SCRIPT, "stops": MAX_STOPS, "record": record_size}
        names = [field.name for field in fields(cls)]
        state = cls(*(torch.zeros(sizes.get(name, 1), dtype=torch.int32, device=device) for name in names))
        state.done.fill_(1)
        state.stops.fill_(-1)
        return state


@early_kernel
def _begin(
    cursor: tl.tensor,
    anchor: tl.tensor,
    end: tl.tensor,
    block_size: tl.tensor,
    done: tl.tensor,
    pending: tl.tensor,
    width_out: tl.tensor,
    draft_width_out: tl.tensor,
    ingest_start: tl.tensor,
    ingest_rows: tl.tensor,
    record: tl.tensor,
    ids: tl.tensor,
    block: tl.tensor,
    mask_token: tl.tensor,
    ALONE: tl.constexpr,
    INGESTS: tl.constexpr,
    DRAFTED: tl.constexpr,
) -> None:
    wait_for_inputs()
    let_next_start()
    # Every load before the first store: they don't pass each other, and each round trip costs 0.5 us.
    live = 1 - tl.load(done)
    position = tl.load(cursor)
    waiting = tl.load(pending)
    first = tl.load(anchor)
    width = tl.minimum(tl.load(block_size), tl.load(end) - position - 1)
    if ALONE:
        width = tl.minimum(width, 1)
    tl.store(width_out, tl.maximum(width, 1) * live)
    tl.store(draft_width_out, tl.where(width >= 2, width, 0) * live)
    tl.store(record + DRAFTED, tl.maximum(width, 1) * live)
    if INGESTS:
        tl.store(ingest_start, position - waiting)
        tl.store(ingest_rows, waiting * live)
        tl.store(pending, waiting * (1 - live))
    lane = tl.arange(0, 16)
    row = tl.where(lane == 0, first, mask_token).to(tl.int64)
    tl.store(ids + lane, row)
    tl.store(block + lane, row)


@jit
def end_round(
    token: tl.tensor,
    accepted: tl.tensor,
    width: tl.tensor,
    scripted: tl.tensor,
    place: tl.tensor,
    before: tl.tensor,
    waiting: tl.tensor,
    last: tl.tensor,
    stop: tl.tensor,
    row: tl.tensor,
    by_drafter: tl.tensor,
    given: tl.tensor,
    of_draft: tl.tensor,
    cursor: tl.tensor,
    anchor: tl.tensor,
    done: tl.tensor,
    pending: tl.tensor,
    script_place: tl.tensor,
    record: tl.tensor,
    WIDTH: tl.constexpr,
    ACCEPTED: tl.constexpr,
    EMITTED: tl.constexpr,
    CURSOR: tl.constexpr,
    ROWS: tl.constexpr,
    TOKENS: tl.constexpr,
    DRAFT_PROBABILITIES: tl.constexpr,
    PROBABILITIES: tl.constexpr,
    TARGET_PROBABILITIES: tl.constexpr,
) -> tl.tensor:
    """Moves the cursor behind the accepted ones of ``token`` [16] and one more, up to a stop token; fills the record.

    Returns how many these are, at least 1 also in a round that is none, where nothing is stored but that.
    """
    lane = tl.arange(0, 16)
    ends = tl.max((token[:, None] == stop[None, :]).to(tl.int32), 1) > 0
    first_stop = tl.min(tl.where(ends & (lane <= accepted), lane, 16), 0)
    emitted = tl.minimum(accepted, first_stop) + 1
    position = before + emitted
    tl.store(record + WIDTH, width)
    if width > 0:
        tl.store(script_place, place + scripted.to(tl.int32))
        tl.store(cursor, position)
        tl.store(anchor, tl.sum(tl.where(lane == emitted - 1, token, 0), 0).to(tl.int32))
        tl.store(pending, waiting + emitted)
        tl.store(done, ((first_stop < 16) | (position + 1 >= last)).to(tl.int32))
        tl.store(record + ACCEPTED, tl.minimum(accepted, emitted))
        tl.store(record + EMITTED, emitted)
        tl.store(record + CURSOR, position)
        tl.store(record + ROWS + lane, row.to(tl.int32))
        tl.store(record + TOKENS + lane, token.to(tl.int32))
        tl.store(record + DRAFT_PROBABILITIES + lane, by_drafter.to(tl.int32, bitcast=True))
        tl.store(record + PROBABILITIES + lane, given.to(tl.int32, bitcast=True))
        tl.store(record + TARGET_PROBABILITIES + lane, of_draft.to(tl.int32, bitcast=True))
    return emitted


@early_kernel
def _accept(
    ids: tl.tensor,
    sampled: tl.tensor,
    probability: tl.tensor,
    draft_probability: tl.tensor,
    drafter_probability: tl.tensor,
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
    VOCAB: tl.constexpr,
    GREEDY: tl.constexpr,
    WIDTH: tl.constexpr,
    ACCEPTED: tl.constexpr,
    EMITTED: tl.constexpr,
    CURSOR: tl.constexpr,
    ROWS: tl.constexpr,
    TOKENS: tl.constexpr,
    DRAFT_PROBABILITIES: tl.constexpr,
    PROBABILITIES: tl.constexpr,
    TARGET_PROBABILITIES: tl.constexpr,
) -> None:
    wait_for_inputs()
    let_next_start()
    lane = tl.arange(0, 16)
    # Every load before the first store, as above; behind the last row there is something to read, too.
    width = tl.load(width_in)
    row = tl.load(ids + lane)
    draft = tl.load(ids + 1 + lane)
    said = tl.load(sampled + lane)
    stop = tl.load(stops + lane).to(tl.int64)
    steps = tl.load(script_length)
    place = tl.load(script_place)
    before = tl.load(cursor)
    waiting = tl.load(pending)
    last = tl.load(end)
    given = tl.load(probability + lane)
    by_drafter = tl.load(drafter_probability + lane)
    is_draft = lane + 1 < width
    draft = tl.where(is_draft, draft, 0)
    said = tl.where(lane < width, said, -1)
    if GREEDY:
        asked = tl.load(logits + lane * VOCAB + draft, mask=is_draft, other=0.0)
        of_draft = tl.exp(asked - tl.load(peak + lane)) * given
    else:
        of_draft = tl.load(draft_probability + lane)
    scripted = (steps > 0) & (width > 1)
    told = tl.load(script + place % tl.maximum(steps, 1))
    accepted = tl.min(tl.where(is_draft & (draft == said), 16, lane), 0)
    accepted = tl.where(scripted, tl.minimum(told, width - 1), accepted)
    token = tl.where(lane < accepted, draft, said)
    end_round(
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


def begin_round(state: RoundState, ids: Tensor, block: Tensor, mask_token: int, *, alone: bool, ingests: bool) -> None:
    """Decides how many rows run; ``ids`` and ``block``, int64 [16] each, become the anchor and masks behind it.

    ``alone``: the target writes this token by itself, whatever the block size. ``ingests``: what is pending enters the
    drafter's context; otherwise it stays pending.
    """
    _begin[(1,)](
        state.cursor,
        state.anchor,
        state.end,
        state.block_size,
        state.done,
        state.pending,
        state.width,
        state.draft_width,
        state.ingest_start,
        state.ingest_rows,
        state.record,
        ids,
        block,
        mask_token,
        ALONE=alone,
        INGESTS=ingests,
        DRAFTED=DRAFTED,
        num_warps=1,
    )


def accept_rows(
    state: RoundState, ids: Tensor, head: HeadOutput, sampled: SampledRows | None, drafter_probability: Tensor
) -> None:
    """Accepts drafts while they are what the target says, up to a stop token; moves the cursor; fills the record.

    ``ids`` int64 [17]: the rows, of which the last is never read. ``sampled`` is None at temperature 0, where the
    head's most likely tokens are the target's. ``drafter_probability`` fp32 [16] of the drafts.
    """
    assert head.logits is not None
    said = head if sampled is None else sampled
    _accept[(1,)](
        ids,
        said.token,
        said.probability,
        head.peak if sampled is None else sampled.draft_probability,
        drafter_probability,
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
        VOCAB=head.logits.shape[1],
        GREEDY=sampled is None,
        WIDTH=WIDTH,
        ACCEPTED=ACCEPTED,
        EMITTED=EMITTED,
        CURSOR=CURSOR,
        ROWS=ROWS,
        TOKENS=TOKENS,
        DRAFT_PROBABILITIES=DRAFT_PROBABILITIES,
        PROBABILITIES=PROBABILITIES,
        TARGET_PROBABILITIES=TARGET_PROBABILITIES,
        num_warps=1,
    )


assert MAX_ROWS == 16, "the kernels above are written for tiles of 16 rows"
