"""Runs rounds on the host step by step, with PyTorch: the definition of chains and trees, and how a CPU decodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from ..commands import AUTO, MAX_BLOCK_SIZE, GenerationSettings
from ..events import FinishReason
from ..models.target import TargetOutput
from ..sampling.sampling import Samples
from ..speculation.choice import Chosen, RoundPlan
from ..speculation.lookup import LookedUpChain, num_agreed
from ..speculation.policy import Policy
from ..speculation.trees import LOOKED_UP, ROWS, Chances, Node, branches, chain, is_chain
from .rounds import Poll, Round, probabilities_of, require_numbers

if TYPE_CHECKING:
    from .decoder import Turn


class Drafted(NamedTuple):
    """The drafter's candidates by position, and the probability it gave each choice among them; empty when nothing is
    drafted."""

    ids: Sequence[Sequence[int]] = ()
    chances: Chances = ()

    @property
    def first_ids(self) -> tuple[int, ...]:
        return tuple(self.ids[node.depth - 1][node.candidate] for node in chain(len(self.ids), self.chances))


class VerifiedBranch(NamedTuple):
    """A branch of a tree after the target's pass over it."""

    rows: list[int]
    """The branch's rows in the tree, from the anchor's to a leaf's."""
    ids: list[int]
    output: TargetOutput
    samples: Samples
    accepted: int


