"""Trees in traces: they come back as they were, at few bytes; files without them are what they were before."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.core.rounds.packing import Packer
from dflash_tui.core.sessions.sessions import SessionLog, load_session
from dflash_tui.core.traces.bundled import find_trace
from dflash_tui.core.traces.format import FORMAT_VERSION, MAGIC, TREE_VERSION
from dflash_tui.core.traces.frames import FrameWriter
from dflash_tui.core.traces.reader import TraceError, read_trace
from engine.events import EmittedToken, Event, PrefillDone, Step, TreeToken, TurnFinished, TurnStarted
from tests.core.events_for_tests import Choice, make_step, make_tree_step
from tests.core.traces.steps import tree_steps
from tests.core.traces.test_hostile_traces import FIRST, STARTED, Steps, file_of, packed
from tests.core.traces.test_traces import READY, SETTINGS, read, recorded
from tests.pace import examples, sampled


def run_of(*steps: Step) -> list[Event]:
    text = "".join(token.text for step in steps for token in step.emitted)
    return [READY, TurnStarted(1, 40, 0, SETTINGS, "go"), PrefillDone(1, 5.0), *steps, TurnFinished(1, "stop", text)]


CHAINS = [make_step(index % 16, 15, index=index, time=index / 100) for index in range(1, 6)]
TREES = [
    make_tree_step([place * index % 4 // 2 for place in range(6)], rows=2 + index % 15, index=index, time=index / 100)
    for index in range(6, 40)
]


def first_line(data: bytes) -> bytes:
    return data[: data.index(b"\n")]


def test_only_files_with_a_tree_say_so(tmp_path: Path) -> None:
    chains, trees = recorded(run_of(*CHAINS), tmp_path / "a"), recorded(run_of(*CHAINS, *TREES), tmp_path / "b")
    assert first_line(chains) == MAGIC + b"%d" % FORMAT_VERSION
    assert first_line(trees) == MAGIC + b"%d" % TREE_VERSION
    assert list(read(trees).events()) == run_of(*CHAINS, *TREES)


def test_a_file_says_that_it_has_trees_before_it_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at any moment, the program leaves no tree that an older one would take for something else."""
    seen: list[bytes] = []
    step = FrameWriter.step
    path = tmp_path / "run.dft"

    def watched(frames: FrameWriter, event: Step) -> None:
        seen.append(first_line(path.read_bytes()))
        step(frames, event)

    monkeypatch.setattr(FrameWriter, "step", watched)
    recorded(run_of(*CHAINS, *TREES), path)
    versions = [int(line.removeprefix(MAGIC)) for line in seen]
    assert versions == [FORMAT_VERSION] * len(CHAINS) + [TREE_VERSION] * len(TREES)


def test_a_trace_with_trees_cut_anywhere_replays_up_to_the_cut(tmp_path: Path) -> None:
    """At every third byte, outside of CI every twelfth; ``test_traces`` cuts one without trees at more."""
    events = run_of(*CHAINS, *TREES)
    data = recorded(events, tmp_path / "run.dft")
    read_before, lengths = 0, set()
    for length in sampled(range(0, len(data), 3), 4):
        try:
            trace = read(data[:length])
        except TraceError:
            assert read_before == 0
            continue
        copies = list(trace.events())
        assert trace.problem is not None and "cut short" in trace.problem
        assert copies == events[: len(copies)] and len(copies) >= read_before
        read_before = len(copies)
        lengths.add(read_before)
    assert read_before == len(events) and len(lengths) > len(events) / 2


def branching(step: Step, vocabulary: list[tuple[int, str]], number: random.Random) -> Step:
    """What a round of a real answer would be if further choices of its positions had been verified with the first."""
    choices: list[list[Choice]] = []
    for token in step.draft:
        choices.append([(token.id, token.text, token.probability)])
        left = 1 - token.probability
        for other in number.sample([piece for piece in vocabulary if piece[0] != token.id], 3):
            choices[-1].append((*other, round(left * 0.5, 3)))
            left *= 0.5
    said = [0] * step.num_accepted + number.choice([[9], [1, 0, 0, 9]])
    made = make_tree_step(said, choices, own=step.emitted[-1])
    return replace(made, index=step.index, time=step.time, context_length=step.context_length)


def test_answers_of_trees_take_at_most_twelve_bytes_a_token(tmp_path: Path) -> None:
    number, honest = random.Random(5), list(read_trace(find_trace("html")).steps)
    vocabulary = list({token.id: (token.id, token.text) for step in honest for token in step.draft}.values())
    steps = [branching(step, vocabulary, number) if step.draft else step for step in honest if step.turn == 1]
    data = recorded(run_of(*steps), tmp_path / "run.dft")
    assert list(read(data).steps) == steps
    assert sum(any(token.choice for token in step.tree) for step in steps) > 50
    assert len(data) / sum(len(step.emitted) for step in steps) <= 12


