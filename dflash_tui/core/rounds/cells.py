"""One round as a row of cells: every drafted token with its fate, and the target's own token after them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from engine.events import DraftToken, Step, TreeToken

from ..text.counted import counted
from ..text.harmless import sanitise
from .trees import accepted_drafts, num_positions

Fallen = Literal["discarded", "unverified", "ended"]
Fate = Literal["accepted", "rejected", "corrected", "bonus", "plain", "unknown"] | Fallen
"""What became of a token of a round. Of drafts, ``rejected`` is the one that differed from the target's choice,
``discarded`` ones stood behind it and were never judged, ``unverified`` ones were never looked at, and ``ended`` ones
stand behind the end of the answer."""


_BLANKS = str.maketrans({" ": "·", "\n": "⏎", "\t": "⇥"})


END_OF_TURN = re.compile(r"<\|?(?=\w*(?:turn|end|eot|eos|return))\w*+\|>|<eos>|</s>")
"""What end marks look like in any family: a drafted token says no channel to know them by."""
UNKNOWN = "░"
"""Stands for a drafted token of which only its place is known."""
NOTHING_SAID = "whether anything was drafted is not known"
END_MARK = "‹end›"
"""What the end mark is called wherever a round is shown."""


def show_blanks(text: str) -> str:
    """A token with its blanks shown, the end mark by its name, and nothing that a terminal would act on."""
    if END_OF_TURN.fullmatch(text):
        return END_MARK
    return sanitise(text.translate(_BLANKS)) or "∅"


@dataclass(frozen=True, slots=True)
class RoundCell:
    """A token of a round, and what became of it."""

    text: str
    fate: Fate
    probability: float | None = None
    """What the drafter gave the token, in [0, 1]; None for tokens of the target, and where it is not known."""


def round_cells(step: Step) -> list[RoundCell]:
    """Drafts up to the first rejected one, then the target's token, then the drafts that fell with it."""
    own = [
        RoundCell(END_MARK if token.channel == "control" else token.text, token.verdict)
        for token in step.emitted
        if token.verdict != "accepted"
    ]
    corrected = any(cell.fate == "corrected" for cell in own)
    unknown = {index for index, token in enumerate(step.emitted) if token.verdict == "unknown"}
    accepted = [
        RoundCell(draft_text(token), "accepted", token.probability)
        for index, token in enumerate(accepted_drafts(step))
        if index not in unknown
    ]
    fallen = [
        RoundCell(draft_text(token), "rejected" if corrected and not index else fallen_as(step, at), token.probability)
        for index, (at, token) in enumerate(list(enumerate(step.draft))[step.num_accepted :])
    ]
    return [*accepted, *fallen[:1], *own, *fallen[1:]] if corrected else [*accepted, *own, *fallen]


def fallen_as(step: Step, index: int) -> Fallen:
    """The fate of the drafted token at ``index``, which is past the last token that the round emitted."""
    if index >= num_positions(step):
        return "unverified"
    # Where a tree goes on beside what was kept, a bonus stands for what was not guessed there.
    refusals = ("corrected", "bonus") if step.tree else ("corrected",)
    return "discarded" if step.emitted and step.emitted[-1].verdict in refusals else "ended"


def draft_text(token: DraftToken | TreeToken) -> str:
    return UNKNOWN if token.text is None else token.text


def round_summary(step: Step, brief: bool = False) -> str:
    """The round in one line of words, for example ``kept 8 of 15 guesses, then corrected``; ``brief`` leaves out what
    the tokens show."""
    verdicts, guesses, verified = {token.verdict for token in step.emitted}, len(step.draft), step.num_verified
    unknown = "unknown" in verdicts
    if not step.draft:
        first = "the prompt's token: nothing to guess yet"
        return NOTHING_SAID if unknown else first if step.index == 0 else "nothing guessed: the target wrote this alone"
    if not verified:
        return f"none of {guesses} guesses checked: the target wrote this token alone"
    last = step.emitted[-1].verdict if step.emitted else "accepted"
    ended = f", then the answer ended{': the rest was not needed' * (guesses > len(step.emitted) and not brief)}"
    end = {"corrected": ", then corrected", "bonus": ", plus a bonus"}.get(last, ended)
    end = ", which of these tokens is not known" if unknown else end
    if step.tree:
        positions = num_positions(step)
        return f"kept {step.num_accepted}{end} · checked a tree of {verified} over {counted(positions, 'position')}"
    of = (
        counted(guesses, "guess")
        if verified == guesses
        else f"{verified} checked{f' ({guesses} guessed)' * (not brief)}"
    )
    return f"kept {step.num_accepted} of {of}{end}"
