"""Which tree of drafts to verify, decided on the device as ``speculation.verify_width.Auto`` does for trees. Runs after
``verify_width``, whose numbers it reads. A tree grows node by node, fifteen at most, so one warp is as fast as any."""

from __future__ import annotations

from torch import Tensor

from ...speculation.trees import CHOICES
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, jit, tl
from .accept import DraftTree
from .state import (
    AT_RECORD,
    AT_WIDTH,
    CHANCE,
    CHOICE_PROBABILITIES,
    COST_MS,
    DRAFTS,
    NUMBERS,
    PARENTS,
    TREE_RECORD_SIZE,
    RoundState,
)
from .verify_width import (
    ACCEPTED,
    CONFIDENCE,
    NUM_NUMBERS,
    OTHERS_ACCEPTED,
    OTHERS_CONFIDENCE,
    PRICE,
    TRIAL,
    TRY,
    VERIFY_MS,
    WAY,
    WHOLE,
    chance_of,
)


def grow_tree(state: RoundState, numbers: Tensor, ids: Tensor, tree: DraftTree) -> None:
    """Puts the drafts worth verifying into rows: narrows ``state.width``, fills record and ``tree``. ``tree.choices``:
    row j those of position cursor + 1 + j. ``ids`` int64 [16 or more], the anchor in place 0, gets the rows' tokens.
    The tree has at most ``state.width`` rows and the depth of a chain of these."""
    assert state.record.shape == (TREE_RECORD_SIZE,) and numbers.shape == (NUM_NUMBERS,)
    _grow[(1,)](
        state.numbers, numbers, tree.choices.tokens, tree.choices.probabilities, ids, tree.parents, tree.rows.depths,
        tree.rows.paths, tree.rows.trunk,
        CHOICES=CHOICES, num_warps=1,
    )  # fmt: skip


@jit
def _offered(worth: tl.tensor, at: tl.tensor, before: tl.tensor) -> tl.tensor:
    """The chance of the node at this place of ``worth`` [64], behind one of chance ``before``; -1: there is none."""
    chance = tl.max(tl.where(tl.arange(0, 64) == at, worth, -1.0), 0)
    return tl.where(chance < 0, -1.0, before * chance)


@jit
def _entries(values: tl.tensor, index: tl.tensor) -> tl.tensor:
    """values[index], of int32 [16] both."""
    return tl.sum(tl.where(index[:, None] == tl.arange(0, 16)[None, :], values[None, :], 0), 1)