def test_a_conversation_on_disk_keeps_its_trees(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    log.user(1, "go")
    events = run_of(*CHAINS, *TREES)
    for event in events:
        log.record(event)
    log.close()
    (turn,) = load_session(log.path).turns
    found = turn.events()
    assert found is not None and [each for each in found if isinstance(each, Step)] == [*CHAINS, *TREES]
    lines = log.path.read_text().splitlines()
    assert sum('"tree_step":' in line for line in lines) == len(TREES)
    assert sum('"step":' in line for line in lines) == len(CHAINS)


# What nobody honest wrote

FRAMES: tuple[Callable[..., bytes], ...] = (lambda *steps: Steps().frame(*steps), packed)
"""Of coded steps, and of packed ones."""
GOOD = replace(make_tree_step((0, 1, 0), rows=9), index=1)


def changed(row: int, **fields: int) -> Step:
    """``GOOD``, with another token in its tree."""
    token = replace(GOOD.tree[row - 1], **fields)  # type: ignore[arg-type]
    return replace(GOOD, tree=(*GOOD.tree[: row - 1], token, *GOOD.tree[row:]))


HOSTILE = {
    "behind itself": changed(4, parent=4),
    "behind one that comes later": changed(2, parent=5),
    "a cycle": replace(changed(2, parent=3), num_accepted=0, emitted=GOOD.emitted[-1:]),
    "behind what there is not": changed(3, parent=99),
    "behind nothing far away": changed(3, parent=2**40),
    "deeper than the draft": replace(GOOD, draft=GOOD.draft[:1], num_accepted=0, emitted=GOOD.emitted[-1:]),
    "the same choice twice": changed(6, parent=0, choice=0, depth=1),
    "the same token twice": replace(GOOD, tree=(*GOOD.tree[:-1], TreeToken(0, 1, 7, GOOD.tree[0].id, "z", 0.1))),
    "more choices than drafts have": changed(8, choice=300),
    "narrower than its tree": replace(GOOD, verify_width=3),
    "wider than its tree": replace(GOOD, verify_width=2**40),
    "more accepted than kept": replace(GOOD, num_accepted=5),
    "accepted what is not in the tree": replace(
        GOOD, emitted=(*GOOD.emitted[:2], EmittedToken(77, "?", "accepted")), num_accepted=3
    ),
}


@pytest.mark.parametrize("frame_of", FRAMES)
@pytest.mark.parametrize("name", HOSTILE)
def test_trees_that_are_none_end_the_trace(name: str, frame_of: Callable[..., bytes]) -> None:
    good = read(file_of(STARTED, frame_of(FIRST, Packer().pack(GOOD))))
    assert len(good.steps) == 2 and good.steps[1] == GOOD
    trace = read(file_of(STARTED, frame_of(FIRST, Packer().pack(HOSTILE[name]))))
    assert len(trace.steps) == 1 and trace.problem is not None and "damaged" in trace.problem


def test_a_packed_tree_of_absurd_size_ends_the_trace() -> None:
    wide = replace(GOOD, tree=tuple(TreeToken(0, 1, choice, choice, "x", 0.5) for choice in range(255)) * 2)
    for each in (wide, changed(8, choice=2**40)):
        trace = read(file_of(STARTED, packed(FIRST, Packer().pack(each))))
        assert len(trace.steps) == 1 and trace.problem is not None and "damaged" in trace.problem


@pytest.mark.parametrize("frame_of", FRAMES)
@given(data=st.data())
@settings(max_examples=examples(100))
def test_a_flipped_byte_never_raises_anything_else(frame_of: Callable[..., bytes], data: st.DataObject) -> None:
    packer = Packer()
    whole = bytearray(file_of(STARTED, frame_of(*(packer.pack(step) for step in TREES[:10]))))
    place = data.draw(st.integers(len(file_of(STARTED)), len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    try:
        trace = read(bytes(whole))
    except TraceError:
        return
    list(trace.events())


@given(st.lists(tree_steps(), min_size=1, max_size=12))
@settings(max_examples=examples(60))
def test_packed_or_coded_a_tree_comes_back(steps: list[Step]) -> None:
    steps = [replace(step, turn=1, time=0.0) for step in steps]
    for frame_of in FRAMES:
        packer = Packer()
        trace = read(file_of(STARTED, frame_of(*(packer.pack(step) for step in steps))))
        assert list(trace.steps) == steps
