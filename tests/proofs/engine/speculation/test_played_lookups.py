"""What looking up makes of texts, at costs that an H200 has: recorded answers, texts made to mislead, and copies."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from engine.lab.judging.play import NOTHING, RecordedChoices, RecordedDraft, RecordedLookup, play
from engine.speculation.auto import Auto
from tests.proofs.engine.played_auto import TREES, chains, never_right, scattered
from tests.proofs.engine.recorded import DraftRecording, recorded_drafts, recorded_tables, recorded_texts
from tests.proofs.engine.recorded_lookups import lookups

TABLES = recorded_tables()
COUNT = 2000
NOBODY = [RecordedDraft((), 0)] * COUNT
each_table = pytest.mark.parametrize("name", sorted(TABLES))
KINDS = ("long", "short", "of every length", "every other", "right now and then")


def misleading(kind: str) -> list[RecordedLookup]:
    """Matches that the text hardly ever goes on with."""
    rng = random.Random(kind)
    lengths = {"long": [32], "short": [3], "of every length": [3, 4, 5, 6, 8, 10, 13, 17, 24, 32]}
    if kind == "every other":
        return [RecordedLookup(rng.randint(3, 32), 15) if place % 2 else NOTHING for place in range(COUNT)]
    if kind == "right now and then":
        return [RecordedLookup(rng.randint(3, 32), 15, rng.choice((0, 0, 0, 1))) for _ in range(COUNT)]
    return [RecordedLookup(rng.choice(lengths[kind]), 15) for _ in range(COUNT)]


def took(name: str, drafts: Sequence[RecordedDraft] | None, looked_up: Sequence[RecordedLookup] = ()) -> float:
    """Milliseconds; without ``drafts`` there is no drafter."""
    policy = Auto(TABLES[name])
    policy.begin(drafts=drafts is not None)
    return play(policy, NOBODY if drafts is None else drafts, TABLES[name], 0, looked_up).milliseconds


def in_trees(name: str, blocks: Sequence[RecordedChoices], looked_up: Sequence[RecordedLookup] = ()) -> float:
    """Milliseconds, where drafter and lookup share trees."""
    return play(Auto(TREES[name]), blocks, TREES[name], 0, looked_up).milliseconds


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for row, name in enumerate(sorted(TABLES))
        for column, kind in enumerate(KINDS)
        if (row + column) % 2
    ],
)
def test_texts_that_mislead_cost_next_to_nothing(name: str, kind: str) -> None:
    plain, looked_up = took(name, None), misleading(kind)
    assert plain / took(name, None, looked_up) >= 0.97
    assert plain / took(name, chains(never_right(COUNT, 0.5)), looked_up) >= 0.97


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("kind", KINDS)
def test_in_trees_they_cost_next_to_nothing_either(name: str, kind: str) -> None:
    """Beside drafts that are never right, and beside good ones."""
    looked_up, good = misleading(kind), scattered(COUNT, 0.8, seed=3)
    assert took(name, None) / in_trees(name, never_right(COUNT, 0.5), looked_up) >= 0.97
    assert in_trees(name, good) / in_trees(name, good, looked_up) >= 0.97


@pytest.mark.parametrize("name", TREES)
def test_sharing_a_tree_is_faster_than_either_alone(name: str) -> None:
    """Where every fourth match leads nowhere, and drafts are right as often as not."""
    rng = random.Random(5)
    drafts = scattered(COUNT, 0.5, seed=5)
    looked_up = [RecordedLookup(rng.randint(3, 12), 15, rng.choice((0, 4, 8, 15))) for _ in range(COUNT)]
    either = play(Auto(TREES[name], fuses=False), drafts, TREES[name], 0, looked_up).milliseconds
    assert either / in_trees(name, drafts, looked_up) > 1.1


@each_table
def test_a_copy_is_several_times_as_fast(name: str) -> None:
    copy = [RecordedLookup(32, 15, 15)] * COUNT
    assert took(name, None) / took(name, None, copy) > 3


def recorded() -> list[tuple[DraftRecording, tuple[list[int], list[int]]]]:
    """Every fourth answer, with its prompt and tokens."""
    return list(zip(recorded_drafts(), recorded_texts(), strict=True))[::4]


@each_table
def test_free_text_is_written_as_fast_as_ever(name: str) -> None:
    table = TABLES[name]
    drafter_alone, both = Auto(table), Auto(table)
    before = now = 0.0
    for recording, (prompt, answer) in recorded():
        assert len(recording.anchors) == len(answer) - 1
        found = lookups(prompt, answer, recording.anchors)
        for policy in (drafter_alone, both):
            policy.begin()
        before += play(drafter_alone, recording.anchors, table, recording.prompt_length).milliseconds
        now += play(both, recording.anchors, table, recording.prompt_length, found).milliseconds
    assert before / now >= 0.99


@pytest.mark.parametrize("name", TREES)
def test_free_text_is_written_as_fast_as_ever_in_shared_trees(name: str) -> None:
    before = now = 0.0
    for recording, (prompt, answer) in recorded():
        found = lookups(prompt, answer, recording.anchors)
        before += in_trees(name, recording.blocks)
        now += in_trees(name, recording.blocks, found)
    assert before / now >= 0.99
