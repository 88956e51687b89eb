"""The tour: two minutes that play themselves, for a room, over the lesson's recording."""

from __future__ import annotations

from ..rounds.inspection import telling
from ..rounds.passes import REASON, Pass, PassRow, PassRows
from .course import (
    Course,
    Factor,
    OneRound,
    Page,
    Recording,
    SideBySide,
    Written,
    mean_ms,
    open_recording,
    passes,
    token_ms,
)

TITLE = "Speculative decoding in two minutes"
BLOCK = 16
NEARLY_ONE = 1.2
"""Times as long: what a pass for sixteen tokens may take longer and still seem to take the same."""


def open_tour() -> Course:
    of = open_recording()
    return Course(
        TITLE, (_alone(of), _weights(of), _reason(), _round(of), _race(of), _number(of)), of.origin, plays=True
    )


def _alone(of: Recording) -> Page:
    text = (
        "For every token, a word or a piece of one, the whole model runs once: here "
        f"{of.alone.statistics.tok_s:.0f} times in a second, however slowly it is shown."
    )
    return Page("A language model writes one token at a time", text, Written(of.alone), 20.0)


def _weights(of: Recording) -> Page:
    one = token_ms(of.alone)
    whole = mean_ms([step for step in of.drafted.rounds if step.verify_width > len(step.draft) > 0], "verify_ms")
    times = whole / one
    arithmetic = " Its arithmetic is more, too: that is the rest." if times > NEARLY_ONE else ""
    text = (
        "A pass reads the weights from memory once, however many tokens it checks. "
        f"Here: {one:.1f} ms for one, {whole:.1f} ms for sixteen: {times:.1f} times as long for sixteen times as many."
        f"{arithmetic}"
    )
    tokens = tuple(Pass("target", (str(number),)) for number in range(1, BLOCK + 1))
    alone = PassRow("sixteen tokens written", "written", tokens)
    checked = PassRow("sixteen tokens checked", "checked", (Pass("target", ("1–16", "all", "16"), times),))
    return Page("Checking sixteen tokens reads the weights once, as writing one does", text,
                PassRows((alone, checked), text), 20.0)  # fmt: skip


def _reason() -> Page:
    return Page("So a small model guesses ahead, and DFlash guesses fifteen in one pass", REASON.says, REASON, 18.0)


def _round(of: Recording) -> Page:
    index = list(of.drafted.rounds).index(telling(list(of.drafted.rounds)))
    text = "And not one token stays that the large model would not have written by itself."
    return Page("The large model checks, and corrects", text, OneRound(of.drafted, index, token_ms(of.alone)), 26.0)


def _race(of: Recording) -> Page:
    text = (
        f"Alone the model runs {passes(of.alone)} times behind the question, with guesses {passes(of.drafted)} times. "
        "What it writes is the same."
    )
    return Page("The same answer, both ways, on one clock", text, SideBySide((of.alone, of.drafted)), 20.0)


def _number(of: Recording) -> Page:
    lanes = SideBySide((of.alone, of.drafted)).result
    where = "an ordinary processor" if of.origin.device == "cpu" else of.origin.device
    text = (
        f"{of.drafted.statistics.num_tokens} tokens in {of.drafted.decode_seconds:.2f} s instead of "
        f"{of.alone.decode_seconds:.2f} s. Recorded on {where}, with a small model. "
        "See it with your own question: dflash-chat"
    )
    return Page("The same text, token for token", text, Factor(lanes.speed_up(lanes.best).times), 16.0)
