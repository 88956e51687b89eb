"""Two whole pairs in one process: what each decides while it is loaded holds for that one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

import engine
from engine.events import Event, Step


def _said(events: Iterable[Event | None]) -> list[tuple[int | None, float | None]]:
    """Tokens with their chances; where a round ends is up to what rounds cost at that moment."""
    return [(token.id, token.probability) for step in events if isinstance(step, Step) for token in step.emitted]


def test_two_loaded_pairs_decide_for_themselves() -> None:
    """The same target, packed in one and with a drafter in the other, a round of each in turns: each says what it says
    alone."""
    with (
        engine.load(device="cpu", time_rounds=False) as drafted,
        engine.load(device="cpu", drafter="none", weights="int4", time_rounds=False) as packed,
    ):
        pairs = (drafted, packed)
        alone = [[*pair.generate("hello", max_new_tokens=8)] for pair in pairs]
        both = zip_longest(*(pair.generate("hello", max_new_tokens=8) for pair in pairs))
        for expected, events in zip(alone, zip(*both, strict=True), strict=True):
            assert _said(events) == _said(expected)
        assert [any(step.draft for step in each if isinstance(step, Step)) for each in alone] == [True, False]