@early_kernel
def _grow(
    state: tl.tensor,
    numbers: tl.tensor,
    choice_tokens: tl.tensor,
    choice_probabilities: tl.tensor,
    ids: tl.tensor,
    parents_out: tl.tensor,
    depths_out: tl.tensor,
    paths_out: tl.tensor,
    trunk_out: tl.tensor,
    CHOICES: tl.constexpr,
) -> None:
    wait_for_inputs()
    let_next_start()
    width = tl.load(state + AT_WIDTH)
    if width > 1:
        lane = tl.arange(0, 16)
        way = tl.load(numbers + WAY).to(tl.int32)
        whole = way == WHOLE
        price = tl.load(numbers + PRICE)
        cost = tl.load(numbers + VERIFY_MS + lane)
        drafts = tl.load(choice_tokens + lane * CHOICES)

        # What each choice is worth, by position; less than nothing where it is not to be had.
        live = lane < width - 1
        confidence = tl.load(choice_probabilities + lane * CHOICES, mask=live, other=0.0)
        chance = chance_of(confidence, numbers + ACCEPTED, numbers + CONFIDENCE)
        chance = tl.where(whole, 1.0, chance)
        number = tl.arange(0, CHOICES)[None, :]
        worth = tl.where(number == 0, chance[:, None], -1.0)
        given = tl.where(number == 0, confidence[:, None], 0.0)
        total = chance
        for later in tl.static_range(1, CHOICES):
            confidence = tl.load(choice_probabilities + lane * CHOICES + later, mask=live, other=0.0)
            found = chance_of(confidence, numbers + OTHERS_ACCEPTED, numbers + OTHERS_CONFIDENCE)
            chance = tl.maximum(tl.minimum(tl.minimum(found, chance), 1.0 - total), 0.0)
            total += chance
            worth = tl.where(number == later, tl.where(whole, -1.0, chance)[:, None], worth)
            given = tl.where(number == later, confidence[:, None], given)
        worth = tl.reshape(tl.where(live[:, None], worth, -1.0), (64,))

        # Nodes by falling chance, the anchor as node 0. Offer 2k is the next choice beside node k, offer 2k + 1 the
        # first choice behind it: the order in which ``best_first`` makes its offers.
        offer = tl.arange(0, 32)
        waiting = tl.where(offer == 1, _offered(worth, 0, 1.0), -1.0)
        before = tl.where(offer == 1, 1.0, 0.0)
        what = tl.where(offer == 1, 16, 0)  # 256 * parent + 16 * depth + choice
        node_chance = tl.where(lane == 0, 1.0, 0.0)
        node_what = tl.zeros((16,), tl.int32)
        on_trunk = tl.zeros((16,), tl.int32)
        tip = 0
        nodes = 0
        for node in range(1, 16):
            best = tl.max(waiting, 0)
            if (best >= 0) & (node < width):
                taken = offer == tl.min(tl.where(waiting == best, offer, 32), 0)
                this = tl.sum(tl.where(taken, what, 0), 0)
                behind = tl.sum(tl.where(taken, before, 0.0), 0)
                parent, depth, choice = this // 256, this // 16 % 16, this % 16
                node_chance = tl.where(lane == node, best, node_chance)
                node_what = tl.where(lane == node, this, node_what)
                is_trunk = (choice == 0) & (parent == tip)
                on_trunk = tl.where((lane == node) & is_trunk, 1, on_trunk)
                tip = tl.where(is_trunk, node, tip)
                nodes = node
                place_of = (depth - 1) * CHOICES + choice
                beside = tl.where(choice < CHOICES - 1, _offered(worth, place_of + 1, behind), -1.0)
                first = _offered(worth, depth * CHOICES, best)
                waiting = tl.where(taken, -1.0, waiting)
                waiting = tl.where(offer == 2 * node, beside, tl.where(offer == 2 * node + 1, first, waiting))
                before = tl.where(offer == 2 * node, behind, tl.where(offer == 2 * node + 1, best, before))
                deeper = node * 256 + (depth + 1) * 16
                what = tl.where(offer == 2 * node, this + 1, tl.where(offer == 2 * node + 1, deeper, what))

        # Entry k: what verifying k nodes is worth.
        values = tl.where(lane <= nodes, tl.cumsum(node_chance, 0) - price * cost, float("-inf"))
        best = tl.max(values, 0)
        chosen = tl.min(tl.where(values == best, lane, 16), 0)
        chosen = tl.where(whole, nodes, tl.where(way == TRIAL, TRY, chosen))
        edge = tl.minimum(chosen + 1, nodes)
        edge_chance = tl.sum(tl.where(lane == edge, node_chance, 0.0), 0)
        edge_cost = tl.sum(tl.where(lane == edge, cost, 0.0), 0) - tl.sum(tl.where(lane == edge - 1, cost, 0.0), 0)

        # The trunk's rows first, each as deep as its number says, then the others'.
        kept = (lane >= 1) & (lane <= chosen)
        on_trunk = tl.where(kept, on_trunk, 0)
        trunk = tl.sum(on_trunk, 0)
        other = tl.where(kept, 1 - on_trunk, 0)
        row_of = tl.where(on_trunk > 0, node_what // 16 % 16, tl.where(kept, trunk + tl.cumsum(other, 0), 0))
        parent_row = _entries(row_of, node_what // 256)
        here = kept[None, :] & (row_of[None, :] == lane[:, None])
        parents = tl.sum(tl.where(here, parent_row[None, :], 0), 1)
        depths = tl.sum(tl.where(here, (node_what // 16 % 16)[None, :], 0), 1)
        numbers_of = tl.sum(tl.where(here, (node_what % 16)[None, :], 0), 1)
        drafted = (lane >= 1) & (lane <= chosen)
        token = tl.load(choice_tokens + (depths - 1) * CHOICES + numbers_of, mask=drafted, other=0)

        # Upwards from every row: its ancestors, each into the place of its depth.
        column = lane[None, :]
        paths = tl.zeros((16, 16), tl.int32) + column
        above, level = lane, depths
        for _ in range(15):
            paths = tl.where(drafted[:, None] & (column == level[:, None]), above[:, None], paths)
            above = _entries(parents, above)
            level = tl.maximum(level - 1, 0)

        tl.store(state + AT_WIDTH, chosen + 1)
        tl.store(ids + lane, token, mask=drafted)
        tl.store(parents_out + lane, parents)
        tl.store(depths_out + lane, tl.where(drafted, depths, lane))
        tl.store(paths_out + lane[:, None] * 16 + column, paths)
        tl.store(trunk_out, trunk + 1)
        record = state + AT_RECORD
        at = record + CHOICE_PROBABILITIES + lane[:, None] * CHOICES + number
        tl.store(at, given.to(tl.int32, bitcast=True))
        tl.store(record + DRAFTS + lane, drafts.to(tl.int32))
        tl.store(record + PARENTS + lane, parents)
        tl.store(record + NUMBERS + lane, numbers_of)
        if not whole:
            tl.store(record + CHANCE, edge_chance.to(tl.int32, bitcast=True))
            tl.store(record + COST_MS, edge_cost.to(tl.int32, bitcast=True))


assert MAX_ROWS == 16 and CHOICES == 4, "the kernel above is written for 16 rows and 64 choices"
