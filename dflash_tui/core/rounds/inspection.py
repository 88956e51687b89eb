"""One round taken apart: each position's draft, the target's choice and the outcome in a sentence. The target samples
every position with its own uniform number (:mod:`engine.sampling.philox`; argmax at temperature 0); a draft is accepted
when it *is* that sample."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal

from engine.commands import Method
from engine.events import Clock, DraftToken, EmittedToken, Step, TreeToken
from engine.rounds.statistics import MAX_DRAFT
from engine.rounds.store import RoundStore
from engine.sampling.philox import uniform

from ..figures.statistics import CLOCKS, NOT_KNOWN
from ..text.counted import counted, ms_text
from .cells import fallen_as, round_summary, show_blanks
from .trees import Further, further_choices

Outcome = Literal["accepted", "rejected", "discarded", "unverified", "ended", "bonus", "plain", "unknown"]
"""``rejected`` is the draft that differed. Behind it the target read a text that is not the answer's (``discarded``);
``unverified`` drafts were never looked at; ``ended`` ones stand behind the end of the answer."""


CHOICES = ("first", "second", "third", "fourth")
"""What the drafter's choices of a position are called."""
CONDITIONED: dict[Method, str] = {
    "dflash2": ", chosen as what best follows its own",
    "dspark": ", corrected by its own",
    "dspine": ", scored as what the drafter would say behind its own",
    "eagle3": ", drafted behind its own",
    "mtp": ", drafted behind its own",
}
"""How a guess depends on the drafter's guess before it; in other methods it doesn't."""
LONGEST_LOOK = 120
"""How many rounds ``Inspection.widths`` goes back at most: more than any screen has room for."""


ROUNDED, ROUNDED_MS = 0.001, 0.0005
"""How far off a chance, and milliseconds, may be as they are told."""


@dataclass(frozen=True, slots=True)
class Column:
    """One position of the block: 1 is the first draft."""

    number: int
    outcome: Outcome
    draft: DraftToken | None
    choice: EmittedToken | None
    """The target's own; None where the answer doesn't reach."""
    noise: float | None
    """The number in [0, 1) that picked; None at temperature 0, without a choice, or for another's noise."""
    further: tuple[Further, ...] = ()
    """The drafter's choices of this position behind ``draft`` that were verified, the likeliest first, and what was
    looked up."""

    @property
    def kept_further(self) -> Further | None:
        """The further choice that was accepted where ``draft`` was not; None where there is none."""
        return next((each for each in self.further if each.fate == "accepted"), None)


