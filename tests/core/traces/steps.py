"""Steps as hypothesis makes them: everything that the vocabulary allows, likely or not."""

from __future__ import annotations

from hypothesis import strategies as st

from dflash_tui.core.traces.packing import CHANNELS, VERDICTS
from engine.events import DraftToken, EmittedToken, Step, WidthChoice

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


turns = st.lists(steps(), min_size=1, max_size=35)
