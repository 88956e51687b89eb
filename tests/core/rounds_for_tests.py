"""Rounds that obey the vocabulary's rules, made by hypothesis: importing that takes a program longer than it runs."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.events import Step
from support.events_for_tests import make_step


@st.composite
def rounds(draw: st.DrawFn) -> list[Step]:
    """A turn's rounds: a plain first token, then speculative ones."""
    steps = [make_step(0, 0, index=0, time=0.05, text=draw(st.text(max_size=4)))]
    for index in range(1, draw(st.integers(1, 30))):
        drafted = draw(st.integers(1, 15))
        accepted = draw(st.integers(0, drafted))
        ending = draw(st.sampled_from(["auto", "stop"]))
        text = draw(st.text(max_size=4))
        steps.append(
            make_step(accepted, drafted, ending=ending, index=index, time=round(0.05 + 0.03 * index, 6), text=text)
        )
    return steps
