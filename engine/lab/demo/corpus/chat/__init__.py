"""Small talk: greetings, who am I, what can I do, thanks, names, a joke; honest about being a tiny model."""

from __future__ import annotations

import random
from typing import Any

from engine.lab.demo.corpus.chat.families import FAMILIES, Family
from engine.lab.demo.corpus.chat.greetings import greeting
from engine.lab.demo.corpus.identity import SELF, SIZE, SUGGESTIONS, TOPICS
from engine.lab.demo.corpus.maths.scenes import NAMES
from engine.lab.demo.corpus.sample import Sample
from engine.lab.demo.corpus.wording import capitalised, phrase, pick

__all__ = ["FAMILIES", "check", "generate"]

CORE_SHARE = 0.4
GREETINGS = 0.12
"""Share of greetings beside their place among the families: they are what everybody types first."""
ANY_SPELLING = 0.7
_GREETING = FAMILIES[0]
_MORE_NAMES = (
    "Alice", "Bob", "Chen", "Dana", "Elif", "Frank", "Gina", "Hana", "Ines", "Jonas", "Kofi", "Linda", "Maria", "Nina",
    "Oskar", "Petra", "Quinn", "Robert", "Sofia", "Theo", "Ursula", "Vera", "Will", "Xenia", "Yusuf", "Zara", "Alex",
    "Bella", "Chris", "Diego", "Erik", "Freya", "George", "Helen", "Igor", "Julia", "Karl", "Laura", "Max", "Nora",
)  # fmt: skip
PEOPLE = NAMES + _MORE_NAMES


def _name_part(rng: random.Random) -> str:
    """A made-up name now and then, so that the model learns to copy names instead of knowing a list."""
    if rng.random() < 0.6:
        return pick(rng, PEOPLE)
    syllables = ("ka", "lo", "mi", "ran", "sel", "ta", "vi", "dor", "ne", "bri", "zu", "fen", "ya", "mar", "eli", "os")
    return capitalised("".join(pick(rng, syllables) for _ in range(rng.randint(2, 3))))


def _variety(family: Family, prompt: str, name: str, core: bool) -> str:
    """What is held out: names where the answer copies one, else one wording; the plainest wordings never."""
    if family.uses_name:
        return name
    return "core" if core else prompt.lower()


def generate(rng: random.Random) -> Sample:
    """One exchange of small talk."""
    family = _GREETING if rng.random() < GREETINGS else pick(rng, FAMILIES)
    core = rng.random() < CORE_SHARE
    name = _name_part(rng)
    prompt = phrase(rng, pick(rng, family.core if core else family.prompts), name=name)
    if family is _GREETING and rng.random() < ANY_SPELLING:
        core, prompt = False, greeting(rng)
    response = phrase(
        rng,
        pick(rng, family.replies),
        name=name,
        size=SIZE,
        self=phrase(rng, pick(rng, SELF), size=SIZE),
        topics=pick(rng, TOPICS),
        idea=pick(rng, SUGGESTIONS),
    )
    keywords = [name.lower()] if family.uses_name else list(family.keywords)
    combination = f"chat/{family.name}/{_variety(family, prompt, name, core)}"
    facts = {"family": family.name, "keywords": keywords}
    return Sample("chat", prompt, capitalised(response), combination, facts, opens=family.opens)


def check(response: str, check: dict[str, Any]) -> dict[str, bool]:
    """Verdicts: "says_something", "ends" (in punctuation), "fits" (one of the family's keywords is there)."""
    text = response.strip().lower()
    return {
        "says_something": bool(text),
        "ends": text.endswith((".", "!", "?")),
        "fits": any(str(keyword) in text for keyword in check.get("keywords", ())),
    }
