"""Decides on the device which tree of drafts to verify, as ``speculation.auto.Auto`` does for trees: one of the
drafter's choices, or of these and what ``lookup`` found. Runs after ``verify_width``, whose numbers it reads. A tree
grows node by node, fifteen at most, so one warp is as fast as any. Choices that are the same behind any token and
those behind sixteen candidates (``lattice``) grow alike: at each position stand ``BEFORES`` lists, 1 or 16, and a node
goes on with the list behind its candidate."""

from __future__ import annotations

from torch import Tensor

from ...speculation.trees import CHOICES
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, jit, tl
from .accept import DraftTree
from .choices import CANDIDATES
from .lookup import LONGEST, PLACES, PROGRAMS, SHORTEST, LookupText, found_chain
from .state import (
    AT_DRAFT_WIDTH,
    AT_RECORD,
    AT_WIDTH,
    BESIDE_CHANCES,
    BESIDE_CHOICES,
    CHANCE,
    CHOICE_PROBABILITIES,
    COST_MS,
    DRAFTS,
    LOOKED_UP,
    MATCH_DISTANCE,
    MATCH_LENGTH,
    NUMBERS,
    PARENTS,
    TREE_RECORD_SIZE,
    RoundState,
)
from .verify_width import (
    ACCEPTED,
    CONFIDENCE,
    MATCHES,
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


def grow_tree(state: RoundState, numbers: Tensor, ids: Tensor, tree: DraftTree, text: LookupText | None = None) -> None:
    """Puts the drafts that are worth verifying into rows: narrows ``state.width``, fills record and ``tree``.
    ``tree.choices``: row j holds those of position cursor + 1 + j. ``ids`` int64 [16 or more], the anchor in place 0,
    gets the rows' tokens. The tree has at most ``state.width`` rows and the depth of a chain of ``state.draft_width``.
    ``text``: given behind ``look_up``, whose find enters the tree as far as the draft goes."""
    assert state.record.shape == (TREE_RECORD_SIZE,) and numbers.shape == (NUM_NUMBERS,)
    choices, befores = tree.choices, 1 if tree.choices.order is None else CANDIDATES
    _grow[(1,)](
        state.numbers, numbers, choices.tokens, choices.probabilities, choices.order, choices.first_tokens,
        choices.first_probabilities, ids, tree.parents, tree.rows.depths, tree.rows.paths, tree.rows.trunk,
        None if text is None else text.ids, None if text is None else text.best,
        CHOICES=CHOICES, BEFORES=befores, WIDE=choices.tokens.shape[1], LOOKS=text is not None, SHORTEST=SHORTEST,
        LONGEST=LONGEST, PLACES=PLACES, PROGRAMS=PROGRAMS,
        num_warps=1,
    )  # fmt: skip


@jit
def _entry(values: tl.tensor, at: tl.tensor) -> tl.tensor:
    """One entry of ``values`` [any power of two]: values[at]."""
    return tl.sum(tl.where(tl.arange(0, values.shape[0]) == at, values, tl.zeros_like(values)), 0)


@jit
def _offered(worth: tl.tensor, at: tl.tensor, before: tl.tensor) -> tl.tensor:
    """The chance of the node at place ``at`` of ``worth``, behind one of chance ``before``; -1 where there is none."""
    chance = tl.max(tl.where(tl.arange(0, worth.shape[0]) == at, worth, -1.0), 0)
    return tl.where(chance < 0, -1.0, before * chance)


@jit
def _entries(values: tl.tensor, index: tl.tensor) -> tl.tensor:
    """Entries of ``values`` by ``index``, both int32 [16]."""
    return tl.sum(tl.where(index[:, None] == tl.arange(0, 16)[None, :], values[None, :], 0), 1)


@early_kernel
def _grow(
    state: tl.tensor,
    numbers: tl.tensor,
    choice_tokens: tl.tensor,
    choice_probabilities: tl.tensor,
    choice_order: tl.tensor,
    first_tokens: tl.tensor,
    first_probabilities: tl.tensor,
    ids: tl.tensor,
    parents_out: tl.tensor,
    depths_out: tl.tensor,
    paths_out: tl.tensor,
    trunk_out: tl.tensor,
    text: tl.tensor,
    best_in: tl.tensor,
    CHOICES: tl.constexpr,
    BEFORES: tl.constexpr,
    WIDE: tl.constexpr,
    LOOKS: tl.constexpr,
    SHORTEST: tl.constexpr,
    LONGEST: tl.constexpr,
    PLACES: tl.constexpr,
    PROGRAMS: tl.constexpr,
) -> None:
    wait_for_inputs()
    let_next_start()
    width = tl.load(state + AT_DRAFT_WIDTH)
    if width > 1:
        lane = tl.arange(0, 16)
        way = tl.load(numbers + WAY).to(tl.int32)
        whole = way == WHOLE
        price = tl.load(numbers + PRICE)
        cost = tl.load(numbers + VERIFY_MS + lane)
        most = tl.load(state + AT_WIDTH)

        # The worth of each choice, by position and candidate before; below zero for one that can't be had.
        row = tl.arange(0, 16 * BEFORES)
        live = row // BEFORES < width - 1
        confidence = tl.load(choice_probabilities + row * CHOICES, mask=live, other=0.0)
        chance = chance_of(confidence, numbers + ACCEPTED, numbers + CONFIDENCE)
        chance = tl.where(whole, 1.0, chance)
        number = tl.arange(0, CHOICES)[None, :]
        worth = tl.where(number == 0, chance[:, None], -1.0)
        given = tl.where(number == 0, confidence[:, None], 0.0)
        total = chance
        for later in tl.static_range(1, CHOICES):
            confidence = tl.load(choice_probabilities + row * CHOICES + later, mask=live, other=0.0)
            accepted_share = chance_of(confidence, numbers + OTHERS_ACCEPTED, numbers + OTHERS_CONFIDENCE)
            chance = tl.maximum(tl.minimum(tl.minimum(accepted_share, chance), 1.0 - total), 0.0)
            total += chance
            worth = tl.where(number == later, tl.where(whole, -1.0, chance)[:, None], worth)
            given = tl.where(number == later, confidence[:, None], given)
        if BEFORES == 1:
            drafts = tl.load(choice_tokens + lane * WIDE)
        else:
            # The chain of first choices, each behind the one before it.
            packed = tl.load(choice_order + row)
            firsts = tl.zeros((16,), tl.int32)  # which list each is first of
            candidate = 0
            for position in range(0, width - 1):
                firsts = tl.where(lane == position, position * BEFORES + candidate, firsts)
                candidate = _entry(packed, position * BEFORES + candidate) & 15
            drafts = tl.load(choice_tokens + lane * WIDE + (tl.load(choice_order + firsts) & 15))
            sure = tl.load(choice_probabilities + firsts * CHOICES)
        if LOOKS:
            # The looked up chain, by position: which choice each token is, and how likely. See
            # ``DraftWorth.lookup_branch``.
            length, distance, guess, count = found_chain(state, text, best_in, lane, width, SHORTEST, PLACES, PROGRAMS)
            looked = lane < tl.where(whole, 0, count)
            if BEFORES == 1:
                beside_candidate = lane
                candidates = number
                own_worth = worth
            else:
                each = tl.arange(0, WIDE)[None, :]
                same = tl.load(choice_tokens + lane[:, None] * WIDE + each) == guess[:, None]
                beside_candidate = tl.min(tl.where(same, each, WIDE), 1)
                beside_candidate = tl.where(beside_candidate == WIDE, 0, beside_candidate)
                list_of = lane * BEFORES + tl.where(lane > 0, _entries(beside_candidate, lane - 1), 0)
                candidates = (tl.load(choice_order + list_of)[:, None] >> (4 * number)) & 15
                own = tl.reshape(tl.arange(0, BEFORES)[None, :] + lane[:, None] * BEFORES, (16, BEFORES, 1))
                every = tl.reshape(worth, (16, BEFORES, CHOICES))
                own_worth = tl.sum(tl.where(own == list_of[:, None, None], every, 0.0), 1)
            same = tl.load(choice_tokens + lane[:, None] * WIDE + candidates) == guess[:, None]
            beside_choice = tl.min(tl.where(same, number, CHOICES), 1)
            accepted_share = tl.load(numbers + MATCHES + tl.minimum(length + lane, LONGEST), mask=looked, other=0.0)
            liked = tl.where(number < beside_choice[:, None], tl.maximum(own_worth, 0.0), 0.0)
            against = tl.minimum(tl.sum(liked, 1), 1.0)
            itself = tl.max(tl.where(number == beside_choice[:, None], own_worth, 0.0), 1)
            right = accepted_share * (1.0 - against)
            beside_chance = right / tl.where(right > 0, right + (1.0 - accepted_share) * against, 1.0)
            beside_chance = tl.where(looked, tl.maximum(beside_chance, itself), -1.0)
            beside_choice = tl.where(looked, beside_choice, 15)
        worth = tl.reshape(tl.where(live[:, None], worth, -1.0), (16 * BEFORES * CHOICES,))

        # Nodes by falling chance, the anchor as node 0. Offer 2k is the next choice beside node k, offer 2k + 1 the
        # first choice behind it: the order in which ``best_first`` makes its offers. Offer 0 goes on with what was
        # looked up, where a drafter's choice that is the same is passed over.
        offer = tl.arange(0, 32)
        first_choice = 0
        if LOOKS:
            first_choice = (_entry(beside_choice, 0) == 0).to(tl.int32)
        waiting = tl.where(offer == 1, _offered(worth, first_choice, 1.0), -1.0)
        before = tl.where(offer == 1, 1.0, 0.0)
        what = tl.where(offer == 1, 16 + first_choice, 0)  # 256 * parent + 16 * depth + choice
        looked_up = 1  # a bit for each node of the looked up path
        if LOOKS:
            waiting = tl.where(offer == 0, _entry(beside_chance, 0), waiting)
            before = tl.where(offer == 0, 1.0, before)
            what = tl.where(offer == 0, 16 + _entry(beside_choice, 0), what)
        node_chance = tl.where(lane == 0, 1.0, 0.0)
        node_what = tl.zeros((16,), tl.int32)
        node_candidate = tl.zeros((16,), tl.int32)
        on_trunk = tl.zeros((16,), tl.int32)
        tip = 0
        nodes = 0
        for node in range(1, 16):
            best = tl.max(waiting, 0)
            if (best >= 0) & (node < most):
                taken = offer == tl.min(tl.where(waiting == best, offer, 32), 0)
                this = tl.sum(tl.where(taken, what, 0), 0)
                behind = tl.sum(tl.where(taken, before, 0.0), 0)
                parent, depth, choice = this // 256, this // 16 % 16, this % 16
                node_chance = tl.where(lane == node, best, node_chance)
                node_what = tl.where(lane == node, this, node_what)
                is_trunk = parent == tip
                on_trunk = tl.where((lane == node) & is_trunk, 1, on_trunk)
                tip = tl.where(is_trunk, node, tip)
                nodes = node
                sibling = choice + 1
                first_choice = 0
                if LOOKS:
                    goes_on = _entry(beside_choice, depth)
                    passed = ((looked_up >> parent) & 1) * (sibling == _entry(beside_choice, depth - 1)).to(tl.int32)
                    was_looked_up = tl.sum(tl.where(taken, offer, 0), 0) == 0
                    sibling = tl.where(was_looked_up, CHOICES, sibling + passed)
                    first_choice = tl.where(was_looked_up & (goes_on == 0), 1, 0)
                siblings, children = depth - 1, depth
                if BEFORES > 1:
                    siblings = siblings * BEFORES + _entry(node_candidate, parent)
                    candidate = (_entry(packed, siblings) >> (4 * choice)) & 15
                    if LOOKS:
                        candidate = tl.where(choice < CHOICES, candidate, _entry(beside_candidate, depth - 1))
                    node_candidate = tl.where(lane == node, candidate, node_candidate)
                    children = children * BEFORES + candidate
                sibling_worth = tl.where(sibling < CHOICES, _offered(worth, siblings * CHOICES + sibling, behind), -1.0)
                first = _offered(worth, children * CHOICES + first_choice, best)
                waiting = tl.where(taken, -1.0, waiting)
                waiting = tl.where(offer == 2 * node, sibling_worth, tl.where(offer == 2 * node + 1, first, waiting))
                before = tl.where(offer == 2 * node, behind, tl.where(offer == 2 * node + 1, best, before))
                further, deeper = this - choice + sibling, node * 256 + (depth + 1) * 16
                child = deeper + first_choice
                what = tl.where(offer == 2 * node, further, tl.where(offer == 2 * node + 1, child, what))
                if LOOKS:
                    looked_up = tl.where(was_looked_up, looked_up | (1 << node), looked_up)
                    deeper_chance = _entry(beside_chance, depth)
                    onward = was_looked_up & (offer == 0)
                    waiting = tl.where(onward, tl.where(deeper_chance < 0, -1.0, best * deeper_chance), waiting)
                    before = tl.where(onward, best, before)
                    what = tl.where(onward, deeper + goes_on, what)

        # Entry k: the worth of verifying k nodes.
        values = tl.where(lane <= nodes, tl.cumsum(node_chance, 0) - price * cost, float("-inf"))
        best = tl.max(values, 0)
        chosen = tl.min(tl.where(values == best, lane, 16), 0)
        chosen = tl.where(whole, nodes, tl.where(way == TRIAL, TRY, chosen))
        edge = tl.minimum(chosen + 1, nodes)
        edge_chance = tl.sum(tl.where(lane == edge, node_chance, 0.0), 0)
        edge_cost = tl.sum(tl.where(lane == edge, cost, 0.0), 0) - tl.sum(tl.where(lane == edge - 1, cost, 0.0), 0)

        # The trunk's rows come first, row d at depth d, then the others'.
        in_tree = (lane >= 1) & (lane <= chosen)
        on_trunk = tl.where(in_tree, on_trunk, 0)
        trunk = tl.sum(on_trunk, 0)
        other = tl.where(in_tree, 1 - on_trunk, 0)
        row_of = tl.where(on_trunk > 0, node_what // 16 % 16, tl.where(in_tree, trunk + tl.cumsum(other, 0), 0))
        parent_row = _entries(row_of, node_what // 256)
        here = in_tree[None, :] & (row_of[None, :] == lane[:, None])
        parents = tl.sum(tl.where(here, parent_row[None, :], 0), 1)
        depths = tl.sum(tl.where(here, (node_what // 16 % 16)[None, :], 0), 1)
        numbers_of = tl.sum(tl.where(here, (node_what % 16)[None, :], 0), 1)
        drafted = (lane >= 1) & (lane <= chosen)
        of_drafter = drafted & (numbers_of < CHOICES)
        candidate_of = numbers_of
        if BEFORES > 1:
            candidate_of = tl.sum(tl.where(here, node_candidate[None, :], 0), 1)
            # What stood behind each row, which is what the host asks about.
            list_of = depths * BEFORES + candidate_of
            asked = ((lane <= chosen) & (depths < width - 1))[:, None]
            given = tl.load(choice_probabilities + list_of[:, None] * CHOICES + number, mask=asked, other=0.0)
        token = tl.load(choice_tokens + (depths - 1) * WIDE + candidate_of, mask=of_drafter, other=0)
        if LOOKS:
            token = tl.where(of_drafter, token, _entries(guess, depths - 1).to(tl.int64))

        # Upwards from every row: each ancestor is stored at the place of its depth.
        column = lane[None, :]
        paths = tl.zeros((16, 16), tl.int32) + column
        above, level = lane, depths
        for _ in range(15):
            paths = tl.where(drafted[:, None] & (column == level[:, None]), above[:, None], paths)
            above = _entries(parents, above)
            level = tl.maximum(level - 1, 0)

        if BEFORES > 1:
            tl.store(first_tokens + lane, drafts)
            tl.store(first_probabilities + lane, sure)
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
        if LOOKS:
            tl.store(record + MATCH_LENGTH, length)
            tl.store(record + MATCH_DISTANCE, distance)
            tl.store(record + LOOKED_UP, tl.sum(looked.to(tl.int32), 0))
            tl.store(record + BESIDE_CHOICES + lane, beside_choice)
            tl.store(record + BESIDE_CHANCES + lane, beside_chance.to(tl.int32, bitcast=True))
        if not whole:
            tl.store(record + CHANCE, edge_chance.to(tl.int32, bitcast=True))
            tl.store(record + COST_MS, edge_cost.to(tl.int32, bitcast=True))
    elif LOOKS:
        tl.store(state + AT_RECORD + LOOKED_UP, 0)  # the record still holds an earlier round's


assert MAX_ROWS == 16 and CHOICES == 4, "the kernel above is written for 16 rows and places of 4 bits"
