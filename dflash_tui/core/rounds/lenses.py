"""Lenses: which shade a token gets from its round's numbers. The default, ``verdict``, keeps the look a token came
with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Literal, get_args

from engine.events import Source

from ..records.blocks import ROUNDS
from ..records.rows import SOURCES
from .history import StepHistory
from .trees import accepted_drafts

Lens = Literal["verdict", "confidence", "source", "steps", "latency", "plain"]
LENSES: tuple[Lens, ...] = get_args(Lens)

Shade = Literal[
    "sure-1", "sure-2", "sure-3", "sure-4", "sure-5", "undrafted", "even", "odd",
    "fast-1", "fast-2", "fast-3", "fast-4", "fast-5", "by-drafter", "by-lookup", "by-mtp",
]  # fmt: skip
"""``sure-5`` is the drafter at its surest and ``fast-5`` the cheapest token; ``even`` and ``odd`` are rounds."""
_BY: tuple[Shade, ...] = ("by-drafter", "by-drafter", "by-lookup", "by-mtp")
"""The shade of a guess by its source's place in ``SOURCES``; where none is named, it was the drafter."""
_SURE: tuple[Shade | None, ...] = ("sure-1", "sure-2", "sure-3", "sure-4", "sure-5", None)
"""The shade of a probability by its :func:`bin_of`."""
_FAST: tuple[Shade, ...] = ("fast-5", "fast-4", "fast-3", "fast-2", "fast-1")

SLOWER = (0.5, 0.8, 1.25, 2.0)
"""The ratios at which one latency shade ends and the next begins: a token's milliseconds by the mean up to it."""
_CACHED_BLOCKS = 128

LEGENDS: dict[Lens, tuple[tuple[Shade, str, str], ...]] = {
    "confidence": (
        ("sure-1", "below 20%", "<20%"), ("sure-2", "20–40", "20–40"), ("sure-3", "40–60", "40–60"),
        ("sure-4", "60–80", "60–80"), ("sure-5", "above 80", ">80"), ("undrafted", "not drafted", "not drafted"),
    ),
    "source": (
        ("by-drafter", "the drafter's guess", "drafter"), ("by-lookup", "in the text before", "text before"),
        ("by-mtp", "MTP's guess", "MTP"), ("undrafted", "not drafted", "not drafted"),
    ),
    "steps": (("even", "one round", "one round"), ("odd", "the next one", "the next one")),
    "latency": (
        ("fast-5", "below half the mean", "<0.5"), ("fast-4", "below ⅘", "<0.8"),
        ("fast-3", "about the mean", "the mean"), ("fast-2", "above 1¼", ">1.25"), ("fast-1", "above twice", ">2"),
    ),
}  # fmt: skip
"""What each shade says, for the line under the transcript, and in fewer words where that is narrow."""


GUESSES: dict[Shade, Source] = {"by-drafter": "dflash", "by-lookup": "lookup", "by-mtp": "mtp"}
"""Shades that only tokens of one guesser have."""


def next_lens(lens: Lens) -> Lens:
    return LENSES[(LENSES.index(lens) + 1) % len(LENSES)]


class LensReading:
    """One answer seen through one lens."""

    def __init__(self, lens: Lens, history: StepHistory) -> None:
        self._lens = lens
        self._history = history
        self._block = lru_cache(_CACHED_BLOCKS)(self._decode_block)

    def shade(self, token: int) -> Shade | None:
        """The shade of an emitted token; None for plain text, what is not known, and a token that isn't there."""
        if not 0 <= token < self._history.num_tokens:
            return None
        step = self._history.step_of_token(token)
        match self._lens:
            case "steps":
                return "odd" if step % 2 else "even"
            case "latency":
                return self._latency(step)
            case "confidence":
                return self._of_draft(step, token - self._history.tokens_before(step), _SURE)
            case "source":
                return self._of_draft(step, token - self._history.tokens_before(step), _BY)
        return None

    def _latency(self, step: int) -> Shade:
        """Against the mean up to and with this round, so that what comes later never repaints it."""
        history = self._history
        tokens = history.emitted_sum[step] - history.tokens_before(step)
        mean = history.total_us_sum[step] / history.emitted_sum[step]
        cost = history.total_us[step] / tokens
        return _FAST[sum(cost > limit * mean for limit in SLOWER)]

    def _of_draft(self, step: int, place: int, shades: Sequence[Shade | None]) -> Shade | None:
        """The shade of token ``place`` of a step, by what is known of its draft; the target's own tokens have none."""
        if place >= self._history.accepted[step]:
            return "undrafted"
        block = step // ROUNDS
        complete = min((block + 1) * ROUNDS, len(self._history))
        return shades[self._block(block, complete)[step % ROUNDS][place]]

    def _decode_block(self, block: int, end: int) -> list[bytes]:
        """The bin of every accepted draft of a block up to ``end``, or who guessed it: a step's neighbours
        are read with it."""
        start = block * ROUNDS
        steps = islice(self._history.steps(start), end - start)
        if self._lens == "source":
            return [bytes(SOURCES.index(token.source) for token in accepted_drafts(step)) for step in steps]
        return [bytes(bin_of(token.probability) for token in accepted_drafts(step)) for step in steps]


def bin_of(probability: float | None) -> int:
    """Which fifth of [0, 1] a probability lies in, 0 to 4; 5 when it is not known."""
    return 5 if probability is None else min(int(probability * 5), 4)
