"""How many drafted tokens to verify, by the drafter's confidence and the cost of passes here. With a mixture of experts
every row brings further experts; on a dense model rows cost little. A block is drafted whole where its rows cost
nothing; a policy chooses the tree to verify, and never the text. It is pure: confidences, context length and costs, no
tensor and no clock. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul

from .calibration import Calibration, MatchCalibration, PooledCalibration
from .choice import ALONE, BESIDE, NOT_AT_ALL, Choice, ChoiceNumbers, Chosen, Judged, Looks, Plan
from .costs import DEAR_PAUSE, CostTable, RoundCosts, Yield
from .depth import DraftDepth
from .lately import Lately
from .lookup import LONGEST, Looked
from .trees import LOOKED_UP, NOTHING, ROWS, WIDE_ROWS, Beside, Chances, Node, accepted_path, best_first, chain, in_rows


class Policy:
    """Decides every round, and ``observe``s every round, also without a draft. This one always drafts and leaves the
    width open: on a device, all of it."""

    __slots__ = ()

    def begin(self, drafts: bool = True) -> None:
        """A new answer: what was learned of the drafter stays, what was found out about the text before it goes.
        ``drafts``: whether a drafter has a part in it."""

    def wants_draft(self, context: int) -> bool:
        """Whether to draft in the coming round or write one token alone. Asked once per round, perhaps before the last
        was observed."""
        return True

    def depth(self, context: int, counts: Sequence[int]) -> int:
        """How many tokens to draft in the coming round, which has a draft: one of ``counts``, ascending."""
        return counts[-1]

    def plan(self, context: int, length: int) -> Plan:
        """``wants_draft``, and whether to look drafts up. ``length``: of the newest known tokens' match, 0 without."""
        return Plan(self.wants_draft(context))

    def pause(self, context: int) -> Choice | None:
        """Why there is no draft in a round that was to have none: what one would add. None where none ever comes."""
        return None

    def choose(self, chances: Chances, context: int, rows: int = ROWS, looked: Looked | None = None) -> Chosen:
        """The tree to verify in row order, of at most ``rows`` rows with the anchor, and the reason. ``chances``: of
        the drafter's choices at each position; ``looked``: a chain that was looked up. One at least is there."""
        raise NotImplementedError

    def numbers(self, context: int) -> ChoiceNumbers | None:
        """What ``choose`` would go by; None verifies whole chains."""
        return None

    def observe(
        self, chances: Chances, tree: Sequence[Node], path: Sequence[int], context: int, judged: Judged | None = None
    ) -> None:
        """What came of a round: no ``chances`` when nothing was drafted; ``path``: the rows that were accepted;
        ``judged``: where something could be looked up."""

    def took(self, context: int, num_drafted: int, rows: int, draft_ms: float, verify_ms: float) -> None:
        """What a round took that was begun at this context length: its draft, 0 tokens without one, and a pass over so
        many rows."""


@dataclass(frozen=True, slots=True)
class Fixed(Policy):
    """Always a chain of the same width: ``block_size`` counts the anchor, so 16 verifies 15 drafted tokens."""

    block_size: int

    def wants_draft(self, context: int) -> bool:
        return self.block_size > 1

    def depth(self, context: int, counts: Sequence[int]) -> int:
        return min(self.block_size - 1, counts[-1])

    def choose(self, chances: Chances, context: int, rows: int = ROWS, looked: Looked | None = None) -> Chosen:
        tree = chain(min(self.block_size, rows, len(chances) + 1) - 1)
        return tree, Choice(len(tree))


