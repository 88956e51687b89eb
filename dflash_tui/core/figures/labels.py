"""What figures, colours and rows are called, and in one line each what they are: the only place that says so. The
screen, its help, the step view, statistics, exported pages and the lesson take their words from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..text.counted import counted

if TYPE_CHECKING:
    from engine.events import Step, TurnStatistics

    from ..rounds.cells import Fate
    from ..rounds.playback import Phase


@dataclass(frozen=True, slots=True)
class Label:
    """A name, what it stands for, and a shorter name for where there is little room."""

    name: str
    says: str
    brief: str = ""

    @property
    def short(self) -> str:
        return self.brief or self.name

    @property
    def explained(self) -> str:
        """The name with what it stands for, as one text."""
        return f"{self.name}: {self.says}"


MODELS = (
    Label("target", "the large model, whose text it is"),
    Label("drafter", "the small model that guesses ahead; the target checks its guesses"),
    Label("round", "one time of that: guess, check, keep, correct"),
)
"""Who takes part, and what they do again and again."""
SPEED_UP = Label("times as fast", "as the target alone, which writes one token in each pass", "speed-up")
AS_FAST = f"{SPEED_UP.name.removeprefix('times ')} as the target alone"
"""Stands behind or under a number of times."""
TOKENS_PER_SECOND = Label("tokens/s", "tokens written in a second, counted from the first one on", "tok/s")
TOKENS_PER_ROUND = Label(
    "tokens a round",
    "what a round writes, those without a guess counted, too: the guesses that were kept, and the target's own token",
    "a round",
)
KEPT = Label("kept a round", "how many guesses the rounds kept: a bar for each number, as high as rounds kept so many")
RIGHT_SO_FAR = Label(
    "right so far, by place",
    "of the rounds that were right up to a place, the share that was right there, too",
    "right",
)
COST = Label("ms a round", "what a round takes: the drafter's guesses, the target's check of them, and the rest", "ms")
PASSES = Label(
    "check by rows",
    "milliseconds of the target's pass when the pair was loaded, by how many tokens it looks at, the newest and the "
    "guesses: grey bars lie between two that were timed; ▲ is this round",
)
GUESSING, CHECKING, REST = (
    Label("guess", "milliseconds of the drafter"),
    Label("check", "milliseconds of the target"),
    Label("rest", "milliseconds of everything else"),
)
CONTEXT = Label("context", "how much of what the model can look back on is used")
SIGNS = (
    Label("struck out", "a guess that was wrong, and those behind it, which were thrown away"),
    Label("⇒", "before the target's own token, in the place of a wrong guess"),
    Label("+", "before the target's own token behind guesses that were all right: one more, for nothing"),
    Label("·  ⏎  ⇥", "a blank, a new line, a tab"),
    Label(".98", "below a guess: how sure the drafter was of it, from 0 to 1"),
    Label("✓  ✗  ✂", "in the table of a round: right; wrong; thrown away behind a wrong one"),
    Label("…  ○", "there, too: a guess that the check did not reach; the target's token without a guess"),
    Label("·2 ·3", "there, too: the second, the third place, behind the answer's end"),
)
"""What stands at the tokens of a round, in the strip of the chat and in the step view."""
FIGURES = (SPEED_UP, TOKENS_PER_SECOND, TOKENS_PER_ROUND, KEPT, RIGHT_SO_FAR, PASSES, COST, CONTEXT)
"""The labels of the gauges, in their order."""

COLOURS: dict[Fate, Label] = {
    "accepted": Label("accepted", "kept: the drafter had guessed what the target chose"),
    "corrected": Label("corrected", "the target's own choice, where the first guess went wrong"),
    "bonus": Label("bonus", "one more from the target, when every guess was right"),
    "rejected": Label("rejected", "the wrong guess; struck out behind it, what fell with it"),
    "plain": Label("target alone", "no guess was checked here: the target wrote it by itself", "alone"),
}
"""The labels of tokens' colours, in an answer and in its rounds, by what became of the token."""
UNCHECKED: dict[Fate, Label] = {
    "unverified": Label("not checked", "a guess that the target never looked at"),
}
SERVERS: dict[Fate, Label] = {
    "unknown": Label("not known", "the server didn't say whether this token was drafted"),
}

WRITTEN_BARS, TIME_BARS = "bars: tokens written", "bars: time, shorter is faster"
"""What a race's bars are: while it runs, and at its end."""

GUESS = Label("guess", "the drafter's choice at each place, all of them at once")
DRAFTER_SURE = Label("drafter sure", "how sure the drafter was of its guess, from 0 to 1", "drafter")
FOUND_SURE = Label("match sure", "how often what was looked up has been right lately, from 0 to 1", "match")
TARGET_SURE = Label("target sure", "how likely the target finds that guess, from 0 to 1", "target")
TARGET_WRITES = Label("target writes", "what the target chose at that place", "writes")
SURE_OF_OWN = Label("sure of its own", "how likely the target found what it chose, from 0 to 1", "its own")
RANDOM = Label("random number", "the number that chose, where the target's choice is by chance", "random")
OUTCOME = Label(
    "outcome",
    "✓ kept, ✗ wrong, ✂ fell with a wrong one, … not checked, · behind the answer's end, + the target's bonus, "
    "○ the target alone; and the place in the round",
)
UNDER_TOKENS = "The number under a token: how sure the drafter was of its guess, or the target of a token of its own."
FURTHER = ("or 2nd", "or 3rd", "or 4th", "or found")
"""The drafter's choices behind the first, and what was looked up."""
STEPS = (GUESS, DRAFTER_SURE, TARGET_SURE, TARGET_WRITES, SURE_OF_OWN, RANDOM, OUTCOME)
"""Rows of the step view."""

ABOUT = (
    "Speculative decoding: a small model, the drafter, guesses ahead; the large one, the target, checks the guesses in "
    "one pass. Same text, sooner."
)
"""What the program shows, for those who have just opened it."""
BRIEFLY = "A small model, the drafter, guesses; the large one, the target, checks."
"""The same in a line."""
PHASE_NAMES: dict[Phase, str] = {
    "block": "block", "draft": GUESSING.name, "verify": CHECKING.name, "judge": "keep", "emit": "write",
}  # fmt: skip
CAPTIONS: dict[Phase, str] = {
    "block": "By itself the target writes one token a pass. Now with the drafter:",
    "draft": "Step 1, guess: the drafter proposes {drafts}, all at once.",
    "verify": "Step 2, check: the target looks at all of them in one pass.",
    "judge": "Step 3, keep: what it would have written, too, is accepted: {kept}.",
    "emit": "Step 4, correct: it replaces the first wrong one. {tokens} in one pass.",
}
"""What happens in a phase of a round that ends with a correction."""


def caption(phase: Phase, step: Step) -> str:
    """What happens in a phase, with the numbers of the round ``step``."""
    return CAPTIONS[phase].format(
        drafts=counted(step.num_drafted, "token"),
        kept=counted(step.num_accepted, "token"),
        tokens=counted(step.num_emitted, "token"),
    )


def accepted_share(facts: TurnStatistics) -> str:
    """What speculation gave, in a few words: tokens a round, else how many drafts of how many; maybe nothing."""
    if facts.num_spec_steps:
        return f"{facts.tokens_per_round:.2f} {TOKENS_PER_ROUND.name}"
    if facts.num_draft_tokens:
        return f"{facts.num_accepted_draft_tokens} of {counted(facts.num_draft_tokens, 'draft')} accepted"
    return ""
