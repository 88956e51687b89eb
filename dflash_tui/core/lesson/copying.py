"""The picture of a text that guesses: where its newest tokens stood before, and what would have been found there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from engine.commands import MAX_BLOCK_SIZE
from engine.events import EmittedToken
from engine.speculation.lookup import continuation, longest_match, num_agreed

from ..export.document import ExportedAnswer
from ..rounds.cells import END_MARK, show_blanks
from ..text.wrapping import width_of
from .drawn import NAME_WIDTH, Ink, Line, said


@dataclass(frozen=True, slots=True)
class Copied:
    """A place in an answer behind tokens that stood in it before, and what these let guess."""

    place: int
    """The number, in the answer, of the first token that is guessed."""
    length: int
    """How many tokens stand in both places."""
    distance: int
    """How many tokens back they stood."""
    guesses: tuple[str, ...]
    """The tokens that followed there."""
    right: int
    """How many of those follow here, too."""


def copied_places(tokens: Sequence[EmittedToken]) -> list[Copied]:
    """Every match of an answer that looks up all it can; nothing where the tokens' ids are not known."""
    ids = [token.id for token in tokens if token.id is not None]
    if len(ids) < len(tokens):
        return []
    found: list[Copied] = []
    place = 0
    while place < len(ids):
        match = longest_match(ids[:place])
        right = 0
        if match is not None:
            looked_up = continuation(ids[:place], match.distance, MAX_BLOCK_SIZE - 1)
            right = num_agreed(looked_up, ids[place:])
            texts = tuple(tokens[ids.index(each)].text for each in looked_up)
            found.append(Copied(place, match.length, match.distance, texts, right))
        place += right + 1
    return found


def copied_lines(answer: ExportedAnswer, moment: int, width: int) -> list[Line]:
    """The match at a moment, counted from 0: where it stood, where it stands, and what came of it."""
    tokens = tuple(answer.tokens)
    places = copied_places(tokens)
    if not places:
        return said("No three tokens of this answer stand in it twice.", width)
    at = places[moment]
    match = "…" + "".join(show_blanks(token.text) for token in tokens[at.place - at.length : at.place])
    followed: list[tuple[str, Ink]] = [(f" {show_blanks(text)} ", "row") for text in at.guesses]
    judged: list[tuple[str, Ink]] = [
        (f"{_mark(place - at.right)}{show_blanks(text)} ", "kept" if place < at.right else "fallen")
        for place, text in enumerate(at.guesses)
    ]
    own = next((show_blanks(token.text) for token in tokens[at.place + at.right :]), END_MARK)
    yielded = f"the target writes “{own}”"
    if at.right:
        yielded = f"with the target's “{own}” {at.right + 1} tokens in one pass"
    words = (
        f"Looked up {at.distance} tokens back, {at.right} of {len(at.guesses)} guesses right: {yielded}; no drafter "
        f"ran. Place {moment + 1} of {len(places)}."
    )
    rows: list[tuple[str, list[tuple[str, Ink]]]] = [("before", followed), ("now", judged)]
    lines: list[Line] = []
    for name, cells in rows:
        lines += [((f"{name:<{NAME_WIDTH}}", "name"), (f"{match} ", "memory"), *cells), ()]
    return [*(_cut(line, width) for line in lines), *said(words, width)]


def _mark(behind: int) -> str:
    """The mark of a guess that stands ``behind`` places behind the first wrong one; negative before that."""
    return "✓" if behind < 0 else "✗" if behind == 0 else "✂"


def _cut(line: Line, width: int) -> Line:
    """The first pieces of a line that have room in ``width`` cells together."""
    ends = accumulate(width_of(text) for text, _ in line)
    return tuple(piece for piece, end in zip(line, ends, strict=True) if end <= width)


def best_moment(answer: ExportedAnswer) -> int:
    """The number of the match with the most right guesses, the first of several."""
    right = [each.right for each in copied_places(tuple(answer.tokens))]
    return right.index(max(right)) if right else 0
