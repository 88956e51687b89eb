"""Rounds that the device runs by itself: drafting, verifying, sampling, accepting, moving the cursor, stopping.

The host enqueues a round before it reads the one before, so the GPU never waits for Python. It learns what a round
said from a small record, copied behind the round. A round enqueued after the answer has ended has no rows and changes
nothing. ``decoder`` defines what a round is; this says the same tokens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from ..commands import AUTO, GenerationSettings
from ..kernels.decode.tiles import DraftTiles, TargetTiles
from ..kernels.round.accept import (
    ACCEPTED,
    CHANCE,
    COST_MS,
    DRAFT_PROBABILITIES,
    EMITTED,
    MAX_SCRIPT,
    MAX_STOPS,
    PROBABILITIES,
    RECORD_SIZE,
    ROWS,
    TARGET_PROBABILITIES,
    TOKENS,
    WIDTH,
    RoundState,
    accept_rows,
    begin_round,
)
from ..kernels.round.accept import DRAFTED as DRAFTED_ROWS
from ..kernels.round.accept_tree import TREE_RECORD_SIZE
from ..kernels.round.choices import Choices
from ..kernels.round.grow import NUM_TREE_NUMBERS, tree_numbers
from ..kernels.round.keep_features import keep_row
from ..kernels.round.sample import SampledRows, SampleScratch, SamplingSettings, sample_rows
from ..kernels.round.verify_width import NUM_NUMBERS, choose_width, policy_numbers
from ..kernels.toolchain.jit import MAX_ROWS
from ..kernels.weights.int8 import Int8Weight
from ..models.dflash.draft_pass import DraftPass, RoundRows
from ..speculation.trees import AutoTrees
from ..speculation.verify_width import Auto, Choice
from .cuda_graphs import Flight, Step, captured
from .device_trees import DeviceTrees, TreeRecord, ints, reals
from .rounds import Outcome, Poll, Round

if TYPE_CHECKING:
    from .decoder import Decoder, Turn

Kind = Literal["draft", "verify", "grow", "tree", "plain", "ingest"]
"""Pieces of rounds. A round drafts and verifies, a chain or, in the next two, a tree; or the target writes alone: with
no drafter, or while it rests."""

TOGETHER = MAX_ROWS
"""Tokens that the target wrote alone wait for the drafter: it takes in so many at once, or all when it must draft."""

AHEAD = 1
"""Rounds enqueued beyond the one being read."""

MANY = 32
"""Repeats of what is too short to be timed once."""

BEGUN, DRAFTED, VERIFIED, READ = range(4)
"""Moments of a round."""


@dataclass(frozen=True, slots=True)
class _Departed:
    """A round that was enqueued."""

    flight: Flight
    settings: GenerationSettings
    context: int
    policy: Auto | None
    """What chose the width, if anything did."""
    price: float
    """What it thought a millisecond worth."""
    pause: Choice | None
    """Why it has no draft, if the policy wanted none."""
    ingests: bool
    """Whether all that was committed before it enters the drafter's context."""
    grows: AutoTrees | None
    """The policy, where the draft is a tree."""
    drafted: int
    """The moment at which its draft was done: when it began, if the drafter has no part in it."""