@dataclass(frozen=True, slots=True)
class Inspection:
    """Everything a step view says about one round."""

    step: Step
    first_token: int
    """The number, in the answer, of the round's first token, counted from 0."""
    columns: tuple[Column, ...]
    plain_ms: float | None = None
    """What a token costs without speculation, if that was measured."""
    times: Clock = "engine"
    """Whose clock took the round's times."""
    recurs: bool = False
    """Whether the target keeps a memory that forgets."""
    method: Method | None = None
    """How the drafter guesses; None where that isn't known."""
    widths: tuple[int, ...] = ()
    """How many drafts the rounds up to this one verified, as far back as anybody looks; 0 where nothing was drafted."""

    @property
    def summary(self) -> str:
        """The round in a line, for example ``kept 8 of 15 guesses, then corrected``."""
        return round_summary(self.step)

    @property
    def brief(self) -> str:
        """The same in fewer words."""
        return round_summary(self.step, brief=True)

    @property
    def cost(self) -> tuple[str, ...]:
        """Milliseconds, and what one token at a time would have taken, unless the round was that, from more words to
        fewer."""
        step, tokens, whole = self.step, len(self.step.emitted), self.step.total_ms
        together = f"{ms_text(whole, whole)} ms{CLOCKS[self.times]}"
        spent = together if step.verify_ms == 0 else f"guess and check {NOT_KNOWN}, together {together}"
        if step.draft_ms is not None and step.verify_ms:
            parts = step.draft_ms, step.verify_ms, max(whole - step.draft_ms - step.verify_ms, 0.0)
            guess, check, rest = (ms_text(part, whole) for part in parts)
            spent = f"guess {guess} + check {check} + rest {rest} = {ms_text(whole, whole)} ms"
        made = f"for {counted(tokens, 'token')}"
        if not step.draft and tokens == 1:
            return f"{spent} {made}", f"{together} {made}"
        product, alone = "", "not measured"
        if self.plain_ms is not None:
            digits = 1 if self.plain_ms >= 1 else 3
            each = round(self.plain_ms, digits)  # as it is read, so that the product is right
            product, alone = f"{tokens} × {each:.{digits}f} = ", f"{ms_text(tokens * each, tokens * each)} ms"
        made += " · one at a time:"
        return f"{spent} {made} {product}{alone}", f"{together} {made} {product}{alone}", f"{together} {made} {alone}"

    @property
    def match_words(self) -> str:
        """A line that says where in the text the round's drafts were found, such as ``found 120 tokens back: the newest
        3 tokens stood there, then “for i”``; empty where they were not looked up."""
        match = self.step.match
        if match is None:
            return ""
        guesses: Iterable[DraftToken | TreeToken] = self.step.tree or self.step.draft
        guess = "".join(token.text or "" for token in guesses if token.source == "lookup")
        alike = f"the newest {match.length} tokens" if match.length > 1 else "the newest token"
        where = counted(match.distance, "token").replace(",", " ")
        return f"found {where} back: {alike} stood there, then {quoted(guess)}"

    @property
    def memory(self) -> str:
        """A line that says how many of the rows that were checked the target's memory takes in; empty for a target
        without layers that recur."""
        step = self.step
        rows, kept = step.verify_width, len(step.emitted)
        if not self.recurs or rows < 2 or not kept:
            return ""
        fallen = max(rows - kept, 0)
        left = f"; the {fallen} that fell never touched it" if fallen > 1 else "; the one that fell never touched it"
        return f"the memory takes in {min(kept, rows)} of {counted(rows, 'row')}{left * (fallen > 0)}"

    @property
    def width(self) -> tuple[str, ...]:
        """Why so much of the draft was verified, or nothing drafted, from more words to fewer; empty where nobody
        chooses."""
        step, choice = self.step, self.step.choice
        if choice is None:
            return ()
        if not step.draft:
            worth = f"worth the {choice.cost_ms:.2f} ms"
            return (
                f"nothing guessed: lately guesses were not {worth} that they add",
                f"nothing guessed: lately not {worth}",
            )
        verified, drafted = step.num_verified, MAX_DRAFT if step.tree else len(step.draft)
        if not choice.tok_s:  # nobody chose: now and then a whole draft is checked
            return f"checked all {verified}, to learn how often each place is right", f"checked all {verified}"
        which = f"{'all' if verified == drafted else f'{verified} of'} {drafted}"
        if self._tried:
            return f"checked {which}, to see whether guesses are worth their time again", f"checked {which}, as a try"
        further = min(verified + 1, drafted)
        # A pass may be no slower for one row more: then even a hopeless guess is worth a look.
        cost = f"costs {choice.cost_ms:.2f} ms" if choice.cost_ms >= 0.005 else "costs under 0.01 ms"
        if verified == drafted and not step.tree:  # a chance of nearly 1 beside a guess that fell would read as wrong
            return f"checked {which}: the {ordinal(drafted)} {cost}", f"checked {which}"
        start = f"checked {f'the {verified} likeliest' if step.tree else which}: "
        likely = f"the {ordinal(further)} is kept in {_percent(choice.chance)}"
        brief = f"checked {verified}: {likely}, {cost}"
        return f"{start}{likely} of such rounds and {cost}", f"{start}{likely}, {cost}", brief

    @property
    def _tried(self) -> bool:
        """Whether the next guess was worth its time, and was not checked: after rounds in which none was worth it, a
        few are, whatever their chances."""
        choice = self.step.choice
        left = self.step.num_verified < (MAX_DRAFT if self.step.tree else len(self.step.draft))
        if choice is None or not left:
            return False
        return choice.chance - ROUNDED > (choice.cost_ms + ROUNDED_MS) * choice.tok_s / 1e3

    @property
    def _choice(self) -> str:
        """The end of a sentence, which says why no more drafts were verified."""
        choice = self.step.choice
        if choice is None:
            return " in this round"
        if self._tried:
            return ", to see whether guesses are worth their time again"
        worth = choice.cost_ms * choice.tok_s / 1e3
        return (
            f", for the next had a chance of {_percent(choice.chance)} and would have cost {choice.cost_ms:.2f} ms, "
            f"in which this text gets {worth:.2f} tokens on"
        )

    def column_of(self, token: int) -> int | None:
        """Which column shows a token of the answer; None when another round emitted it."""
        index = token - self.first_token
        return index if 0 <= index < len(self.step.emitted) else None

    def why(self, index: int) -> str:
        """One sentence: why a column's draft was kept or not. Empty for a damaged trace's round without one."""
        if not self.columns:
            return ""
        column = self.columns[index]
        draft, choice = column.draft, column.choice
        picked = self._picked(column)
        match column.outcome:
            case "accepted" if draft and (other := column.kept_further):
                first = f"the first, {quoted(draft.text)} ({_percent(draft.probability)}), was not what the target said"
                which = f"the drafter's {_nth(other.token.choice)} choice ({_percent(other.token.probability)} likely)"
                if other.token.source == "lookup":
                    which = "what came next where the text stood before"
                return f"{picked}: that is {which}, so it is kept; {first}."
            case "accepted" if draft and draft.source == "lookup":
                return f"{picked}: that is what came next where the text stood before, so it is kept."
            case "accepted":
                return f"{picked}: that is what the drafter had guessed{self._knowing(index)}, so it is kept."
            case "rejected" if draft and choice:
                given = "" if draft.target_probability is None else f" ({_percent(draft.target_probability)})"
                fallen = [each.token for each in column.further if each.fate == "rejected"]
                others = sum(token.source != "lookup" for token in fallen)
                more = "second choice" if others == 1 else f"{others} further choices"
                falls = f" nor the drafter's {more}" * bool(others)
                falls += " nor what was looked up" * (others < len(fallen))
                falls += ": the guesses fall" if fallen else ": the guess falls"
                guess = f"{quoted(draft.text)}{given}{self._knowing(index)}"
                return f"{picked}, not {guess}{falls}, the target's token stands."
            case "bonus" if self.step.tree:
                return f"Behind what was kept nothing was checked, so the target adds one: {_lower(picked)}."
            case "bonus":
                return f"Every guess it looked at was right, so the target adds one: {_lower(picked)}."
            case "plain" if self.step.index == 0:
                return f"The first token comes from reading the prompt: {_lower(picked)}."
            case "plain" if draft:
                return f"No guess was looked at{self._choice}. {picked}."
            case "discarded":
                return "Never judged: it stands behind a wrong guess, so the target read another text here."
            case "unverified" if self.step.tree:
                verified = self.step.num_verified
                why = self._choice if verified < MAX_DRAFT else ""
                return f"Never looked at: the tree of the {verified} likeliest guesses ends before it{why}."
            case "unverified":
                return f"Never looked at: the target checked only {self.step.num_verified} guesses{self._choice}."
            case "unknown":
                return f"Whether this token was drafted is not known. {picked}."
            case "ended":
                return "Not needed: the answer ended before it."
        return f"Nothing was guessed here: {_lower(picked)}."

    @property
    def turning(self) -> str:
        """The sentence that says why the round went no further: of the first place where it kept no guess, or of the
        last that it kept, behind which the answer ended."""
        columns = enumerate(self.columns)
        turn = next((index for index, each in columns if each.outcome != "accepted"), len(self.columns) - 1)
        return self.why(turn - (turn > 0 and self.columns[turn].outcome == "ended"))

    def _picked(self, column: Column) -> str:
        """The clause that says how the target chose its token: the likeliest at temperature 0, else drawn, where known
        with the random number that drew it."""
        choice = column.choice
        if choice is None:
            return "The target has no token here"
        name = quoted(choice.text, choice.channel == "control")
        odds = "" if choice.probability is None else _percent(choice.probability)
        share = f" ({odds})" if odds else ""
        if self.step.temperature == 0:
            return f"The target's most likely token is {name}{share}"
        if column.noise is None:
            return f"The target's sample is {name}{share}"
        return f"The random number u = {column.noise:.3f} falls on {name} ({odds or NOT_KNOWN} of the target's odds)"

    def _knowing(self, index: int) -> str:
        """The end of a clause about a guess of the drafter, which says what that was made from beside the text: its own
        guess before, in methods where it is, and how; empty for a first guess, and where all are made at once."""
        before = self.columns[index - 1].draft if index else None
        how = CONDITIONED.get(self.method) if self.method else None
        return "" if how is None or before is None else f"{how} {quoted(before.text)}"

    def choices(self, index: int) -> str:
        """All that was verified at a column, in a sentence; empty where that was the drafter's first choice alone."""
        column = self.columns[index]
        if column.draft is None or not column.further:
            return ""
        chosen = [f"{quoted(column.draft.text)} {_percent(column.draft.probability)}"]
        chosen += [f"{quoted(each.token.text)} {_percent(each.token.probability)}" for each in column.further]
        if column.further[-1].token.source == "lookup":
            *chosen, looked_up = chosen
            return f"The drafter's choices here: {', '.join(chosen)}. Looked up: {looked_up}."
        return f"The drafter's choices here: {', '.join(chosen)}."


