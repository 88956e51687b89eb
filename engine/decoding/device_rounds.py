"""Runs rounds on the device alone; ``host_rounds`` defines what they yield. The host enqueues a round before it reads
the one before, from a small record that each round leaves in the host's memory. Rounds that were enqueued behind the
end of an answer have no rows and change nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..commands import AUTO, GenerationSettings
from ..events import Match, WidthChoice
from ..kernels.round import state as layout
from ..kernels.round.state import MAX_STOPS
from ..kernels.round.verify_width import choice_numbers
from ..kernels.toolchain.jit import MAX_ROWS
from ..speculation.choice import ChoiceNumbers, RoundPlan
from ..speculation.one_row import TOLD_EVERY
from ..speculation.policy import Policy
from ..speculation.trees import CHOICES, LOOKED_UP, Chances, Lattice, Node, chain, is_chain, placed
from .cuda_graphs import Outbox, Stopwatch
from .decoder import Turn
from .round_launches import AHEAD, Ingestion, Proposal, RoundLaunches, Verification
from .rounds import Poll, Round, probabilities_of, require_numbers

INGEST_BATCH = MAX_ROWS
"""Tokens that the target wrote alone wait for the drafter, which takes in this many at once, or all of them when it
must draft."""

BEGUN, DRAFTED, VERIFIED = range(3)
"""The marks on a round's stopwatch: when it begins, when its draft is done, and when all is verified."""


@dataclass(frozen=True, slots=True)
class RoundSlot:
    """The host memory, stopwatch and outbox of one round in flight; the round ``AHEAD`` + 1 later uses them again."""

    record: Tensor
    """The round's record, which is complete once the last mark has passed: see ``Reports``."""
    stopwatch: Stopwatch
    outbox: Outbox


@dataclass(frozen=True, slots=True)
class EnqueuedRound:
    """A round that was enqueued and that the host has yet to read."""

    number: int
    """Which round of its turn it is, counted from 1."""
    slot: RoundSlot
    settings: GenerationSettings
    context: int
    policy: Policy | None
    """The policy that learns from the round; None where none chooses."""
    chosen_by: ChoiceNumbers | None
    """The numbers by which the device chooses how much to verify; None where it verifies whole drafts."""
    pause: WidthChoice | None
    """Why the round has no draft, where the policy wanted none."""
    is_tree: bool
    plan: RoundPlan
    ingests: bool
    """Whether the drafter's context takes in all that was committed before this round."""
    ingests_own: bool
    """Whether the drafter's context also takes in all that this round commits."""
    drafted: int
    """The stopwatch's mark at which its draft was done: ``DRAFTED``, or ``BEGUN`` where nothing runs before the
    target's pass."""


