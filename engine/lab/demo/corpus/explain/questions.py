"""How people ask for an explanation, in every kind and form."""

from __future__ import annotations

import random
from typing import Literal

from engine.lab.demo.corpus.wording import phrase, pick

Kind = Literal["what", "how", "why", "picture"]
Form = Literal["plain", "short", "long", "child", "sentence", "bullets"]

KINDS: tuple[Kind, ...] = ("what", "what", "what", "how", "how", "why", "picture")
FORMS: tuple[Form, ...] = ("plain", "plain", "plain", "plain", "short", "long", "child", "sentence", "bullets")

_ASK: dict[Kind, tuple[str, ...]] = {
    "what": (
        "What is {x}", "Explain {x}", "Tell me about {x}", "Can you explain {x}", "What does {bare} mean", "Define {x}",
        "Describe {x}", "What do you know about {x}", "Could you tell me what {x} is", "I want to know what {x} is",
        "Please explain {x}", "What exactly is {x}", "{bare}", "What's {x}", "Introduce {x} to me", "explain {bare}",
        "I do not understand {x}, what is it", "Hello, can you explain {x}", "Teach me about {x}",
        "What is meant by {x}",
    ),
    "how": (
        "How does {x} work", "Explain how {x} works", "How is {x} used", "Can you explain how {x} works",
        "how {bare} works",
        "Tell me how {x} works", "Show me how {x} works", "How exactly does {x} work", "How does {x} do its work",
        "I want to understand how {x} works", "Describe how {x} works", "In what way does {x} work", "How {x} works",
    ),
    "why": (
        "Why is {x} useful", "Why do we need {x}", "What is {x} good for", "Why does {x} matter", "Why {bare}",
        "Why is {x} important", "What is the point of {x}", "Explain why {x} matters", "Why would I use {x}",
        "What are the benefits of {x}", "Why should I care about {x}", "What is the use of {x}",
        "Tell me why {x} is useful",
    ),
    "picture": (
        "Give me a picture for {x}", "What is {x} like", "Compare {x} with something from daily life",
        "Give me an analogy for {x}", "Explain {x} with an analogy", "Can you give me a comparison for {x}",
        "What could I compare {x} to", "Help me picture {x}", "Explain {x} with an everyday example",
        "analogy for {bare}",
        "Describe {x} with a picture", "How can I imagine {x}",
    ),
}  # fmt: skip

_FORM: dict[Form, tuple[str, ...]] = {
    "plain": ("",),
    "short": (" [briefly|in short|in a few words|quickly|in two sentences|shortly]", ". Keep it short", ". Be brief"),
    "long": (" [in detail|at length|thoroughly|in depth|in five sentences]", ". I want a long answer",
    ". Tell me more"),
    "child": (
        " [to a child|for a child|for kids|to a five year old|to a beginner]", " in [simple|easy] words",
        " like I am five", ". I am ten years old",
    ),
    "sentence": (" in [one|a single|1] sentence", ". One sentence is enough", " in one line",
    ". Answer in one sentence"),
    "bullets": (
        " [as|in|with] [three|3] bullet points", " as a list[ of three points|]", " in bullet points",
        ". Use three bullets",
    ),
}  # fmt: skip

_COMPARE = (
    "What is the difference between {x} and {y}?", "Compare {x} and {y}.", "{bx} vs {by}", "{bx} or {by}?",
    "How does {x} differ from {y}?", "What distinguishes {x} from {y}?", "Is {x} the same as {y}?",
    "Explain the difference between {x} and {y}.", "What is {x} compared to {y}?", "difference {bx} {by}",
)  # fmt: skip

_QUESTION_WORDS = ("what", "how", "why", "can", "could", "in", "hello")


def _bare(term: str) -> str:
    """A term without its article."""
    first, _, rest = term.partition(" ")
    return rest if first in ("a", "an", "the") else term


def question(rng: random.Random, term: str, kind: Kind, form: Form) -> str:
    """A request for an explanation of a term ("a hash table")."""
    ask = phrase(rng, pick(rng, _ASK[kind]), x=term, bare=_bare(term))
    wish = phrase(rng, pick(rng, _FORM[form]))
    if ask == _bare(term) and not wish:
        return ask
    end = "?" if ask.lower().startswith(_QUESTION_WORDS) else "."
    if wish.startswith("."):
        return f"{ask}{end}{wish[1:]}."
    return f"{ask}{wish}{end}"


def comparison(rng: random.Random, first: str, second: str) -> str:
    """A question about the difference between two terms."""
    return phrase(rng, pick(rng, _COMPARE), x=first, y=second, bx=_bare(first), by=_bare(second))
