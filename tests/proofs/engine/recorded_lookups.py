"""Looks up what a recorded text repeats."""

from __future__ import annotations

from collections.abc import Sequence

from engine.decoding.text_index import TextIndex
from engine.lab.judging.play import NOTHING, RecordedDraft, RecordedLookup
from engine.speculation.lookup import num_agreed
from engine.speculation.trees import WIDE_ROWS


def lookups(prompt: Sequence[int], answer: Sequence[int], drafts: Sequence[RecordedDraft] = ()) -> list[RecordedLookup]:
    """The chain that can be looked up behind every token of an answer. Where ``drafts`` are given for the same
    positions, a lookup agrees with a draft as far as both are right."""
    index, found = TextIndex([*prompt, *answer[:1]]), []
    for position in range(1, len(answer)):
        match = index.find()
        if match is None:
            found.append(NOTHING)
        else:
            rest = answer[position:]
            guess = index.guess(match, min(WIDE_ROWS[-1] - 1, len(rest)))
            right = num_agreed(guess, rest)
            agreed = min(right, drafts[position - 1].num_right) if drafts else 0
            found.append(RecordedLookup(match.length, len(guess), right, agreed))
        index.extend(answer[position : position + 1])
    return found