class DeviceRounds:
    def __init__(self, launches: RoundLaunches):
        self.launches = launches
        device, numbers = launches.device, len(launches.numbers)
        self._conditioned = launches.tree is not None and launches.tree.choices.order is not None
        self._places = [
            RoundSlot(record, Stopwatch(device, VERIFIED + 1), Outbox(numbers, device))
            for record in launches.reports.records
        ]
        self._enqueued = 0
        """Rounds of this turn that were enqueued so far."""
        self._in_force: GenerationSettings | None = None
        self._rows = -1
        """The most rows that the device verifies in a round, as it was last told; -1 before that."""
        self._waiting = 0
        """The most rows that can wait to enter the drafter's context once all that is enqueued has run."""

    @property
    def choices(self) -> int:
        return 1 if self.launches.tree is None else CHOICES

    @property
    def fuses(self) -> bool:
        return self.launches.fuses

    def run(self, turn: Turn, poll: Poll) -> Iterator[Round]:
        """Runs rounds until one has a ``finish``, or ``poll`` says stop; it is asked before each round is enqueued."""
        enqueued: deque[EnqueuedRound] = deque()
        self._start(turn)
        over = False
        try:
            while enqueued or not over:
                now = None if over else poll()
                over = now is None
                if now is not None:
                    enqueued.append(self._enqueue(turn, now))
                if len(enqueued) > AHEAD or (over and enqueued):
                    done = self._collect(turn, enqueued.popleft())
                    if done is not None:
                        over = over or done.finish is not None
                        yield done
        finally:  # whoever reads the rounds may have left: what is under way counts all the same
            while enqueued:
                self._collect(turn, enqueued.popleft())

    def _start(self, turn: Turn) -> None:
        """Copies to the device where a turn stands."""
        state, target = self.launches.state, turn.target
        assert len(target.config.stop_token_ids) <= MAX_STOPS
        stops = torch.full((MAX_STOPS,), -1, dtype=torch.int32)
        stops[: len(target.config.stop_token_ids)] = torch.tensor(target.config.stop_token_ids, dtype=torch.int32)
        state.stops.copy_(stops)
        state.cursor.fill_(turn.cache.length)
        state.anchor.fill_(turn.anchor)
        if turn.text is not None:
            self.launches.text.ids[: len(turn.text)] = torch.from_numpy(turn.text.ids).to(torch.int32)
        state.pending.zero_()
        state.done.zero_()
        self.launches.reports.next_record.zero_()
        self._enqueued = 0
        self._in_force, self._waiting, self._rows = None, 0, -1

    def _put_in_force(self, turn: Turn, settings: GenerationSettings) -> None:
        """Copies settings to the device, for the rounds enqueued from now on."""
        state, sampling = self.launches.state, self.launches.sampling
        state.end.fill_(min(len(turn.prompt.ids) + settings.max_new_tokens, turn.decoder.max_context))
        if settings.temperature > 0:
            sampling.temperature.fill_(settings.temperature)
        sampling.top_k.fill_(settings.top_k)
        sampling.top_p.fill_(settings.top_p)
        sampling.seed.fill_(settings.seed)
        self._in_force = settings

    def _verify_at_most(self, rows: int) -> None:
        """Sets the most rows that the device verifies, from the next round on."""
        if rows != self._rows:
            self._rows = rows
            self.launches.state.block_size.fill_(rows)

    def _count(
        self, turn: Turn, settings: GenerationSettings, policy: Policy | None, plan: RoundPlan, is_tree: bool
    ) -> int:
        """How many tokens the drafter drafts in the coming round: one of the counts that were captured. A tree
        (``is_tree``) may fill the pass, however short the drafter's block is."""
        counts = self.launches.counts
        if plan.lookup:  # a looked up chain may fill the pass, however little the drafter drafts beside it
            self._verify_at_most(plan.rows)
            return counts[-1]
        if turn.drafter is None or not plan.draft:
            return 0
        most = settings.block_rows(min(turn.drafter.config.block_size, MAX_ROWS)) - 1
        if policy is not None and len(counts) > 1:
            most = policy.depth(turn.cache.length, counts)
        self._verify_at_most(MAX_ROWS if is_tree else most + 1)
        return next(count for count in counts if count >= most)

    def _enqueue(self, turn: Turn, settings: GenerationSettings) -> EnqueuedRound:
        if settings != self._in_force:
            self._put_in_force(turn, settings)
        launches, greedy, context = self.launches, settings.temperature == 0, turn.cache.length
        speculates = turn.drafter is not None or turn.text is not None
        policy = turn.decoder.policy if settings.block_size == AUTO and speculates else None
        plan = RoundPlan(turn.drafter is not None)
        if policy is not None:
            plan = policy.plan(context, 0 if turn.match is None else turn.match.length)
            plan = plan._replace(rows=min(plan.rows, launches.widest))
        drafts = plan.draft or plan.lookup
        waits = plan.draft or self._waiting >= (1 if plan.lookup else INGEST_BATCH)
        ingests, ingests_own = turn.drafter is not None and waits, turn.drafter is not None and plan.is_wide
        chosen_by = policy.numbers(context) if drafts and policy is not None else None
        is_tree = launches.tree is not None and (chosen_by is not None or plan.lookup)
        count = self._count(turn, settings, policy, plan, is_tree)
        proposal, verification = self._pieces(plan, ingests, chosen_by is not None, count)
        verify = launches.of(verification._replace(greedy=greedy))
        ingest = launches.of(Ingestion(plan.rows)) if ingests_own else None
        slot = self._places[self._enqueued % len(self._places)]
        self._enqueued += 1
        slot.stopwatch.mark(BEGUN)
        if drafts:
            slot.outbox.send(choice_numbers(chosen_by), launches.numbers)
        if proposal is not None:
            launches.of(proposal)()
        self._waiting = 0 if ingests_own else MAX_ROWS if drafts else 1 if ingests else self._waiting + 1
        drafted = BEGUN if proposal is None else DRAFTED  # a mark costs the GPU a microsecond
        if proposal is not None:
            slot.stopwatch.mark(DRAFTED)
        verify()
        if ingest is not None:
            ingest()
        slot.stopwatch.mark(VERIFIED)
        pause = policy.pause(context) if policy is not None and not drafts else None
        return EnqueuedRound(
            self._enqueued, slot, settings, context, policy, chosen_by, pause, verification.tree, plan, ingests,
            ingests_own, drafted,
        )  # fmt: skip

    def _pieces(
        self, plan: RoundPlan, ingests: bool, chooses: bool, count: int
    ) -> tuple[Proposal | None, Verification]:
        """The pieces of a round: what is launched before the target's pass (None for nothing), and that pass.
        ``count``: tokens drafted, where the plan has a draft."""
        launches = self.launches
        if plan.is_wide:
            return Proposal(lookup=launches.widest, ingests=ingests), Verification(plan.rows)
        if plan.draft:
            lookup = MAX_ROWS if plan.lookup else 0
            proposal = launches.drafting(count, lookup) if chooses or lookup else Proposal(count)
            return proposal, Verification(tree=proposal.tree)
        if plan.lookup:
            return Proposal(lookup=MAX_ROWS, ingests=ingests), Verification()
        return Proposal() if ingests else None, Verification(1)

    def _collect(self, turn: Turn, oldest: EnqueuedRound) -> Round | None:
        """Waits for a round and enters it into the turn; None for one that came after the end."""
        watch = oldest.slot.stopwatch
        watch.wait()
        price = None if oldest.chosen_by is None else oldest.chosen_by.price
        read = read_round(oldest.slot.record, oldest.is_tree, self._conditioned, oldest.plan, oldest.settings, price)
        if read is None:
            return None
        done, outcome = read
        require_numbers(outcome.chances)
        turn.settings = oldest.settings
        done.draft_ms = watch.milliseconds(BEGUN, oldest.drafted)
        done.verify_ms = watch.milliseconds(oldest.drafted, VERIFIED)
        done.total_ms = watch.milliseconds(BEGUN, VERIFIED)
        if oldest.policy is not None:
            drafted = outcome.drafted_rows - 1
            oldest.policy.observe_times(oldest.context, drafted, done.verify_width, done.draft_ms, done.verify_ms)
            chances = outcome.chances if oldest.plan.draft else ()
            taken = done.match is not None and not oldest.is_tree
            looked_up = turn.lookup_outcome(done.emitted, taken, outcome.branch_choices)
            oldest.policy.observe(chances, outcome.tree, outcome.path, oldest.context, looked_up)
        self._commit(turn, done, outcome.drafted_rows, oldest)
        done.finish = turn.append_tokens(done.emitted)
        done.context_length = turn.cache.length
        done.choice = done.choice or oldest.pause
        done.alone_ms = self._alone_ms(turn, oldest)
        return done

    def _alone_ms(self, turn: Turn, done: EnqueuedRound) -> float | None:
        """What a round of one row takes by the costs that are measured here; None where this round doesn't tell."""
        policy = turn.decoder.policy
        if not turn.compares or policy is None or done.number % TOLD_EVERY != 1:
            return None
        return policy.alone_ms(done.context)

    def _commit(self, turn: Turn, done: Round, drafted_rows: int, oldest: EnqueuedRound) -> None:
        """Brings the host's view of the caches up to date: the rows that the round wrote and committed, the anchor's
        and those of all emitted tokens but the last, and those that the drafter took in."""
        start = turn.cache.length
        if turn.draft_cache is not None and oldest.ingests:
            turn.draft_cache.note_rows_by_kernels(start, written=start + drafted_rows)
        turn.prefix.note_rows_by_kernels((turn.anchor, *done.emitted[:-1]), written=start + done.verify_width)
        if turn.draft_cache is not None and oldest.ingests_own:
            turn.draft_cache.note_rows_by_kernels(turn.cache.length, written=turn.cache.length)


