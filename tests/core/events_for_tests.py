"""Rounds that obey the vocabulary's rules, made by hypothesis or by hand."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.events import DraftToken, EmittedToken, Step


def make_step(
    accepted: int, drafted: int, *, ending: str = "auto", index: int = 1, time: float = 0.1, text: str = "x"
) -> Step:
    """One round: ``ending`` is corrected, bonus, stop (a stop token among the accepted drafts) or auto."""
    if ending == "auto":
        ending = "bonus" if accepted == drafted else "corrected"
    draft = tuple(DraftToken(i, f"{text}{i}", 0.9) for i in range(drafted))
    kept = tuple(EmittedToken(token.id, token.text, "accepted") for token in draft[:accepted])
    own: tuple[EmittedToken, ...] = ()
    if not drafted:
        own = (EmittedToken(99, text, "plain"),)
    elif ending == "corrected":
        own = (EmittedToken(99, f"{text}!", "corrected"),)
    elif ending == "bonus":
        own = (EmittedToken(98, f"{text}+", "bonus"),)
    return Step(1, index, time, draft, accepted, (*kept, *own), drafted + 1, 1.0, 2.0, 3.0, 50, drafted + 1, 0.0)


@st.composite
def rounds(draw: st.DrawFn) -> list[Step]:
    """A turn's rounds: a plain first token, then speculative ones."""
    steps = [make_step(0, 0, index=0, time=0.05, text=draw(st.text(max_size=4)))]
    for index in range(1, draw(st.integers(1, 30))):
        drafted = draw(st.integers(1, 15))
        accepted = draw(st.integers(0, drafted))
        ending = draw(st.sampled_from(["auto", "stop"]))
        text = draw(st.text(max_size=4))
        steps.append(make_step(accepted, drafted, ending=ending, index=index, time=0.05 + 0.03 * index, text=text))
    return steps
