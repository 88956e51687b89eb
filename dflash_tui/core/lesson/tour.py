"""The tour: two minutes that play themselves, for a room. What they show comes from the lesson's recording."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

from ..export.document import ExportedAnswer
from ..race.race import RaceResult, as_race
from ..rounds.inspection import Inspection, inspect_step, telling
from .bundled import open_lesson
from .pages import name_of


@dataclass(frozen=True, slots=True)
class Part:
    """One picture of the tour: its title, how many seconds it stands, and what is said under it."""

    name: str
    title: str
    seconds: float
    words: str


@dataclass(frozen=True, slots=True)
class Tour:
    """Two recorded answers to one question, and the parts of the tour that are made of them."""

    alone: ExportedAnswer
    """Written by the target alone, a token in each pass."""
    drafted: ExportedAnswer
    """The same question with a drafter."""
    round: Inspection
    """One round of the second answer, with many guesses kept and a correction."""
    where: str
    """What it was recorded on."""

    @property
    def race(self) -> RaceResult:
        return as_race(self.alone.question, [(name_of(answer), answer) for answer in (self.alone, self.drafted)])

    @property
    def factor(self) -> float:
        """How many times as fast as the first the second answer was decoded."""
        race = self.race
        return race.speed_up(race.lanes[1])

    @property
    def one_ms(self) -> float:
        """Milliseconds of a pass that writes one token."""
        return mean(step.total_ms for step in self.alone.steps[1:])

    @property
    def block_ms(self) -> float:
        """Milliseconds of a pass that checks a whole block."""
        whole = [step for step in self.drafted.steps if step.verify_width > len(step.draft) > 0]
        return mean(step.verify_ms for step in whole if step.verify_ms is not None)

    @property
    def parts(self) -> tuple[Part, ...]:
        drafted = self.drafted.statistics
        tokens = drafted.num_tokens
        alone, helped = (sum(step.verify_width > 0 for step in each.steps) for each in (self.alone, self.drafted))
        times = self.block_ms / self.one_ms
        arithmetic = " Its arithmetic is more, too: that is the rest." if times > NEARLY_ONE else ""
        return (
            Part(
                "alone",
                "A language model writes one token at a time",
                24.0,
                "For every token, a word or a piece of one, the whole model runs once. "
                f"Slowed for you: {self.alone.statistics.tok_s:.0f} tokens in a second, really.",
            ),
            Part(
                "weights",
                "Checking fifteen guesses reads the weights once, as writing one token does",
                24.0,
                "A pass reads the weights from memory once, however many tokens it checks. "
                f"Here: {self.one_ms:.1f} ms for one, {self.block_ms:.1f} ms for sixteen: "
                f"{times:.1f} times as long for sixteen times as many.{arithmetic}",
            ),
            Part(
                "round",
                "So a small model guesses, and the large one checks",
                28.0,
                "And not one token stays that the large model would not have written by itself.",
            ),
            Part(
                "race",
                "The same answer, both ways, on one clock",
                24.0,
                f"Alone the model runs {alone} times, with guesses {helped} times. "
                "Bars grow with what is written; at the end they are as long as the time that it took.",
            ),
            Part(
                "number",
                "The same text, token for token",
                20.0,
                f"{tokens} tokens in {self.drafted.decode_seconds:.2f} s instead of {self.alone.decode_seconds:.2f} s. "
                f"{self.where} See it with your own question: dflash-chat",
            ),
        )

    @property
    def seconds(self) -> float:
        return sum(part.seconds for part in self.parts)


NEARLY_ONE = 1.2
"""Times as long: what a pass for sixteen tokens may take longer and still seem to take the same."""


def open_tour() -> Tour:
    """Make the tour from the bundled recording."""
    _, pages, origin = open_lesson(None)
    figure = next(page.figure for page in pages if page.figure is not None and page.figure.kind == "race")
    alone, drafted = figure.answers[:2]
    where = f"Recorded on {'an ordinary processor' if origin.device == 'cpu' else origin.device}, with a small model."
    return Tour(alone, drafted, inspect_step(telling(drafted.steps), 0, 0, None), where)