class HostRounds:
    """Runs rounds on the host. ``choices``: how many of the drafter's choices at each position a policy may make trees
    of; one makes chains."""

    fuses = True

    def __init__(self, choices: int = 1):
        self.choices = choices

    def run(self, turn: Turn, poll: Poll) -> Iterator[Round]:
        finish: FinishReason | None = None
        while finish is None and (settings := poll()) is not None:
            done = self._round(turn, settings)
            finish = done.finish
            yield done

    def _round(self, turn: Turn, settings: GenerationSettings) -> Round:
        """Drafts a block behind the anchor, verifies a tree of it, and accepts what equals the target's samples."""
        turn.settings = settings
        alone_ms = turn.one_row_ms()
        started, context = perf_counter(), turn.cache.length
        policy = turn.decoder.policy if settings.block_size == AUTO else None
        if turn.pending is not None and len(turn.pending) >= MAX_BLOCK_SIZE:
            turn.ingest()  # rows that the target wrote alone wait for a draft, but not for ever
        plan = RoundPlan(True) if policy is None else policy.plan(context, turn.match.length if turn.match else 0)
        draft = self.draft(turn, 1 if policy is None else self.choices) if plan.draft else Drafted()
        guess = turn.guess(turn.rows(plan.rows) - 1) if plan.lookup else []
        looked = turn.looked_up_chain(guess, draft.first_ids, draft.ids, draft.chances)
        tree, choice, looked_up, branch_chances = _choose(policy, plan, draft, looked, context, turn.rows(ROWS))
        drafted = perf_counter()
        first_ids = tuple(guess) if looked_up else draft.first_ids
        tokens = [turn.anchor]
        for node in tree:
            is_looked_up = looked_up or node.choice == LOOKED_UP
            tokens.append(guess[node.depth - 1] if is_looked_up else draft.ids[node.depth - 1][node.candidate])
        best = self._verify(turn, tree, tokens, first_ids)
        judged = perf_counter()
        draft_ms, verify_ms = (drafted - started) * 1e3, (judged - drafted) * 1e3
        path = best.rows[1 : best.accepted + 1]
        samples = [*best.ids[1 : best.accepted + 1], best.samples.ids[best.accepted]]
        emitted = _cut_at_stop(samples, turn.target.config.stop_token_ids)
        match = turn.match if looked_up or any(node.choice == LOOKED_UP for node in tree) else None
        if policy is not None:
            entered = looked.choices if looked is not None else ()
            policy.observe_times(context, len(draft.ids), len(tree) + 1, draft_ms, verify_ms)
            policy.observe(draft.chances, tree, path, context, turn.lookup_outcome(emitted, bool(looked_up), entered))
        accepted = min(best.accepted, len(emitted))
        # The newest token isn't in the caches: it is the next anchor. Each emitted token commits the row before it.
        turn.commit_pass(best.ids[: len(emitted)], best.output)
        finish = turn.append_tokens(emitted)
        branches = not (looked_up or is_chain(tree))
        if turn.compares:
            turn.decoder.one_row.count(drafted=bool(first_ids), passed=alone_ms is not None)
        return Round(
            emitted=tuple(emitted),
            probabilities=tuple(best.samples.probabilities[: len(emitted)]),
            verify_width=len(tree) + 1,
            total_ms=(perf_counter() - started) * 1e3,
            context_length=turn.cache.length,
            settings=settings,
            finish=finish,
            draft_ids=first_ids,
            draft_probabilities=looked_up or tuple(position[0] for position in draft.chances),
            target_probabilities=tuple(best.samples.draft_probabilities[: accepted + 1]),
            num_accepted=accepted,
            draft_ms=draft_ms,
            verify_ms=verify_ms,
            choice=choice,
            tree=tree if branches else (),
            tree_ids=tuple(tokens[1:]) if branches else (),
            tree_probabilities=probabilities_of(tree, draft.chances, branch_chances) if branches else (),
            match=match,
            num_agreed=looked.agreed if looked is not None and looked_up else 0,
            alone_ms=alone_ms,
        )

    def draft(self, turn: Turn, choices: int) -> Drafted:
        """A draft as wide as block size, token budget and context allow; empty when there is nothing to draft with."""
        drafter, cache = turn.drafter, turn.draft_cache
        if drafter is None or cache is None:
            return Drafted()
        settings = turn.settings
        wanted = settings.block_rows(drafter.config.block_size)
        policy = turn.decoder.policy if settings.block_size == AUTO else None
        if policy is not None and wanted > 1:
            wanted = 1 + policy.depth(turn.cache.length, range(1, wanted))
        width = turn.rows(wanted)
        if width < 2:
            return Drafted()
        turn.ingest()
        if choices > 1 and drafter.conditioned:
            drafted = Drafted(*drafter.lattice(turn.target, turn.anchor, width, cache))
            require_numbers(drafted.chances)
            return drafted
        if choices == 1 or drafter.sequential:
            first = drafter.draft(turn.target, turn.anchor, width, cache)
            ids, chances = first.ids[:, None], first.probabilities[:, None]
        else:
            chances, places = drafter.probabilities(turn.target, turn.anchor, width, cache).topk(choices)
            ids = drafter.tokens(places)
        drafted = Drafted(tuple(map(tuple, ids.tolist())), tuple(map(tuple, chances.tolist())))
        require_numbers(drafted.chances)
        return drafted

    def say(self, turn: Turn, ids: Sequence[int], output: TargetOutput, asked: Sequence[int]) -> Samples:
        """The target's samples behind the rows ``ids`` of a branch, and the probabilities it gave the drafts
        ``asked``."""
        return turn.sample(output.hidden, asked)

    def _verify(
        self, turn: Turn, tree: Sequence[Node], tokens: Sequence[int], first_ids: Sequence[int]
    ) -> VerifiedBranch:
        """Runs every branch in a pass of its own and returns the one with the longest accepted path; the caches then
        hold it as a chain."""
        further = 0 if is_chain(tree) else 1  # the first choice behind a branch, too
        best: VerifiedBranch | None = None
        ways = branches(tree)
        for rows in ways:
            ids = [tokens[row] for row in rows]
            output = turn.run(turn.target, ids)
            samples = self.say(turn, ids, output, first_ids[: len(rows) - 1 + further])
            accepted = num_agreed(ids[1:], samples.ids)
            if best is None or accepted > best.accepted:
                best = VerifiedBranch(rows, ids, output, samples, accepted)
        assert best is not None
        if best.rows is not ways[-1]:
            turn.run(turn.target, best.ids)  # another branch was run over its rows
        return best


def _choose(
    policy: Policy | None, plan: RoundPlan, draft: Drafted, looked: LookedUpChain | None, context: int, most: int
) -> Chosen:
    """The tree to verify, and why; without a policy it is the whole chain. A tree has up to ``most`` rows, however
    short its drafter's block is."""
    if policy is None:
        return Chosen(chain(len(draft.ids)))
    if not draft.ids and looked is None:
        return Chosen([], None if plan.draft or plan.lookup else policy.pause(context))
    rows = 1 + max(len(draft.ids), looked.size if looked is not None else 0)
    if draft.ids and len(draft.ids[0]) > 1:
        rows = most
    return policy.choose(draft.chances, context, rows, looked)


def _cut_at_stop(ids: list[int], stops: Sequence[int]) -> list[int]:
    """The ids up to and with the first stop token."""
    return next((ids[: index + 1] for index, token in enumerate(ids) if token in stops), ids)
