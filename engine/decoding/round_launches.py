"""Launches all that device rounds do, over tensors that stay in place, captured piece by piece. A piece is a value that
says what is launched in one go: a round is a ``Proposal`` (or none), a ``Verification`` and, behind a wide one, an
``Ingestion``. It drafts and verifies a chain or a tree, or the target writes one token alone. Trees pay on dense
targets, where rows are cheap: the likeliest paths through four choices a position fill a chain's rows, and the accepted
path is then moved to where a chain would have left it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch

from ..kernels.decode.tiling.tiles import DraftTiles, TargetTiles
from ..kernels.round.accept import DraftTree, accept_rows, accept_tree
from ..kernels.round.choices import DraftChoices
from ..kernels.round.grow import grow_tree
from ..kernels.round.keep_features import keep_features
from ..kernels.round.lookup import LookupText, choose_chain, look_up
from ..kernels.round.move_accepted import RowStores, move_accepted
from ..kernels.round.sample import SampledRows, SampleScratch, SamplingSettings, sample_rows
from ..kernels.round.state import (
    RECORD_SIZE,
    TREE_RECORD_SIZE,
    WIDE_RECORD_SIZE,
    RoundReports,
    RoundState,
    begin_round,
    report_round,
)
from ..kernels.round.tile_places import TilePlaces, place_accepted
from ..kernels.round.verify_width import NUM_NUMBERS, choose_width
from ..kernels.toolchain.card import card_of
from ..kernels.toolchain.jit import MAX_ROWS
from ..kernels.toolchain.memory_split import SPLIT
from ..kernels.weights.int8 import Int8Weight
from ..models.drafter import Committed, DraftBinding, DraftPass, RoundRows
from ..models.target import WidePass
from ..speculation.trees import WIDE_ROWS
from .cuda_graphs import Launch, captured
from .decoder import Decoder

BLOCK = MAX_ROWS - 1
"""How many tokens a whole block drafts."""
DRAFT_COUNTS = (1, 2, 3, 4, 5, 6, 8, 11, BLOCK)
"""The draft lengths that are captured for drafters that take a pass for each token; a round drafts the next one up."""


AHEAD = 1
"""How many rounds are enqueued beyond the one being read."""


class Proposal(NamedTuple):
    """What runs before the target's pass: the drafter takes in what was written, drafts are made or looked up, and how
    much of them to verify is chosen. ``Proposal(BLOCK, tree=True)`` drafts a block and grows a tree of it;
    ``Proposal(lookup=16, ingests=False)`` looks a chain of 15 up without a drafter; ``Proposal()`` only takes in."""

    drafted: int = 0
    """How many tokens the drafter drafts; with 0 it drafts nothing."""
    lookup: int = 0
    """The most rows, anchor included, that a looked up chain may fill: 16, or 64 in a wide round; 0 looks nothing
    up."""
    ingests: bool = True
    """Whether the drafter's context takes in what was written since it last did."""
    tree: bool = False
    """Whether a tree is chosen, not a chain."""

    def __str__(self) -> str:
        parts = (
            "ingest" if self.ingests else "", f"draft {self.drafted}" if self.drafted else "",
            f"look up {self.lookup}" if self.lookup else "", "tree" if self.tree else "",
        )  # fmt: skip
        return ", ".join(filter(None, parts))


class Verification(NamedTuple):
    """The target's pass, the samples behind its rows, what of them is accepted, and the report."""

    rows: int = MAX_ROWS
    """The most rows of the pass: 1 is the target alone, 16 a chain or a tree, 32 and 64 are wide chains."""
    tree: bool = False
    greedy: bool = True
    """Whether every sample is the likeliest token: temperature 0."""

    def __str__(self) -> str:
        return f"verify {self.rows}{' of a tree' if self.tree else ''}{' greedily' if self.greedy else ''}"


class Ingestion(NamedTuple):
    """The drafter's context takes in, at once, what a wide pass of this many rows has accepted."""

    rows: int

    def __str__(self) -> str:
        return f"ingest {self.rows}"


RoundPiece = Proposal | Verification | Ingestion