class DeviceOutcome(NamedTuple):
    """What a policy learns of a round on the device, and the caches follow, beside the :class:`Round` that it was."""

    tree: Sequence[Node]
    """The drafted tokens that were verified, in row order; a chain as the tree that it is."""
    path: Sequence[int]
    """The accepted drafts' rows, in the order of the text."""
    chances: Chances
    """By position, the probabilities of the drafter's choices."""
    drafted_rows: int
    """Rows of the draft, the anchor's included; 1 without one."""
    branch_choices: tuple[int, ...]
    """By position, which of the drafter's choices a looked up chain that entered a tree went on with."""


def read_round(
    record: Tensor, is_tree: bool, conditioned: bool, plan: RoundPlan, settings: GenerationSettings, price: float | None
) -> tuple[Round, DeviceOutcome] | None:
    """Reads an int32 record on the host; times, context and end are the caller's to add. None for a round behind the
    end. ``is_tree``: whether the round was to draft a tree; ``conditioned``: whether its choices depend on the token
    before; ``price``: what a millisecond was worth to the policy that
    chose, in tokens; None where none chose."""
    width, drafted_rows = _number(record, layout.WIDTH), _number(record, layout.DRAFTED) if plan.draft else 1
    if width == 0:
        return None
    num_found = _number(record, layout.LOOKED_UP) if plan.lookup else 0
    looked_up, branch_choices = (0, _ints(record, layout.BESIDE_CHOICES, num_found)) if is_tree else (num_found, ())
    accepted, emitted = _number(record, layout.ACCEPTED), _number(record, layout.EMITTED)
    drafted = looked_up or drafted_rows - 1
    lanes = layout.MOST_LANES if plan.is_wide else MAX_ROWS
    tokens = _ints(record, layout.list_at(layout.ROWS, lanes), lanes)
    if is_tree:
        given = _reals(record, layout.CHOICE_PROBABILITIES, (width if conditioned else drafted) * CHOICES)
        lists = tuple(given[first : first + CHOICES] for first in range(0, len(given), CHOICES))
        chances: Chances = lists
        if conditioned:  # behind each row; all positions may ask for all rows
            firsts = _reals(record, layout.DRAFT_PROBABILITIES, drafted)
            chances = Lattice.with_chain([(first,) for first in firsts], [lists] * drafted)
        by_match = _reals(record, layout.BESIDE_CHANCES, len(branch_choices))
        parents, numbers = (_ints(record, start + 1, width - 1) for start in (layout.PARENTS, layout.NUMBERS))
        tree = placed(parents, numbers, chances, by_match)
        draft_ids, path = _ints(record, layout.DRAFTS, drafted), _ints(record, layout.PATH, MAX_ROWS)[1 : accepted + 1]
    else:
        given = _reals(record, layout.list_at(layout.DRAFT_PROBABILITIES, lanes), drafted)
        chances, by_match = tuple((each,) for each in given), ()
        tree = chain(width - 1)
        draft_ids, path = tokens[1 : drafted + 1], tuple(range(1, accepted + 1))
    branches = not is_chain(tree)
    judged = min(accepted + 1, drafted if branches else width - 1)
    guesses = looked_up or any(node.choice == LOOKED_UP for node in tree)
    length, distance = _number(record, layout.MATCH_LENGTH), _number(record, layout.MATCH_DISTANCE)
    choice = None
    if price is not None and chances:
        choice = WidthChoice(_reals(record, layout.CHANCE, 1)[0], _reals(record, layout.COST_MS, 1)[0], 1e3 * price)
    done = Round(
        emitted=_ints(record, layout.list_at(layout.TOKENS, lanes), emitted),
        probabilities=_reals(record, layout.list_at(layout.PROBABILITIES, lanes), emitted),
        verify_width=width,
        total_ms=0.0,
        context_length=0,
        settings=settings,
        finish=None,
        draft_ids=draft_ids,
        draft_probabilities=tuple(position[0] for position in chances),
        target_probabilities=_reals(record, layout.list_at(layout.TARGET_PROBABILITIES, lanes), judged),
        num_accepted=len(path),
        choice=choice,
        tree=tree if branches else (),
        tree_ids=tokens[1:width] if branches else (),
        tree_probabilities=probabilities_of(tree, chances, by_match) if branches else (),
        match=Match(length, distance) if guesses else None,
        num_agreed=_number(record, layout.AGREED) if looked_up else 0,
    )
    return done, DeviceOutcome(tree, path, chances, drafted_rows, branch_choices)


def _number(record: Tensor, index: Any) -> int:
    return int(record[int(index)])


def _ints(record: Tensor, start: Any, count: int) -> tuple[int, ...]:
    return tuple(record[int(start) : int(start) + count].tolist())


def _reals(record: Tensor, start: Any, count: int) -> tuple[float, ...]:
    """Reads ``count`` fp32 numbers that a record holds as int32 bits."""
    return _ints(record.view(torch.float32), start, count)
