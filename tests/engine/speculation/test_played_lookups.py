"""What looking up makes of texts, at costs that an H200 has: recorded answers, texts made to mislead, and copies."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from engine.speculation.verify_width import Auto
from engine.tuning.files import Recording, load_recordings
from engine.tuning.lookups import lookups
from engine.tuning.play import NOTHING, Anchor, Lookup, play
from measure.engine import record_drafts
from measure.engine.played_auto import chains, never_right
from measure.engine.record_texts import load_texts
from measure.engine.recorded_costs import recorded_tables
from tests.pace import sampled

TABLES = recorded_tables()
COUNT = 2000
NOBODY = [Anchor((), 0)] * COUNT
each_table = pytest.mark.parametrize("name", sorted(TABLES))


def misleading(kind: str) -> list[Lookup]:
    """Matches that the text hardly ever goes on with."""
    rng = random.Random(kind)
    lengths = {"long": [32], "short": [3], "of every length": [3, 4, 5, 6, 8, 10, 13, 17, 24, 32]}
    if kind == "every other":
        return [Lookup(rng.randint(3, 32), 15) if place % 2 else NOTHING for place in range(COUNT)]
    if kind == "right now and then":
        return [Lookup(rng.randint(3, 32), 15, rng.choice((0, 0, 0, 1))) for _ in range(COUNT)]
    return [Lookup(rng.choice(lengths[kind]), 15) for _ in range(COUNT)]


def took(name: str, drafts: Sequence[Anchor] | None, looked_up: Sequence[Lookup] = ()) -> float:
    """Milliseconds; without ``drafts`` there is no drafter."""
    policy = Auto(TABLES[name])
    policy.begin(drafts=drafts is not None)
    return play(policy, NOBODY if drafts is None else drafts, TABLES[name], 0, looked_up).milliseconds


@each_table
@pytest.mark.parametrize("kind", ["long", "short", "of every length", "every other", "right now and then"])
def test_texts_that_mislead_cost_next_to_nothing(name: str, kind: str) -> None:
    plain, looked_up = took(name, None), misleading(kind)
    assert plain / took(name, None, looked_up) >= 0.97
    assert plain / took(name, chains(never_right(COUNT, 0.5)), looked_up) >= 0.97


@each_table
def test_a_copy_is_several_times_as_fast(name: str) -> None:
    copy = [Lookup(32, 15, 15)] * COUNT
    assert took(name, None) / took(name, None, copy) > 3


@each_table
def test_free_text_is_written_as_fast_as_ever(name: str) -> None:
    table = TABLES[name]
    drafter_alone, both = Auto(table), Auto(table)
    before = now = 0.0
    recorded: list[tuple[Recording, tuple[list[int], list[int]]]]
    recorded = list(zip(load_recordings(record_drafts.FILE), load_texts(), strict=True))
    for recording, (prompt, answer) in sampled(recorded, 4):
        assert len(recording.anchors) == len(answer) - 1
        found = lookups(prompt, answer, recording.anchors)
        for policy in (drafter_alone, both):
            policy.begin()
        before += play(drafter_alone, recording.anchors, table, recording.prompt_length).milliseconds
        now += play(both, recording.anchors, table, recording.prompt_length, found).milliseconds
    assert before / now >= 0.99
