"""Questions about the program's own screen: what a colour means, how to save, how to leave.

Answers name verdicts and keys; hues belong to themes, so they say where the legend is.
"""

from __future__ import annotations

import random
from typing import Any

from engine.lab.demo.corpus.chat.families import Family
from engine.lab.demo.corpus.sample import Sample
from engine.lab.demo.corpus.screen.keys import KEYS
from engine.lab.demo.corpus.screen.verdicts import VERDICTS
from engine.lab.demo.corpus.wording import phrase, pick

__all__ = ["FAMILIES", "check", "generate"]

FAMILIES: tuple[Family, ...] = VERDICTS + KEYS
CORE_SHARE = 0.4


def generate(rng: random.Random) -> Sample:
    """One question about the screen and its answer."""
    family = pick(rng, FAMILIES)
    core = rng.random() < CORE_SHARE
    prompt = phrase(rng, pick(rng, family.core if core else family.prompts))
    response = phrase(rng, pick(rng, family.replies))
    # The plainest wordings are never held out.
    combination = "screen/plainest" if core else f"screen/{family.name}/{prompt.lower()}"
    return Sample("screen", prompt, response, combination, {"family": family.name, "keywords": list(family.keywords)})


def check(response: str, check: dict[str, Any]) -> dict[str, bool]:
    """Verdicts: "ends" (in punctuation), "fits" (all of the family's keywords are there)."""
    text = response.strip().lower()
    return {
        "ends": text.endswith((".", "!", "?")),
        "fits": all(str(keyword) in text for keyword in check.get("keywords", ())),
    }
