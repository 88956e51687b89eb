"""Lenses: which shade a token gets from its round's numbers. The default, ``verdict``, keeps the look a token came
with."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Literal, get_args

from engine.rounds.blocks import ROUNDS
from engine.rounds.store import RoundStore

from .trees import accepted_drafts

Lens = Literal["verdict", "confidence", "plain"]
LENSES: tuple[Lens, ...] = get_args(Lens)

Shade = Literal["sure-1", "sure-2", "sure-3", "sure-4", "sure-5", "undrafted", "even"]
"""``sure-5`` is the drafter at its surest; ``even`` is text whose round is not known."""
_SURE: tuple[Shade | None, ...] = ("sure-1", "sure-2", "sure-3", "sure-4", "sure-5", None)
"""The shade of a probability by its :func:`bin_of`."""
_CACHED_BLOCKS = 128

LEGENDS: dict[Lens, tuple[tuple[Shade, str, str], ...]] = {
    "confidence": (
        ("sure-1", "below 20%", "<20%"), ("sure-2", "20–40", "20–40"), ("sure-3", "40–60", "40–60"),
        ("sure-4", "60–80", "60–80"), ("sure-5", "above 80", ">80"), ("undrafted", "not drafted", "not drafted"),
    ),
}  # fmt: skip
"""What each shade says, for the line under the transcript, and in fewer words where that is narrow."""


def next_lens(lens: Lens) -> Lens:
    return LENSES[(LENSES.index(lens) + 1) % len(LENSES)]


class LensReading:
    """One answer seen through one lens."""

    def __init__(self, lens: Lens, rounds: RoundStore) -> None:
        self._lens = lens
        self._rounds = rounds
        self._block = lru_cache(_CACHED_BLOCKS)(self._decode_block)

    def shade(self, token: int) -> Shade | None:
        """The shade of an emitted token; None for plain text, what is not known, and a token that isn't there."""
        rounds = self._rounds
        if self._lens != "confidence" or not 0 <= token < rounds.num_tokens:
            return None
        step = rounds.step_of_token(token)
        index = token - rounds.tokens_before(step)
        if index >= rounds.accepted[step]:
            return "undrafted"
        block = step // ROUNDS
        complete = min((block + 1) * ROUNDS, len(rounds))
        return _SURE[self._block(block, complete)[step % ROUNDS][index]]

    def _decode_block(self, block: int, end: int) -> list[bytes]:
        """The bin of every accepted draft of a block up to ``end``: a step's neighbours are read with it."""
        start = block * ROUNDS
        steps = islice(self._rounds.steps(start), end - start)
        return [bytes(bin_of(token.probability) for token in accepted_drafts(step)) for step in steps]


def bin_of(probability: float | None) -> int:
    """Which fifth of [0, 1] a probability lies in, 0 to 4; 5 when it is not known."""
    return 5 if probability is None else min(int(probability * 5), 4)
