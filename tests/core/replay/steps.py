"""Steps as hypothesis makes them: everything that the vocabulary allows, likely or not."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from engine.events import (
    DraftToken,
    EmittedToken,
    EngineReady,
    Event,
    Match,
    PrefillDone,
    Step,
    TreeToken,
    TurnFinished,
    TurnStarted,
    WidthChoice,
)
from engine.rounds.rows import CHANNELS, SOURCES, VERDICTS
from support.events_for_tests import make_step

READY = EngineReady("target", "drafter", "cpu", "float32", 16, 4096, 1.25, "Hello", "sdpa", "sdpa", "0a1b", "2c3d")
SETTINGS = {"block_size": 16, "temperature": 0.5, "seed": 3}

numbers = st.integers(0, 2**40)
token_ids = st.integers(0, 262_143)
texts = st.text(max_size=6)
probabilities = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)
milliseconds = st.integers(0, 10**9).map(lambda whole: whole / 1000)
seconds = st.integers(0, 10**7).map(lambda whole: whole / 10**6)
temperatures = st.floats(0, 2)
drafts = st.builds(DraftToken, token_ids, texts, probabilities, st.none() | probabilities)
emissions = st.builds(
    EmittedToken, token_ids, texts, st.sampled_from(VERDICTS), st.sampled_from(CHANNELS), probabilities
)
choices = st.none() | st.builds(WidthChoice, probabilities, milliseconds, st.integers(0, 10**6).map(float))


@st.composite
def tree_steps(draw: st.DrawFn) -> Step:
    """One step whose draft is a tree, of which a path or a part of one is kept."""
    draft = tuple(draw(st.lists(drafts, min_size=1, max_size=15)))
    tree: list[TreeToken] = []
    for _ in range(draw(st.integers(1, 15))):
        depths = [0, *(token.depth for token in tree)]
        parent = draw(st.sampled_from([row for row, depth in enumerate(depths) if depth < len(draft)]))
        place = (depths[parent] + 1, draw(st.integers(0, 20)))
        alike = [(each.id, each.text, each.probability) for each in tree if (each.depth, each.choice) == place]
        alike += [(each.id, each.text, each.probability) for each in draft[place[0] - 1 : place[0]] if place[1] == 0]
        what = draw(st.sampled_from([*alike, draw(st.tuples(token_ids, texts, probabilities))]))
        if not any(each.parent == parent and (each.choice == place[1] or each.id == what[0]) for each in tree):
            tree.append(TreeToken(parent, *place, *what))
    channel, row = draw(st.sampled_from(CHANNELS)), 0
    kept: list[EmittedToken] = []
    while below := [place for place, token in enumerate(tree, 1) if token.parent == row]:
        if not draw(st.booleans()):
            break
        row = draw(st.sampled_from(below))
        token, given = tree[row - 1], draft[tree[row - 1].depth - 1].target_probability
        given = draw(probabilities) if token.choice or given is None else given
        text = draw(st.sampled_from([token.text, token.text, "another"]))
        kept.append(EmittedToken(token.id, text, "accepted", channel, given))
    step = draw(steps())
    own = tuple(draw(st.lists(emissions, max_size=3)))
    return replace(
        step, draft=draft, tree=tuple(tree), verify_width=len(tree) + 1, num_accepted=len(kept), emitted=(*kept, *own)
    )


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """One step; about half of them keep a part of their draft, as real ones do."""
    draft = tuple(draw(st.lists(drafts, max_size=15)))
    channel = draw(st.sampled_from(CHANNELS))
    kept = tuple(
        EmittedToken(token.id, token.text, "accepted", channel, token.target_probability)
        for token in draft[: draw(st.integers(0, 15))]
        if token.target_probability is not None
    )
    emitted = (*kept, *draw(st.lists(emissions, max_size=3)))
    return Step(
        turn=draw(numbers),
        index=draw(numbers),
        time=draw(seconds),
        draft=draft,
        num_accepted=draw(st.sampled_from([len(kept), 0, min(len(draft), 7)])),
        emitted=emitted,
        verify_width=draw(st.sampled_from([len(draft) + 1, 0, 4])),
        choice=draw(choices),
        draft_ms=draw(milliseconds),
        verify_ms=draw(milliseconds),
        total_ms=draw(milliseconds),
        context_length=draw(numbers),
        block_size=draw(st.integers(0, 64)),
        temperature=draw(temperatures),
    )


@st.composite
def partial_steps(draw: st.DrawFn) -> Step:
    """One step as a server tells it: any of what may be unknown is."""
    step = draw(steps() | tree_steps())
    draft = () if step.tree else step.draft
    return replace(
        step,
        draft_ms=draw(st.none() | milliseconds),
        verify_ms=draw(st.none() | milliseconds),
        draft=step.draft if step.tree else tuple(draw(st.builds(_forgotten, st.just(token), flags)) for token in draft),
        emitted=tuple(
            replace(token, id=token.id if known or step.tree else None, probability=given)
            for token in step.emitted
            for known, given in [draw(st.tuples(st.booleans(), st.none() | probabilities))]
        ),
    )


flags = st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans())


def _forgotten(token: DraftToken, known: tuple[bool, bool, bool, bool]) -> DraftToken:
    fields = ("id", "text", "probability", "target_probability")
    return replace(token, **{name: None for name, kept in zip(fields, known, strict=True) if not kept})


@st.composite
def sourced_steps(draw: st.DrawFn) -> Step:
    """One step some of whose tokens name who guessed them."""
    step = draw(steps() | tree_steps() | partial_steps())
    named = st.sampled_from(SOURCES)
    return replace(
        step,
        draft=tuple(replace(token, source=draw(named)) for token in step.draft),
        tree=tuple(replace(token, source=draw(named)) for token in step.tree),
        match=draw(st.none() | st.builds(Match, st.integers(1, 64), st.integers(1, 2**18))),
    )


@st.composite
def turns(draw: st.DrawFn) -> list[Step]:
    """Up to 35 rounds, which are more than a block, of up to six kinds: making one takes longer than what is tested."""
    kinds = draw(st.lists(steps() | tree_steps() | partial_steps() | sourced_steps(), min_size=1, max_size=6))
    return draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=35))


def long_run() -> list[Event]:
    steps = [make_step(index % 16, 15, index=index, time=index / 100, text=f" w{index % 7}") for index in range(1, 45)]
    text = "".join(token.text for step in steps for token in step.emitted)
    return [READY, TurnStarted(1, 40, 0, SETTINGS, "go"), PrefillDone(1, 5.0), *steps, TurnFinished(1, "stop", text)]