RATE_MEMORY = 0.9
"""Weight that the past keeps in the yield of drafted rounds, per round: about the last ten count."""
TRUST_ROUNDS, TRUST = 8, 1.3
"""An answer begins as if so many drafted rounds had yielded so many times what plain decoding yields, so that one bad
draft does not end drafting."""
SURPRISE, LEAST_ODDS = 0.01, 0.2
"""Drafts that fall at their first token round after round, at odds of less than this: the text has changed. (Where a
lost draft costs little, the odds must be less.) No single one counts for less than the second, however sure the drafter
was."""
TRY = 1
"""Drafted tokens that a try verifies: enough to see whether drafting may pay again."""
FIRST_PAUSE, LONGEST_PAUSE = 4, 64
"""Tokens that the target writes alone before drafting is tried again; doubled each time it does not pay."""
TRIES_SHARE = 0.015
"""Of a rest goes into tries, once its pauses are as long as they get: where a try costs little, they are short."""
COMEBACK_ROUNDS, COMEBACK = 3, 1.5
"""A try that pays counts as so many rounds; as much as it yielded, up to so many times the plain yield."""

MOST_PATIENCE = 16
"""Rounds of a copy that are waited for, at most, where wide ones do not pay."""


@dataclass(slots=True)
class Auto(Policy):
    """The tree with the best expected yield. A millisecond is priced at the tokens it yields on this text, at least as
    in plain decoding; a draft is verified when its chance to be kept is worth more than the milliseconds it adds.
    (Maximising each round's own rate would verify too much of a bad draft.) While even the best widths lose, the target
    writes alone; then one draft is a try."""

    table: CostTable
    calibration: Calibration = field(default_factory=Calibration)
    """What chances of first choices are worth."""
    others: Calibration = field(default_factory=PooledCalibration)
    """And of those behind them."""
    matches: MatchCalibration = field(default_factory=MatchCalibration)
    """What looked up tokens are worth in this answer."""
    fuses: bool = True
    """Whether a round can draft and look up."""
    lately: Lately | None = None
    """Corrects the table by what rounds really take, where they are real."""
    _checks: list[int] = field(default_factory=list)
    """Rows of passes that rounds of this answer are to have, whatever they seem to cost."""
    _known: tuple[int, RoundCosts] | None = None
    """The costs asked for last, and where: a round asks several times."""
    _whole: bool = False
    """The round just planned has such a pass, of all that is drafted."""
    _drafts: bool = True
    """Whether a drafter has a part in this answer."""
    _most_rows: int = ROWS
    """Of a pass over what is looked up: a copy that goes on and on doubles them."""
    _saturated: int = 0
    """Rounds in a row that were looked up and kept whole."""
    _patience: int = 1
    """So many of them before a wide one."""
    _tokens: float = 0.0
    """Of recent drafted rounds, old ones fading; and the milliseconds they cost."""
    _milliseconds: float = 0.0
    _yield: Yield = field(default_factory=Yield)
    _resting: bool = False
    """Drafting lost lately: the next draft is a try."""
    _trying: bool = False
    """That draft is on its way."""
    _pause: int = 0
    """Plain rounds left before the next try."""
    _next_pause: int = FIRST_PAUSE
    _depth: DraftDepth = field(default_factory=DraftDepth)
    """How many drafts are worth a pass each."""
    _odds: float = 1.0
    """How likely it was that all drafts fall which fell lately."""
    _before: Calibration = field(default_factory=Calibration)
    """What was known of the drafter before they did."""

    def __post_init__(self) -> None:
        self.begin()

    def begin(self, drafts: bool = True) -> None:
        self._drafts = drafts
        self._resting = self._trying = False
        self.matches, self._most_rows = MatchCalibration(), ROWS
        self._saturated, self._patience = 0, 1
        self._pause, self._next_pause, self._odds = 0, FIRST_PAUSE, 1.0
        self._depth = DraftDepth()
        self._checks = self.lately.begin(self.table.costs[0]) if self.lately is not None and drafts else []
        costs = self._costs(self.table.contexts[0])
        if not drafts:
            self._tokens, self._milliseconds = 1.0, costs.plain
            return
        self._trust(TRUST_ROUNDS, TRUST, costs.round(1), costs.rest)
        if costs.tried(TRY) > TRY and self._yield.loses:
            self._next_pause = DEAR_PAUSE
            self._rest(costs)

    def _trust(self, rounds: int, times_rest: float, round_ms: float, rest_ms: float) -> None:
        self._milliseconds = rounds * round_ms
        self._tokens = times_rest * self._milliseconds / rest_ms

    @property
    def trying(self) -> bool:
        """Whether the draft just wanted is a try, which verifies its first tokens whatever their chances."""
        return self._trying

    def price(self, context: int) -> float:
        """Tokens that a millisecond is worth at this context length."""
        return max(1 / self._costs(context).rest, self._tokens / self._milliseconds)

    def _costs(self, context: int) -> RoundCosts:
        if self._known is None or self._known[0] != context:
            timed = self.table.at(context)
            self._known = context, timed if self.lately is None else self.lately.corrected(timed)
        return self._known[1]

    def took(self, context: int, num_drafted: int, rows: int, draft_ms: float, verify_ms: float) -> None:
        if self.lately is not None:
            self.lately.observe(self.table.at(context), num_drafted, rows, draft_ms, verify_ms)
            self._known = None

    def wants_draft(self, context: int) -> bool:
        if self._pause or self._trying or not self._drafts:
            return False
        self._trying = self._resting
        return True

    def depth(self, context: int, counts: Sequence[int]) -> int:
        costs = self._costs(context)
        if not costs.step or (self._whole and not costs.one_by_one):
            return counts[-1]
        return counts[0] if self._trying else self._depth.best(costs, self.price(context), counts)

    def plan(self, context: int, length: int) -> Plan:
        self._whole = False
        if self._checks and not self._trying:
            self._whole = self._checks.pop() > 1
            return Plan(self._whole)
        looks = self._looks(context, length)
        if looks == ALONE:
            return Plan(False, True, self._rows(context, length))
        drafts = self.wants_draft(context)
        return Plan(drafts, looks == BESIDE and not (drafts and (self._trying or not self.fuses)))

    def _looks(self, context: int, length: int) -> Looks:
        """Whether what stands behind a match is worth its rows, and makes a draft beside it worth less than it costs.
        (A drafted round yields what the price says; so does one beside, and what a looked up chain adds.)"""
        first = self.matches.chance(length)
        if not first:
            return NOT_AT_ALL
        costs, price = self._costs(context), self.price(context)
        kept = list(accumulate(self._looked_up(Looked(length, ROWS - 1)), mul))
        worth = max(self._chain_worth(kept, costs, price)[1:]) - price * costs.lookup
        alone = 1 - price * costs.verify[0]
        if worth <= alone:
            return NOT_AT_ALL
        if not self._drafts or self._resting:
            return ALONE
        drafted = (1 - RATE_MEMORY) * self._tokens
        return ALONE if worth > 0 and (1 - first) * drafted < price * (costs.draft + costs.step) else BESIDE

    def _rows(self, context: int, length: int) -> int:
        """Of a pass over what is looked up: as many as yield most in a millisecond. (By a price, that of plain decoding
        or of drafts, a copy would pay for rows that cost more than its other ones.)"""
        costs = self._costs(context)
        most = min(self._most_rows, len(costs.verify))
        chances = self._looked_up(Looked(length, most - 1))
        tokens = list(accumulate(accumulate(chances, mul), initial=1.0))
        fitting = (rows for rows in (ROWS, *WIDE_ROWS) if rows <= most)
        return max(fitting, key=lambda rows: tokens[rows - 1] / (costs.lookup + costs.verify[rows - 1]), default=ROWS)

    def _looked_up(self, looked: Looked, by_drafter: Sequence[float] = ()) -> tuple[float, ...]:
        """How likely each token of a looked up chain is once it is reached. ``by_drafter``: of a drafter's chain."""
        chances = [self.matches.chance(min(looked.length + place, LONGEST)) for place in range(looked.size)]
        both = zip(chances[: looked.agreed], by_drafter, strict=False)
        return (*(max(pair) for pair in both), *chances[min(looked.agreed, len(by_drafter)) :])

    def _beside(self, length: int, choices: Sequence[int], worths: Sequence[Sequence[float]]) -> Beside:
        """A looked up chain as a tree takes it in. Choices that the drafter likes better speak against a token: by so
        much the odds of the match are less."""
        chances = []
        for place, choice in enumerate(choices):
            found = self.matches.chance(min(length + place, LONGEST))
            against = min(sum(worths[place][:choice]), 1.0)
            right = found * (1 - against)
            both = right / (right + (1 - found) * against) if right else 0.0
            chances.append(max((both, *worths[place][choice : choice + 1])))
        return Beside(choices, chances)

    @staticmethod
    def _chain_worth(kept: Sequence[float], costs: RoundCosts, price: float) -> list[float]:
        """By the number of its tokens, from none on."""
        tokens = accumulate(kept, initial=1.0)
        return [expected - price * cost for expected, cost in zip(tokens, costs.verify, strict=False)]

    def pause(self, context: int) -> Choice | None:
        if not self._drafts:
            return None
        costs = self._costs(context)
        return Choice(0, 0.0, max(costs.round(costs.tried(TRY)) - costs.rest, 0.0), self.price(context))

    def choose(self, chances: Chances, context: int, rows: int = ROWS, looked: Looked | None = None) -> Chosen:
        if self._whole and chances:
            return chain(len(chances)), Choice(len(chances))
        costs, price = self._costs(context), self.price(context)
        worths = [self._worth(position) for position in chances]
        beside = NOTHING
        looked_up: tuple[float, ...] = ()
        if looked is not None and looked.choices:
            beside = self._beside(looked.length, looked.choices, worths)
        elif looked is not None:
            looked = looked._replace(size=min(looked.size, rows - 1))
            looked_up = self._looked_up(looked, [worth[0] for worth in worths])
            for place in range(min(looked.agreed, looked.size, len(worths))):
                worths[place][0] = looked_up[place]
        tree = best_first(worths, rows, beside)
        worth = self._chain_worth([node.chance for node in tree], costs, price)
        if looked_up:
            kept = list(accumulate(looked_up, mul))
            by_lookup = self._chain_worth(kept, costs, price)
            if not chances or max(by_lookup[1:]) > max(worth[1:]):
                worth, tree = by_lookup, [Node(row, row + 1, 0, chance) for row, chance in enumerate(kept)]
            else:
                looked_up = ()
        tries = self._trying and chances
        width = min(costs.tried(TRY), len(tree)) if tries else max(range(len(worth)), key=worth.__getitem__)
        if not tree:
            return [], Choice(0, 0.0, 0.0, price)
        edge = min(width, len(tree) - 1)
        cost_ms = costs.verify[edge + 1] - costs.verify[edge]
        return in_rows(tree[:width]), Choice(width, tree[edge].chance, cost_ms, price, looked_up, tuple(beside.chances))

    def numbers(self, context: int) -> ChoiceNumbers | None:
        if self._whole:
            return None
        verify = self._costs(context).verify
        return ChoiceNumbers(
            self._trying, self.price(context), self.calibration, self.others, verify, self.matches.chances()
        )

    def observe(
        self, chances: Chances, tree: Sequence[Node], path: Sequence[int], context: int, judged: Judged | None = None
    ) -> None:
        if judged is not None:
            for place in range(judged.num_right + judged.failed):
                self.matches.observe(judged.length + place, place < judged.num_right)
            self._watch_copy(len(tree) + 1, len(path), judged.taken)
        if not chances:
            self._pause = max(self._pause - 1, 0)
            return
        if judged is not None and judged.taken:
            return  # it says nothing of the drafter
        costs = self._costs(context)
        round_ms = costs.round(len(tree), len(chances))
        self._yield.observe(len(path) + 1, round_ms / costs.rest)
        if costs.step:
            self._depth.observe(len(path), len(tree))
        if self._trying:
            self._judge(len(path) + 1, costs.round(len(tree)), costs)
            return
        # Half what came of the round and half what was to be expected of it, which scatters less.
        expected = self._expected(chances, tree, judged)
        begun = bool(path) and tree[path[0] - 1].choice < LOOKED_UP
        changed = bool(tree) and self._has_changed(chances[0][0], begun, round_ms / costs.rest - 1)
        for row, node in enumerate(tree, 1):
            if node.parent in (0, *path) and node.choice < LOOKED_UP:
                calibration = self.others if node.choice else self.calibration
                calibration.observe(chances[node.depth - 1][node.choice], row in path)
        self._book((len(path) + 1 + expected) / 2, round_ms, changed, costs)

    def _watch_copy(self, rows: int, num_kept: int, looked_up: bool) -> None:
        """Wide rounds begin once a copy goes on, later where they kept no more than others might have."""
        self._saturated = self._saturated + 1 if looked_up and num_kept + 1 == rows else 0
        if rows > ROWS:
            self._patience = max(self._patience // 2, 1) if num_kept >= ROWS else min(2 * self._patience, MOST_PATIENCE)
        goes_on = self._saturated >= self._patience
        self._most_rows = min(max(2 * rows, ROWS), WIDE_ROWS[-1]) if goes_on else ROWS

    def _worth(self, position: Sequence[float]) -> list[float]:
        """Chances as they turned out so far: falling, and no more than 1 in all."""
        found = [self.calibration.chance(position[0])]
        for chance in position[1:]:
            found.append(max(min(self.others.chance(chance), found[-1], 1 - sum(found)), 0.0))
        return found

    def _expected(self, chances: Chances, tree: Sequence[Node], judged: Judged | None) -> float:
        """Tokens that a round with this tree yields, by what is known now: rounds may overlap."""
        worth = [self._worth(position) for position in chances]
        beside = NOTHING if judged is None else self._beside(judged.length, judged.choices, worth)
        looked_up = accepted_path(tree, beside.choices)
        found = [1.0]
        for row, node in enumerate(tree, 1):
            place = node.depth - 1
            chance = beside.chances[place] if row in looked_up else worth[place][node.choice]
            found.append(found[node.parent] * chance)
        return sum(found[1:], start=1.0)

    def _book(self, tokens: float, round_ms: float, changed: bool, costs: RoundCosts) -> None:
        """Enters what a drafted round yielded, and whether the text is another: drafting goes on, or rests."""
        if self._resting:
            return  # it was on its way when the rest began
        self._tokens = RATE_MEMORY * self._tokens + tokens
        self._milliseconds = RATE_MEMORY * self._milliseconds + round_ms
        if changed:
            # The drafter is what it was; only this text is not for it.
            self.calibration = self._before
        if changed or self._tokens * costs.rest < self._milliseconds:
            self._rest(costs)
        else:
            self._next_pause = max(self._next_pause // 2, FIRST_PAUSE)

    def _has_changed(self, confidence: float, begun: bool, loss: float) -> bool:
        """Whether so many drafts in a row fell at their first token that the text must have changed; ``loss`` is what
        such a round costs, in rounds without a draft; ``begun``: this one's did not."""
        if begun:
            self._odds = 1.0
            return False
        if self._odds == 1.0:
            self._before = self.calibration.copy()
        self._odds *= max(1 - self.calibration.chance(confidence), LEAST_ODDS)
        return self._odds < SURPRISE * loss

    def _judge(self, tokens: int, round_ms: float, costs: RoundCosts) -> None:
        """Go on drafting after a try that paid, rest again after another. What went before says little about it."""
        times_rest = tokens * costs.rest / round_ms
        self._trying, self._resting = False, times_rest < 1
        if self._resting:
            self._rest(costs)
        else:
            self._trust(COMEBACK_ROUNDS, min(times_rest, COMEBACK), round_ms, costs.rest)

    def _rest(self, costs: RoundCosts) -> None:
        self._resting, self._odds = True, 1.0
        self._tokens, self._milliseconds = 1.0, costs.rest
        longest = min(round((costs.round(costs.tried(TRY)) / costs.rest - 1) / TRIES_SHARE), LONGEST_PAUSE)
        self._pause = min(self._next_pause, max(longest, FIRST_PAUSE))
        self._next_pause = 2 * self._pause
