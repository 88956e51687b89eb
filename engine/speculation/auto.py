"""The policy of block size "auto": how many drafted tokens to verify, by the drafter's confidence and the cost of
passes here. With a mixture of experts every row brings further experts; on a dense model rows cost little. A block is
drafted whole where its rows cost nothing. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul

from ..events import WidthChoice
from .backoff import RATE_MEMORY, TRY, DraftBackoff
from .choice import ALONE, BESIDE, NOT_AT_ALL, UNWEIGHED, ChoiceNumbers, Chosen, Looks, LookupOutcome, RoundPlan
from .copy_width import CopyWidth, rows_of_copy
from .costs import CostTable, RoundCosts
from .depth import DraftDepth
from .live_costs import LiveCosts
from .lookup import LookedUpChain
from .policy import Policy
from .trees import LOOKED_UP, NOTHING, ROWS, Chances, Node, best_first, chain, in_rows
from .worth import DraftWorth, worth_by_rows


@dataclass(slots=True)
class Auto(Policy):
    """Chooses the tree with the best expected yield. A millisecond is priced at the tokens it yields on this text, at
    least as in plain decoding; a draft is verified when its chance to be kept is worth more than the milliseconds it
    adds. (Maximising each round's own rate would verify too much of a bad draft.) While even the best widths lose, the
    target writes alone (``backoff``); a copy may take wide rounds (``copy_width``)."""

    table: CostTable
    fuses: bool = True
    """Whether a round can draft and look up at once."""
    live: LiveCosts | None = None
    """Corrects the table by what rounds really take, where rounds are real."""
    worth: DraftWorth = field(default_factory=DraftWorth)
    backoff: DraftBackoff = field(default_factory=DraftBackoff)
    copy_width: CopyWidth = field(default_factory=CopyWidth)
    depths: DraftDepth = field(default_factory=DraftDepth)
    """How many drafts are worth drafting, where each costs something."""
    has_drafter: bool = True
    """Whether a drafter has a part in this answer."""
    _checks: list[int] = field(default_factory=list)
    """Row counts of passes that rounds of this answer shall have whatever they seem to cost, to see what they cost
    now."""
    _known: tuple[int, RoundCosts] | None = None
    """The context length and costs of the last question about costs, since a round asks several times."""
    _whole: bool = False
    """Whether the round just planned is such a check, which verifies all that is drafted."""

    def __post_init__(self) -> None:
        self.begin()

    def begin(self, drafts: bool = True) -> None:
        self.has_drafter = drafts
        self.copy_width, self.depths = CopyWidth(), DraftDepth()
        self.worth.begin()
        self._checks = self.live.begin(self.table.costs[0]) if self.live is not None and drafts else []
        self.backoff.begin(self._costs(self.table.contexts[0]), drafts)

    def price(self, context: int) -> float:
        """Tokens that a millisecond is worth at this context length."""
        return self.backoff.price(self._costs(context))

    def _costs(self, context: int) -> RoundCosts:
        if self._known is None or self._known[0] != context:
            timed = self.table.at(context)
            self._known = context, timed if self.live is None else self.live.corrected(timed)
        return self._known[1]

    def observe_times(self, context: int, num_drafted: int, rows: int, draft_ms: float, verify_ms: float) -> None:
        if self.live is not None:
            self.live.observe(self.table.at(context), num_drafted, rows, draft_ms, verify_ms)
            self._known = None

    def alone_ms(self, context: int) -> float | None:
        return self._costs(context).plain

    def wants_draft(self, context: int) -> bool:
        return self.has_drafter and self.backoff.wants_draft()

    def depth(self, context: int, counts: Sequence[int]) -> int:
        costs = self._costs(context)
        if not costs.step or (self._whole and not costs.one_by_one):
            return counts[-1]
        return counts[0] if self.backoff.is_trying else self.depths.best(costs, self.price(context), counts)

    def plan(self, context: int, length: int) -> RoundPlan:
        self._whole = False
        if self._checks and not self.backoff.is_trying:
            self._whole = self._checks.pop() > 1
            return RoundPlan(self._whole)
        looks = self._looks(context, length)
        if looks == ALONE:
            return RoundPlan(False, True, self._rows(context, length))
        drafts = self.wants_draft(context)
        return RoundPlan(drafts, looks == BESIDE and not (drafts and (self.backoff.is_trying or not self.fuses)))

    def _looks(self, context: int, length: int) -> Looks:
        """Whether the tokens behind a match are worth their rows, and whether they make a draft beside them worth less
        than it costs. A drafted round is taken to yield what the price says; one with a lookup beside it yields what
        the looked up chain adds on top."""
        first = self.worth.matches.chance(length)
        if not first:
            return NOT_AT_ALL
        costs, price = self._costs(context), self.price(context)
        chances = list(accumulate(self.worth.of_match(LookedUpChain(length, ROWS - 1)), mul))
        worth = max(worth_by_rows(chances, costs, price)[1:]) - price * costs.lookup
        alone = 1 - price * costs.verify[0]
        if worth <= alone:
            return NOT_AT_ALL
        if not self.has_drafter or self.backoff.is_resting:
            return ALONE
        drafted = (1 - RATE_MEMORY) * self.backoff.tokens
        return ALONE if worth > 0 and (1 - first) * drafted < price * (costs.draft + costs.step) else BESIDE

    def _rows(self, context: int, length: int) -> int:
        """How many rows a pass over a looked up chain gets."""
        costs = self._costs(context)
        most = min(self.copy_width.most_rows, len(costs.verify))
        return rows_of_copy(self.worth.of_match(LookedUpChain(length, most - 1)), costs)

    def pause(self, context: int) -> WidthChoice | None:
        if not self.has_drafter:
            return None
        costs = self._costs(context)
        return WidthChoice(0.0, max(costs.round(costs.tried(TRY)) - costs.rest, 0.0), 1e3 * self.price(context))

    def choose(self, chances: Chances, context: int, rows: int = ROWS, looked: LookedUpChain | None = None) -> Chosen:
        if self._whole and chances:
            return Chosen(chain(len(chances), chances), UNWEIGHED)
        costs, price = self._costs(context), self.price(context)
        worths = self.worth.of_chances(chances)
        branch = NOTHING
        looked_up: tuple[float, ...] = ()
        if looked is not None and looked.choices:
            branch = self.worth.lookup_branch(looked, worths)
        elif looked is not None:
            looked = looked._replace(size=min(looked.size, rows - 1))
            looked_up = self.worth.of_match(looked, [worth[0] for worth in worths])
            both = min(looked.agreed, looked.size, len(worths))
            if both:
                agreed = [(looked_up[index], *worths[index][1:]) for index in range(both)]
                worths = [*agreed, *(worths[index] for index in range(both, len(worths)))]
        tree = best_first(worths, rows, branch)
        worth = worth_by_rows([node.chance for node in tree], costs, price)
        if looked_up:
            reach = list(accumulate(looked_up, mul))
            by_lookup = worth_by_rows(reach, costs, price)
            if not chances or max(by_lookup[1:]) > max(worth[1:]):
                worth, tree = by_lookup, [Node(row, row + 1, 0, chance) for row, chance in enumerate(reach)]
            else:
                looked_up = ()
        tries = self.backoff.is_trying and chances
        width = min(costs.tried(TRY), len(tree)) if tries else max(range(len(worth)), key=worth.__getitem__)
        if not tree:
            return Chosen([], WidthChoice(0.0, 0.0, 1e3 * price))
        edge = min(width, len(tree) - 1)
        cost_ms = costs.verify[edge + 1] - costs.verify[edge]
        why = WidthChoice(tree[edge].chance, cost_ms, 1e3 * price)
        return Chosen(in_rows(tree[:width]), why, looked_up, tuple(branch.chances))

    def numbers(self, context: int) -> ChoiceNumbers | None:
        if self._whole:
            return None
        worth, verify = self.worth, self._costs(context).verify
        return ChoiceNumbers(
            self.backoff.is_trying, self.price(context), worth.first, worth.others, verify, worth.matches.chances()
        )

    def observe(
        self,
        chances: Chances,
        tree: Sequence[Node],
        path: Sequence[int],
        context: int,
        outcome: LookupOutcome | None = None,
    ) -> None:
        if outcome is not None:
            self.worth.learn_match(outcome)
            self.copy_width.observe(len(tree) + 1, len(path), outcome.taken)
        if not chances:
            self.backoff.saw_plain_round()
        elif outcome is None or not outcome.taken:  # a looked up chain says nothing of the drafter
            self._observe_drafts(chances, tree, path, context, outcome)

    def _observe_drafts(
        self, chances: Chances, tree: Sequence[Node], path: Sequence[int], context: int, outcome: LookupOutcome | None
    ) -> None:
        costs, worth = self._costs(context), self.worth
        tokens, round_ms = len(path) + 1, costs.round(len(tree), len(chances))
        self.backoff.saw_drafted_round(tokens, round_ms, costs)
        if costs.step:
            self.depths.observe(len(path), len(tree))
        if self.backoff.is_trying:
            if self.backoff.judge_try(tokens, costs.round(len(tree)), costs):
                worth.count_anew()
            return
        expected = worth.expected(chances, tree, outcome)
        begun = bool(path) and tree[path[0] - 1].choice < LOOKED_UP
        changed = bool(tree) and worth.has_changed(chances[0][0], begun, round_ms / costs.rest - 1)
        worth.learn_drafts(chances, tree, path)
        if self.backoff.is_resting:
            return  # the round was enqueued before the rest began
        if changed:
            worth.restore()
        # Half of it is what came of the round and half what was expected of it, which scatters less.
        if self.backoff.book((tokens + expected) / 2, round_ms, changed, costs):
            worth.count_anew()