class RoundLaunches:
    """All launches of one decoder's rounds, and the tensors that they share."""

    def __init__(
        self,
        decoder: Decoder,
        head: Int8Weight | None = None,
        tiles: TargetTiles | None = None,
        draft_tiles: DraftTiles | None = None,
    ):
        """``head``: an 8-bit copy of the target's, with which the drafter drafts in 8 bits. ``tiles`` and
        ``draft_tiles``: those of the two passes' products; by default, what suits the card."""
        target, drafter, device = decoder.target, decoder.drafter, decoder.device
        self.decoder, self.device = decoder, device
        self.head = head
        drafts = drafter is not None and decoder.draft_cache is not None
        # Chains pay more where each row brings experts of its own.
        drafts_trees = drafts and target.config.moe is None and drafter is not None and not drafter.sequential
        self.widest = MAX_ROWS if drafts_trees else target.widest_pass
        """How many rows the widest round has."""
        record_size = TREE_RECORD_SIZE if drafts_trees else RECORD_SIZE if self.widest == MAX_ROWS else WIDE_RECORD_SIZE
        self.state = RoundState.allocate(device, record_size)
        self.reports = RoundReports.allocate(AHEAD + 1, record_size, device)
        self.ids = torch.zeros(self.widest + 1, dtype=torch.int64, device=device)
        """int64 [widest + 1]: the anchor and the drafts. A drafter writes 16 tokens from place 1 on, one more than
        there are rows."""
        taps = () if drafter is None else drafter.config.target_layer_ids
        self.target = target.decode_pass(decoder.cache, self.state.cursor, self.state.width, taps, tiles)
        self.target.ids = self.ids[:MAX_ROWS]
        self.wide: WidePass | None = None
        if self.widest > MAX_ROWS:
            self.wide = target.wide_pass(decoder.cache, self.state.cursor, self.state.width, taps, tiles)
            self.wide.ids = self.ids[: self.widest]
            self.target.out = self.wide.out.tile(0)  # the two passes never run at the same time
            self._accepted = TilePlaces.allocate(self.widest // MAX_ROWS, device)
            self._guess_chance = torch.zeros(self.widest, device=device)
        self.tree: DraftTree | None = None
        if drafts_trees and drafter is not None:
            self.tree = DraftTree.allocate(DraftChoices.allocate(device, drafter.conditioned))
        """The tree of the round that runs; None where this pair verifies chains."""
        self._stores = RowStores(decoder.cache.attention, self.target.features) if drafts_trees else None
        self.drafter: DraftPass | None = None
        self._first_drafts = False
        self._block, self._mask_token, self._most_drafted = torch.zeros_like(self.target.ids), 0, MAX_ROWS
        self.drafter_probability = torch.zeros(MAX_ROWS, device=device)
        if drafter is not None and decoder.draft_cache is not None:
            state, choices = self.state, None if self.tree is None else self.tree.choices
            self._first_drafts = drafter.config.first_drafts
            width = state.block_rows if self._first_drafts else state.draft_width
            rows = RoundRows(state.cursor, width, state.ingest_start, state.ingest_rows)
            tokens, features = self.ids[1 : MAX_ROWS + 1], self.target.features[:MAX_ROWS]
            bound = DraftBinding(features, tokens, rows, draft_tiles, head, choices)
            self.drafter = drafter.draft_pass(target, decoder.draft_cache, bound)
            self._block, self._mask_token = self.drafter.block, self.drafter.mask_token
            self._most_drafted = min(drafter.config.block_size, MAX_ROWS)
            self.drafter_probability = self.drafter.out.probability
        self.text = LookupText.allocate(decoder.max_context, device)
        self.numbers = torch.zeros(NUM_NUMBERS, device=device)
        """fp32 [``NUM_NUMBERS``]: the ``choice_numbers`` by which the round that runs chooses how much to verify."""
        self.sampling = SamplingSettings.allocate(device)
        self.sampled = SampledRows.allocate(device, self.widest)
        self.sample_scratch = SampleScratch(target.config.vocab_size, device)
        self.counts = DRAFT_COUNTS if drafter is not None and drafter.sequential else DRAFT_COUNTS[-1:]
        """The draft lengths that are captured: one, where a whole block is drafted at once."""
        self._captured: dict[RoundPiece, Launch] = {}

    @property
    def drafts_in_8_bits(self) -> bool:
        return self.head is not None

    @property
    def fuses(self) -> bool:
        """Whether a round can draft and look up at once. A drafter that takes a pass for each token drafts fewer than a
        lookup finds, so it can't."""
        return len(self.counts) == 1

    def drafting(self, drafted: int = BLOCK, lookup: int = 0) -> Proposal:
        """The proposal of a round whose draft a policy chooses from: ``drafted`` tokens, beside a looked up chain of up
        to ``lookup`` rows. It grows a tree where this pair verifies trees."""
        return Proposal(drafted, lookup, tree=self.tree is not None)

    def prepare(self, wide: bool = True) -> None:
        """Captures every piece that a turn may need, so that none waits for it; not ``wide``: whoever leaves wide
        rounds' out, which have most of the launches, captures ``wide_pieces`` before the first turn."""
        self.state.done.fill_(1)
        for piece in (*self._pieces(), *(self.wide_pieces() if wide else ())):
            self.of(piece)

    def _pieces(self) -> Iterator[RoundPiece]:
        has_drafter = self.drafter is not None
        passes = {Verification(1), Verification(), Verification(tree=has_drafter and self.tree is not None)}
        for verification in sorted(passes):
            yield from _both_ways(verification)
        if has_drafter:
            proposals = {Proposal(BLOCK), self.drafting()} | ({self.drafting(lookup=MAX_ROWS)} if self.fuses else set())
            for proposal in sorted(proposals):
                yield from (proposal._replace(drafted=count) for count in self.counts)
            yield Proposal()
            yield Proposal(lookup=MAX_ROWS)
        yield Proposal(lookup=MAX_ROWS, ingests=False)

    def wide_pieces(self) -> Iterator[RoundPiece]:
        """The pieces of wide rounds alone; none where there are no such rounds."""
        if self.wide is None:
            return
        yield Proposal(lookup=self.widest, ingests=False)
        if self.drafter is not None:
            yield Proposal(lookup=self.widest)
        for rows in WIDE_ROWS:
            yield from _both_ways(Verification(rows))
            if self.drafter is not None:
                yield Ingestion(rows)

    def leave_wide_rounds_out(self) -> None:
        """Leaves wide rounds out from now on, because their passes fail here."""
        self.widest, self.wide = MAX_ROWS, None
        for piece in [piece for piece in self._captured if _is_wide(piece)]:
            del self._captured[piece]

    def rehearse(self) -> None:
        """Launches every piece once in a round that changes nothing."""
        self.prepare()
        for launch in self._captured.values():
            launch()

    def of(self, piece: RoundPiece) -> Launch:
        """The launch of a piece, captured when it is first wanted."""
        if piece not in self._captured:
            was_done, was_place = self.state.done.clone(), self.reports.next_record.clone()
            self.state.done.fill_(1)  # the capture's own runs must change nothing
            self.state.width.zero_()
            SPLIT.share(self.target.tiles.shared, card_of(self.device))  # another pair may have asked for its own since
            self._captured[piece] = captured(partial(self.launch, piece), self.device, what=str(piece))
            self.state.done.copy_(was_done)
            self.reports.next_record.copy_(was_place)
        return self._captured[piece]

    def launch(self, piece: RoundPiece) -> None:
        """Launches a piece directly, without a capture."""
        match piece:
            case Proposal():
                self._propose(piece)
            case Verification(rows) if rows > MAX_ROWS:
                self._verify_wide(rows, piece.greedy)
            case Verification():
                self._verify(piece)
            case Ingestion(rows):
                self._tell(rows)

    def set_up_timed_round(self, text: Sequence[int], context: int, width: int, pending: int) -> None:
        """Sets up a round to be timed behind ``context`` positions: ``width`` tokens to verify out of a ``text`` of 16
        or more, and ``pending`` rows to ingest. The caches then hold nobody's conversation."""
        state = self.state
        state.stops.fill_(-1)
        state.end.fill_(self.decoder.max_context)
        state.block_size.fill_(MAX_ROWS)
        state.cursor.fill_(context)
        state.anchor.fill_(text[0])
        state.pending.fill_(min(context, pending))
        state.width.fill_(width)
        state.draft_width.fill_(min(width, self._most_drafted))
        state.block_rows.fill_(min(width, self._most_drafted) - 1)
        rows = text[: self.widest]
        self.ids[: len(rows)] = torch.tensor(rows)

    def _propose(self, proposal: Proposal) -> None:
        drafted, lookup, ingests, tree = proposal
        self._begin(alone=not drafted and not lookup, ingests=ingests)
        if ingests:
            assert self.drafter is not None
            self.drafter.ingest()
        if drafted:
            self.draft(drafted, tree)
        if lookup:
            look_up(self.state, self.text)
        if tree:
            assert self.tree is not None
            grow_tree(self.state, self.numbers, self.ids, self.tree, self.text if lookup else None)
        elif lookup:
            chance = self.drafter_probability if lookup == MAX_ROWS else self._guess_chance
            choose_chain(self.state, self.numbers, self.ids, self.text, chance, drafted=drafted > 0, lanes=lookup)
        elif drafted:
            choose_width(self.state, self.numbers, self.drafter_probability)

    def draft(self, count: int, tree: bool = False) -> None:
        """Drafts at least ``count`` tokens, once the drafter has taken in what was written; with choices for a
        ``tree`` where one is grown."""
        assert self.drafter is not None
        self.drafter.draft(count, tree)

    def _verify(self, verification: Verification) -> None:
        """Runs the target's pass, samples, accepts and reports; without a draft that is the whole round."""
        tree, greedy = self.tree if verification.tree else None, verification.greedy
        if verification.rows == 1:
            self._begin(alone=True, ingests=False)
            self.target.forward(1, beside=True)
            if self.drafter is not None:
                keep_features(self.target.features, self.state.pending, self.state.width)
        else:
            self.target.forward(tree=None if tree is None else tree.rows)
        sampled = self.say(tree, greedy)
        if tree is None:
            accept_rows(self.state, self.ids, self.target.out, sampled, self.drafter_probability, self.text.ids)
        else:
            assert self._stores is not None
            accept_tree(self.state, self.ids, tree, self.target.out, sampled, self.text.ids)
            move_accepted(self._stores, tree.path)
            self.target.keep_path(tree.path)
        report_round(self.state, self.reports)

    def _verify_wide(self, rows: int, greedy: bool) -> None:
        """Runs the target's pass over a chain of up to ``rows``, samples, accepts and reports."""
        assert self.wide is not None
        self.wide.forward(rows)
        sampled, out = self.say_wide(rows, greedy), self.wide.out
        accept_rows(self.state, self.ids, out, sampled, self._guess_chance, self.text.ids, self.widest)
        report_round(self.state, self.reports)

    def _tell(self, rows: int) -> None:
        """Takes into the drafter's context what a wide pass of this many rows has accepted."""
        assert self.wide is not None and self.drafter is not None
        place_accepted(self.state, self._accepted)
        for number in range(rows // MAX_ROWS):
            features = self.wide.features[number * MAX_ROWS :][:MAX_ROWS]
            self.drafter.ingest(Committed(features, self._accepted.cursors[number], self._accepted.rows[number]))

    def say_wide(self, rows: int, greedy: bool) -> SampledRows | None:
        """Samples behind the rows of a chain's pass of up to ``rows``; None where the likeliest tokens are wanted."""
        assert self.wide is not None
        if greedy:
            return None
        places = self.wide.places
        for number in range(rows // MAX_ROWS):
            drafted = self.ids[number * MAX_ROWS + 1 :]
            where = places.cursors[number], places.rows[number], drafted
            out, sampled = self.wide.out.tile(number), self.sampled.tile(number)
            sample_rows(out, self.sampling, *where, sampled, self.sample_scratch)
        return self.sampled

    def say(self, tree: DraftTree | None, greedy: bool) -> SampledRows | None:
        """Samples behind each row of the target's pass; None where the likeliest tokens, which the pass finds itself,
        are wanted."""
        if greedy:
            return None
        drafted, rows = (self.ids[1:], None) if tree is None else (tree.choices.first_tokens, tree.rows)
        where = self.state.cursor, self.state.width, drafted
        sampled = self.sampled.tile(0)
        sample_rows(self.target.out, self.sampling, *where, sampled, self.sample_scratch, rows)
        return sampled

    def _begin(self, alone: bool, ingests: bool) -> None:
        begin_round(
            self.state,
            self.target.ids,
            self._block,
            self._mask_token,
            alone=alone,
            ingests=ingests,
            most_drafted=self._most_drafted,
            first_drafts=self._first_drafts,
        )


def _both_ways(verification: Verification) -> tuple[Verification, Verification]:
    """A greedy verification, and the same with samples."""
    return verification, verification._replace(greedy=False)


def _is_wide(piece: RoundPiece) -> bool:
    return isinstance(piece, Ingestion) or (piece.lookup if isinstance(piece, Proposal) else piece.rows) > MAX_ROWS