class DeviceRounds:
    """The rounds of one decoder, on its device."""

    def __init__(
        self,
        decoder: Decoder,
        head: Int8Weight | None = None,
        tiles: TargetTiles | None = None,
        draft_tiles: DraftTiles | None = None,
    ):
        """With ``head``, an 8-bit copy of the target's, it drafts in 8 bits. Tiles are given to be measured."""
        target, drafter, device = decoder.target, decoder.drafter, decoder.device
        self.drafts_in_8_bits = head is not None
        self._decoder, self._device = decoder, device
        self.drafts_trees = target.config.moe is None and drafter is not None and decoder.draft_cache is not None
        """Whether rounds whose width is chosen verify trees. Where rows bring experts of their own, chains pay more."""
        self._state = RoundState.allocate(device, TREE_RECORD_SIZE if self.drafts_trees else RECORD_SIZE)
        self._ids = torch.zeros(MAX_ROWS + 1, dtype=torch.int64, device=device)
        """The anchor and the drafts; the drafter writes from place 1 on, one more than there are rows."""
        taps = () if drafter is None else drafter.config.target_layer_ids
        self._target = target.decode_pass(decoder.cache, self._state.cursor, self._state.width, taps, tiles)
        self._target.ids = self._ids[:MAX_ROWS]
        choices = Choices.allocate(device) if self.drafts_trees else None
        self._trees = DeviceTrees(decoder.cache, self._target.features, choices) if choices is not None else None
        self._drafter: DraftPass | None = None
        self._block, self._mask_token = torch.zeros_like(self._target.ids), 0
        self._drafter_probability = torch.zeros(MAX_ROWS, device=device)
        if drafter is not None and decoder.draft_cache is not None:
            state = self._state
            rows = RoundRows(state.cursor, state.draft_width, state.ingest_start, state.ingest_rows)
            tokens, features = self._ids[1:], self._target.features[:MAX_ROWS]
            self._drafter = DraftPass(
                drafter, target, decoder.draft_cache, features, tokens, rows, draft_tiles, head, choices
            )
            self._block, self._mask_token = self._drafter.block, drafter.config.mask_token_id
            self._drafter_probability = self._drafter.out.probability
        self._policy_numbers = torch.zeros(NUM_TREE_NUMBERS if self.drafts_trees else NUM_NUMBERS, device=device)
        self._scripted = torch.full((MAX_SCRIPT, MAX_ROWS), -1.0, device=device)
        self._sampling = SamplingSettings.allocate(device)
        self._sampled = SampledRows.allocate(device)
        self._sample_scratch = SampleScratch(target.config.vocab_size, device)
        self._steps: dict[tuple[Kind, bool], Step] = {}
        sizes = len(self._policy_numbers), len(self._state.record)
        self._free = [Flight(*sizes, device, READ + 1) for _ in range(AHEAD + 1)]
        self._in_force: GenerationSettings | None = None
        self._waiting = 0
        """Rows that wait to enter the drafter's context once all that is enqueued has run, at most."""

    def run(self, turn: Turn, poll: Poll) -> Iterator[Round]:
        """Runs rounds until one has a ``finish``, or ``poll`` says stop; asked before each is enqueued."""
        departed: deque[_Departed] = deque()
        self._start(turn)
        over = False
        try:
            while departed or not over:
                now = None if over else poll()
                over = now is None
                if now is not None:
                    departed.append(self._depart(turn, now))
                if len(departed) > AHEAD or (over and departed):
                    done = self._arrive(turn, departed)
                    if done is not None:
                        over = over or done.finish is not None
                        yield done
        finally:  # whoever reads the rounds may have left: what is under way counts all the same
            while departed:
                self._arrive(turn, departed)

    @property
    def drafting(self) -> tuple[Kind, Kind]:
        """The pieces of a round whose width is chosen: a draft, and what verifies it."""
        return ("grow", "tree") if self.drafts_trees else ("draft", "verify")

    def prepare(self) -> None:
        """Captures every step that a turn may need, so that none waits for it."""
        self._state.done.fill_(1)
        draft, verify = self.drafting
        steps: list[Kind] = ["plain"] if self._drafter is None else ["plain", "verify", verify]
        for kind in steps:
            self._step(kind, True)
            self._step(kind, False)
        drafts: list[Kind] = [] if self._drafter is None else ["ingest", "draft", draft]
        for kind in drafts:
            self._step(kind, True)

    def rehearse(self) -> None:
        """Launches all that rounds launch, once, while nothing is to be done."""
        self.prepare()
        for step in self._steps.values():
            step()

    def time(self, kind: Kind, text: Sequence[int], context: int, width: int = 1, pending: int = 0) -> float:
        """Milliseconds of a piece of a greedy round behind ``context`` positions.

        It verifies the first ``width`` tokens of a text of 16, a tree as a typical one, or tells the drafter of
        ``pending`` rows.
        """
        self._pose(text, context, width)
        self._state.pending.fill_(min(context, pending))
        if self._trees is not None:
            self._trees.pose(width)
        return self._time(self._step(kind, True))

    def time_choice(self, policy: Auto, text: Sequence[int], context: int) -> float:
        """Milliseconds of choosing a width, with what the host sends for it. An upper bound: each choice here is one of
        many, and sets the stage for itself."""
        self._pose(text, context, MAX_ROWS)
        flight = self._free[0]

        def choices() -> None:
            for _ in range(MANY):
                self._state.width.fill_(MAX_ROWS)
                if self._trees is not None and isinstance(policy, AutoTrees):
                    flight.send(tree_numbers(policy, context), self._policy_numbers)
                    self._trees.grow(self._state, self._policy_numbers, self._scripted, self._ids)
                else:
                    flight.send(policy_numbers(policy, context), self._policy_numbers)
                    choose_width(self._state, self._policy_numbers, self._drafter_probability, self._scripted)

        step = captured(choices, self._device, what="choices")
        return self._time(step) / MANY

    def _pose(self, text: Sequence[int], context: int, width: int) -> None:
        """Puts the device where a round of a turn begins. The caches then hold nobody's conversation."""
        state = self._state
        state.script_length.zero_()
        state.stops.fill_(-1)
        state.end.fill_(self._decoder.max_context)
        state.block_size.fill_(MAX_ROWS)
        state.cursor.fill_(context)
        state.anchor.fill_(text[0])
        state.pending.zero_()
        state.width.fill_(width)
        self._ids[:MAX_ROWS] = torch.tensor(text[:MAX_ROWS])

    def _time(self, step: Step) -> float:
        """One run of a step, which must not be captured on the way."""
        state, watch = self._state, self._free[0].stopwatch
        state.done.zero_()
        watch.mark(BEGUN)
        step()
        watch.mark(READ)
        watch.wait()
        state.done.fill_(1)
        return watch.milliseconds(BEGUN, READ)

    def _start(self, turn: Turn) -> None:
        """Tells the device where a turn stands."""
        state, target = self._state, self._decoder.target
        assert len(target.config.stop_token_ids) <= MAX_STOPS
        stops = torch.full((MAX_STOPS,), -1, dtype=torch.int32)
        stops[: len(target.config.stop_token_ids)] = torch.tensor(target.config.stop_token_ids, dtype=torch.int32)
        script = list(self._decoder.script or ())
        state.stops.copy_(stops)
        state.script[: len(script)] = torch.tensor(script, dtype=torch.int32)
        confidences = torch.tensor(self._decoder.script_confidences or [])
        self._scripted.fill_(-1)
        self._scripted[: len(confidences), : confidences.shape[-1]] = confidences
        state.script_length.fill_(len(script))
        state.script_place.zero_()
        state.cursor.fill_(self._decoder.cache.length)
        state.anchor.fill_(turn.anchor)
        state.pending.zero_()
        state.done.zero_()
        self._in_force, self._waiting = None, 0

    def _depart(self, turn: Turn, settings: GenerationSettings) -> _Departed:
        """Enqueues a round under these settings."""
        if settings != self._in_force:
            self._put_in_force(turn, settings)
        greedy, context = settings.temperature == 0, turn.cache.length
        policy = self._decoder.auto if settings.block_size == AUTO and turn.drafter is not None else None
        policy = policy if isinstance(policy, Auto) else None
        drafts = turn.drafter is not None and (policy is None or policy.wants_draft(context))
        ingests = drafts or (turn.drafter is not None and self._waiting >= TOGETHER)
        grows = policy if drafts and self.drafts_trees and isinstance(policy, AutoTrees) else None
        draft, verify = self.drafting if grows else ("draft", "verify")
        judge = self._step(verify if drafts else "plain", greedy)
        flight = self._free.pop()
        flight.stopwatch.mark(BEGUN)
        if drafts:
            numbers = policy_numbers(policy, context) if grows is None else tree_numbers(grows, context)
            flight.send(numbers, self._policy_numbers)
            self._step(draft, True)()
        elif ingests:
            self._step("ingest", True)()
        self._waiting = MAX_ROWS if drafts else 1 if ingests else self._waiting + 1
        drafted = DRAFTED if ingests else BEGUN  # a mark holds the GPU up for a microsecond: none that says nothing
        if ingests:
            flight.stopwatch.mark(DRAFTED)
        judge()
        flight.stopwatch.mark(VERIFIED)
        flight.depart(self._state.record)
        flight.stopwatch.mark(READ)
        price = policy.price(context) if policy else 0.0
        pause = policy.pause(context) if policy and not drafts else None
        return _Departed(flight, settings, context, policy, price, pause, ingests, grows, drafted)

    def _put_in_force(self, turn: Turn, settings: GenerationSettings) -> None:
        block = 1 if turn.drafter is None else min(settings.block_rows(turn.drafter.config.block_size), MAX_ROWS)
        self._state.block_size.fill_(block)
        self._state.end.fill_(min(len(turn.prompt.ids) + settings.max_new_tokens, self._decoder.max_context))
        if settings.temperature > 0:
            self._sampling.temperature.fill_(settings.temperature)
        self._sampling.top_k.fill_(settings.top_k)
        self._sampling.top_p.fill_(settings.top_p)
        self._sampling.seed.fill_(settings.seed)
        self._in_force = settings

    def _arrive(self, turn: Turn, departed: deque[_Departed]) -> Round | None:
        """Waits for the oldest round and books it; None for one that came after the end."""
        oldest = departed.popleft()
        record = oldest.flight.arrived()
        self._free.append(oldest.flight)
        width = int(record[WIDTH])
        if width == 0:
            return None
        turn.settings = oldest.settings
        emitted, accepted = int(record[EMITTED]), int(record[ACCEPTED])
        written = int(record[DRAFTED_ROWS])
        drafts, watch = written - 1, oldest.flight.stopwatch
        done = Outcome(
            emitted=ints(record, TOKENS, emitted),
            probabilities=reals(record, PROBABILITIES, emitted),
            verify_width=width,
            total_ms=watch.milliseconds(BEGUN, READ),
            draft_ids=ints(record, ROWS + 1, drafts),
            draft_probabilities=reals(record, DRAFT_PROBABILITIES, drafts),
            target_probabilities=reals(record, TARGET_PROBABILITIES, min(width - 1, accepted + 1)),
            num_accepted=accepted,
            draft_ms=watch.milliseconds(BEGUN, oldest.drafted),
            verify_ms=watch.milliseconds(oldest.drafted, VERIFIED),
            choice=self._choice(oldest, record, width, drafts),
        )
        committed = ints(record, ROWS, emitted)
        if oldest.grows is not None:
            told = TreeRecord.read(record, width, drafts, oldest.grows)
            oldest.grows.saw(told.chances, told.tree, told.path, oldest.context)
            committed = told.committed
            done = done._replace(
                draft_ids=told.draft_ids, target_probabilities=told.target_probabilities, tree=told.verified
            )
        elif oldest.policy is not None:
            oldest.policy.observe(done.draft_probabilities, width - 1, accepted, oldest.context)
        self._commit(turn, committed, width, written, oldest.ingests)
        return turn.book(done)

    def _choice(self, departed: _Departed, record: Tensor, width: int, drafts: int) -> Choice | None:
        """Why so much of the draft was verified, where a policy chose."""
        if departed.policy is None or not drafts:
            return departed.pause
        chance, cost_ms = reals(record, CHANCE, 1)[0], reals(record, COST_MS, 1)[0]
        return Choice(width - 1, chance, cost_ms, departed.price)

    def _commit(self, turn: Turn, rows: tuple[int, ...], width: int, drafted: int, ingests: bool) -> None:
        """Keeps the host's books of the caches: what the round wrote, what it committed, what the drafter took in."""
        start = turn.cache.length
        if turn.draft_cache is not None and ingests:
            turn.draft_cache.follow(start, written=start + drafted)
        turn.prefix.follow(rows, written=start + width)

    def _step(self, kind: Kind, greedy: bool) -> Step:
        """One of the pieces that rounds are made of, captured when it is first wanted."""
        if (kind, greedy) not in self._steps:
            of_drafter = {"draft": self._draft, "grow": self._grow, "ingest": self._ingest}
            step = of_drafter.get(kind) or partial(self._verify, kind, greedy)
            was_done = self._state.done.clone()
            self._state.done.fill_(1)  # trying it out must change nothing
            self._state.width.zero_()
            self._steps[kind, greedy] = captured(step, self._device, what=kind)
            self._state.done.copy_(was_done)
        return self._steps[kind, greedy]

    def _begin(self, alone: bool, ingests: bool) -> None:
        begin_round(self._state, self._target.ids, self._block, self._mask_token, alone=alone, ingests=ingests)

    def _ingest(self) -> None:
        assert self._drafter is not None
        self._begin(alone=True, ingests=True)
        self._drafter.ingest()

    def _propose(self) -> None:
        """Ingests and drafts."""
        assert self._drafter is not None
        self._begin(alone=False, ingests=True)
        self._drafter.ingest()
        self._drafter.draft()

    def _draft(self) -> None:
        self._propose()
        choose_width(self._state, self._policy_numbers, self._drafter_probability, self._scripted)

    def _grow(self) -> None:
        assert self._trees is not None
        self._propose()
        self._trees.grow(self._state, self._policy_numbers, self._scripted, self._ids)

    def _verify(self, kind: Kind, greedy: bool) -> None:
        """The target's pass and what follows from it; alone in a round when nothing is drafted."""
        trees = self._trees if kind == "tree" else None
        if kind == "plain":
            self._begin(alone=True, ingests=False)
            self._target.forward(1, beside=True)
            if self._drafter is not None:
                keep_row(self._target.features, self._state.pending, self._state.width)
        else:
            self._target.forward(tree=None if trees is None else trees.rows)
        state, out, sampled = self._state, self._target.out, None if greedy else self._sampled
        if sampled is not None:
            drafted, rows = (self._ids[1:], None) if trees is None else (trees.choices.tokens[:, 0], trees.rows)
            where = state.cursor, state.width, drafted
            sample_rows(out, self._sampling, *where, sampled, self._sample_scratch, rows)
        if trees is None:
            accept_rows(state, self._ids, out, sampled, self._drafter_probability)
        else:
            trees.accept(state, self._ids, out, sampled)
