"""What passes from round to round on the device, what the host reads of a round, and the kernels that begin a round and
report it to the host. Single programs do both, so rounds follow one another without the host; after the last they have
no rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...speculation.trees import CHOICES, WIDE_ROWS
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, constexpr_function, power_of_two, tl


def constant(value: float) -> Any:
    """A number that both kernels and the host use; for the host it is an index."""
    return tl.constexpr(value) if tl else value


MAX_STOPS = 16

AT_CURSOR, AT_ANCHOR, AT_END, AT_BLOCK_SIZE, AT_DONE = (constant(4 * index) for index in range(5))
AT_PENDING, AT_WIDTH, AT_DRAFT_WIDTH, AT_INGEST_START, AT_INGEST_ROWS = (constant(4 * index) for index in range(5, 10))
AT_STOPS, AT_BLOCK_ROWS, AT_RECORD = constant(40), constant(56), constant(64)
"""Where stop tokens, rows of the drafter's block and record lie among the numbers of a ``RoundState``. Every part
begins at a multiple of 16 bytes, so that kernels may be given each by itself."""

WIDTH, ACCEPTED, EMITTED, CURSOR, DRAFTED, CHANCE, COST_MS = (constant(index) for index in range(7))
"""Places in a record: the rows that were verified, the drafts that were accepted, the tokens that were emitted, the new
cursor, the rows that were drafted, and what decided how many of these were verified (two fp32 numbers)."""
MATCH_LENGTH, MATCH_DISTANCE, LOOKED_UP, AGREED = (constant(index) for index in range(7, 11))
"""Places in the record of a round that looks drafts up: the match's length and distance; how many of the tokens behind
it were drafted, 0 where none were; and how many of these, from the first on, the drafter guessed, too."""
ROWS, TOKENS, DRAFT_PROBABILITIES, PROBABILITIES, TARGET_PROBABILITIES = (constant(16 * index) for index in range(1, 6))
"""Where a record's lists of 16 begin: the rows (anchor and drafts), the emitted tokens, the drafter's probability of
each draft, the target's of its own token at each place, the target's of each draft. The last three are fp32."""
RECORD_SIZE = 6 * 16
MOST_LANES = WIDE_ROWS[-1]
"""How many places the lists have in the record of a wide round; 16 in any other (``list_at``)."""
WIDE_RECORD_SIZE = 16 + 5 * MOST_LANES


@constexpr_function
def list_at(first: int, lanes: int) -> int:
    """Where a list begins in a record whose lists have ``lanes`` places, if with 16 places it begins at ``first``."""
    return 16 + (first // 16 - 1) * lanes


PATH, PARENTS, NUMBERS, DRAFTS, CHOICE_PROBABILITIES = (constant(RECORD_SIZE + 16 * index) for index in range(5))
"""Further lists in a record where trees are drafted: the rows of the accepted path (entry 0 is the anchor's), the
parent of each row, which of its position's choices each row is, the first choice of each position, and the drafter's
probability of each choice of each position, fp32 [16, 4]; where these depend on the token before, behind each row."""
BESIDE_CHOICES, BESIDE_CHANCES = (constant(RECORD_SIZE + 16 * (4 + CHOICES + index)) for index in range(2))
"""Further lists for a looked up chain that entered the tree, by position: which of the drafter's choices each token is,
4 for none of them, and how likely it was, in fp32. ``LOOKED_UP`` says how long that chain is."""
TREE_RECORD_SIZE = RECORD_SIZE + 16 * (6 + CHOICES)
"""In such a record a chain's entries mean the same, with this difference: emitted tokens and their probabilities are
those of the accepted path, and drafts are first choices, by position. The target's probability of a draft comes from
the accepted path's row before it, so it is known up to one behind that path."""


@dataclass(frozen=True, slots=True)
class RoundState:
    """What passes from round to round; each property is a part of ``numbers``, one element unless said otherwise."""

    numbers: Tensor
    """int32 on the device: all parts behind one another."""

    @classmethod
    def allocate(cls, device: torch.device, record_size: int = RECORD_SIZE) -> RoundState:
        state = cls(torch.zeros(int(AT_RECORD) + record_size, dtype=torch.int32, device=device))
        state.done.fill_(1)
        state.stops.fill_(-1)
        return state

    def _numbers(self, start: Any, count: int = 1) -> Tensor:
        return self.numbers[int(start) : int(start) + count]

    @property
    def cursor(self) -> Tensor:
        """How many positions are committed."""
        return self._numbers(AT_CURSOR)

    @property
    def anchor(self) -> Tensor:
        """The newest token, which stands at the cursor and isn't in the caches."""
        return self._numbers(AT_ANCHOR)

    @property
    def end(self) -> Tensor:
        """The position past the last that this answer may fill."""
        return self._numbers(AT_END)

    @property
    def block_size(self) -> Tensor:
        """The most rows to verify, anchor included; 1 decodes without drafts."""
        return self._numbers(AT_BLOCK_SIZE)

    @property
    def done(self) -> Tensor:
        """1 once the answer has ended."""
        return self._numbers(AT_DONE)

    @property
    def pending(self) -> Tensor:
        """How many rows are committed and not yet in the drafter's context."""
        return self._numbers(AT_PENDING)

    @property
    def width(self) -> Tensor:
        """How many rows this round's pass verifies; 0 when the answer has ended."""
        return self._numbers(AT_WIDTH)

    @property
    def draft_width(self) -> Tensor:
        """How many rows this round's draft has, which a looked up chain may exceed; 0 when there is no room for one."""
        return self._numbers(AT_DRAFT_WIDTH)

    @property
    def block_rows(self) -> Tensor:
        """How many rows the drafter runs of a block whose first row drafts: one fewer than ``draft_width``."""
        return self._numbers(AT_BLOCK_ROWS)

    @property
    def ingest_start(self) -> Tensor:
        """The first row that enters the drafter's context, where a round takes some in."""
        return self._numbers(AT_INGEST_START)

    @property
    def ingest_rows(self) -> Tensor:
        """How many rows enter the drafter's context."""
        return self._numbers(AT_INGEST_ROWS)

    @property
    def stops(self) -> Tensor:
        """[16]: the tokens that end an answer, filled up with -1."""
        return self._numbers(AT_STOPS, MAX_STOPS)

    @property
    def record(self) -> Tensor:
        """[96]: what the host reads of the round; ``TREE_RECORD_SIZE`` where trees are drafted, ``WIDE_RECORD_SIZE``
        where there are wide rounds."""
        return self.numbers[int(AT_RECORD) :]


def begin_round(
    state: RoundState,
    ids: Tensor,
    block: Tensor,
    mask_token: int,
    *,
    alone: bool,
    ingests: bool,
    most_drafted: int = MAX_ROWS,
    first_drafts: bool = False,
) -> None:
    """Begins a round: decides how many rows run; sets ``ids`` and ``block``, int64 [16] each, to the anchor and masks.
    ``alone``: the target writes this token by itself. ``ingests``: pending rows enter the drafter's context; otherwise
    they stay pending. ``most_drafted``: the anchor and the most that is drafted. ``first_drafts``: the block's first
    row drafts, too."""
    _begin[(1,)](
        state.numbers, ids, block, mask_token,
        ALONE=alone, INGESTS=ingests, MOST_DRAFTED=most_drafted, FIRST_DRAFTS=first_drafts, num_warps=1,
    )  # fmt: skip


@early_kernel
def _begin(
    state: tl.tensor,
    ids: tl.tensor,
    block: tl.tensor,
    mask_token: tl.tensor,
    ALONE: tl.constexpr,
    INGESTS: tl.constexpr,
    MOST_DRAFTED: tl.constexpr,
    FIRST_DRAFTS: tl.constexpr,
) -> None:
    wait_for_inputs()
    let_next_start()
    # Every load comes before the first store, which it couldn't pass: each round trip costs 0.5 us.
    live = 1 - tl.load(state + AT_DONE)
    position = tl.load(state + AT_CURSOR)
    waiting = tl.load(state + AT_PENDING)
    first = tl.load(state + AT_ANCHOR)
    width = tl.minimum(tl.load(state + AT_BLOCK_SIZE), tl.load(state + AT_END) - position - 1)
    if ALONE:
        width = tl.minimum(width, 1)
    tl.store(state + AT_WIDTH, tl.maximum(width, 1) * live)
    drafted = tl.minimum(width, MOST_DRAFTED)
    tl.store(state + AT_DRAFT_WIDTH, tl.where(drafted >= 2, drafted, 0) * live)
    if FIRST_DRAFTS:
        tl.store(state + AT_BLOCK_ROWS, tl.where(drafted >= 2, drafted - 1, 0) * live)
    tl.store(state + AT_RECORD + DRAFTED, tl.maximum(drafted, 1) * live)
    if INGESTS:
        tl.store(state + AT_INGEST_START, position - waiting)
        tl.store(state + AT_INGEST_ROWS, waiting * live)
        tl.store(state + AT_PENDING, waiting * (1 - live))
    lane = tl.arange(0, 16)
    row = tl.where(lane == 0, first, mask_token).to(tl.int64)
    tl.store(ids + lane, row)
    tl.store(block + lane, row)


@dataclass(frozen=True, slots=True)
class RoundReports:
    """Host memory for the records of the latest rounds, which take turns."""

    records: Tensor
    """int32 [places, record size], in the host's memory (pinned, where there is a GPU). A record is complete once the
    GPU has passed an event behind its round."""
    next_record: Tensor
    """int32 [1] on the device: the place of the next record."""

    @classmethod
    def allocate(cls, places: int, size: int, device: torch.device) -> RoundReports:
        on_gpu = device.type == "cuda"
        where = torch.device("cpu") if on_gpu else device
        return cls(
            torch.zeros(places, size, dtype=torch.int32, device=where, pin_memory=on_gpu),
            torch.zeros(1, dtype=torch.int32, device=device),
        )


def report_round(state: RoundState, reports: RoundReports) -> None:
    """A round's last launch: copies the record of ``state`` to the place in the host's memory whose turn it is, and
    moves the turn on. A copy by the GPU's copy engine, enqueued behind the round, delayed the next one by 10 us
    (kernels/MEASUREMENTS.md)."""
    places, size = reports.records.shape
    assert len(state.record) == size
    _report[(1,)](
        state.numbers, reports.records, reports.next_record,
        PLACES=places, SIZE=size, BLOCK=power_of_two(size), num_warps=1,
    )  # fmt: skip


@early_kernel
def _report(
    state: tl.tensor, records: tl.tensor, next_record: tl.tensor, PLACES: tl.constexpr, SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    wait_for_inputs()
    lane = tl.arange(0, BLOCK)
    number = tl.load(next_record)
    record = tl.load(state + AT_RECORD + lane, mask=lane < SIZE, other=0)
    tl.store(records + number * SIZE + lane, record, mask=lane < SIZE)
    tl.store(next_record, (number + 1) % PLACES)


assert MAX_ROWS == 16, "the kernel above is written for tiles of 16 rows"
