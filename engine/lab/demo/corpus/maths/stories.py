"""Word problems: a plan of computation, a scene around it, and the sentence that links the two."""

from __future__ import annotations

import random

from engine.lab.demo.corpus.maths.answers import answered
from engine.lab.demo.corpus.maths.numbers import PLANS
from engine.lab.demo.corpus.maths.scenes import NAMES, SCENES
from engine.lab.demo.corpus.sample import Sample
from engine.lab.demo.corpus.wording import phrase, pick


def generate(rng: random.Random) -> Sample:
    """One word problem; the answer names the operation, works it out and states the result with its unit."""
    scene = pick(rng, SCENES)
    plan = PLANS[scene.plan]
    numbers = plan.draw(rng)
    name = pick(rng, NAMES)
    other = pick(rng, NAMES)
    while other == name:
        other = pick(rng, NAMES)
    things = pick(rng, scene.things)
    slots = {"name": name, "other": other, "things": things, **dict(zip("abc", numbers, strict=False))}
    prompt = phrase(rng, pick(rng, scene.problems), **slots)
    opening = phrase(rng, pick(rng, scene.reasons), **slots)
    return answered(prompt, opening, plan.solve(numbers), scene.unit.format(**slots))