def inspect(
    rounds: RoundStore,
    index: int,
    first_position: int,
    seed: int | None,
    plain_ms: float | None,
    times: Clock = "engine",
    recurs: bool = False,
    method: Method | None = None,
) -> Inspection:
    """Takes step ``index`` of a turn apart (``IndexError``: no such step). ``first_position``: the number of prompt
    tokens; ``seed``: of the engine's noise, None where it was another's; ``recurs`` and ``method`` as of
    ``EngineReady``."""
    step, before = rounds[index], rounds.tokens_before(index)
    inspection = inspect_step(step, before, first_position + before, seed, plain_ms, times)
    return replace(
        inspection,
        recurs=recurs,
        method=method,
        widths=tuple(rounds.verified[max(index - LONGEST_LOOK + 1, 1) : index + 1]),
    )


def telling(steps: Iterable[Step]) -> Step:
    """The first step that shows well what a round is: it kept 8 to 12 guesses, with a correction behind them."""
    return next(step for step in steps if 8 <= step.num_accepted <= 12 and step.emitted[-1].verdict == "corrected")


def inspect_step(
    step: Step,
    first_token: int,
    position: int,
    seed: int | None,
    plain_ms: float | None = None,
    times: Clock = "engine",
) -> Inspection:
    """Take a step apart whose first token is the answer's ``first_token`` and stands at ``position``."""
    columns, further = [], further_choices(step)
    for index, (draft, choice) in enumerate(zip_longest(step.draft, step.emitted)):
        sampled = choice is not None and step.temperature > 0
        noise = uniform(seed, position + index) if sampled and seed is not None else None
        others = tuple(further[index]) if index < len(further) else ()
        columns.append(Column(index + 1, _outcome(step, index), draft, choice, noise, others))
    if plain_ms is not None and step.verify_ms:  # a pass over one row costs no more than this one did, under its load
        plain_ms = min(plain_ms, step.verify_ms)
    return Inspection(step, first_token, tuple(columns), plain_ms, times)


def _outcome(step: Step, index: int) -> Outcome:
    if index < len(step.emitted):
        verdict = step.emitted[index].verdict
        return "rejected" if verdict == "corrected" else verdict
    return fallen_as(step, index)


def ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _nth(choice: int) -> str:
    """Which choice of the drafter's, in words."""
    return CHOICES[choice] if choice < len(CHOICES) else ordinal(choice + 1)


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _percent(probability: float | None) -> str:
    """Events tell probabilities in steps of a thousandth: nothing is certain."""
    if probability is None:
        return NOT_KNOWN
    if not 0.001 <= probability <= 0.999:
        return "under 0.1%" if probability < 0.5 else "over 99.9%"
    return f"{probability:.1%}".replace(".0%", "%")


def quoted(text: str | None, control: bool = False) -> str:
    """A token in a sentence, with its blanks to be seen."""
    if text is None:
        return "the guess, which is not known"
    if control:
        return "the end mark"
    return f"“{show_blanks(text)}”" if text else "half a character"
