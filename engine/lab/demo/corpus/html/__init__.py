"""Single-file HTML pages: a drone swarm and its cousins.

`generate` draws a request and the page that answers it; `check` judges a model's answer to it.
"""

from __future__ import annotations

import random
from typing import Any

from engine.lab.demo.corpus.html.checker import check, extract_page
from engine.lab.demo.corpus.html.drones import DRONES
from engine.lab.demo.corpus.html.flights import FLIGHTS
from engine.lab.demo.corpus.html.patterns import PATTERNS
from engine.lab.demo.corpus.html.plan import BACKGROUNDS, COLORS, Family, Plan, draw_plan
from engine.lab.demo.corpus.html.prompts import announce, write_prompt
from engine.lab.demo.corpus.html.scenes import SCENES
from engine.lab.demo.corpus.html.widgets import WIDGETS
from engine.lab.demo.corpus.sample import Sample

__all__ = ["FAMILIES", "check", "extract_page", "generate", "generate_family"]

FAMILIES: tuple[Family, ...] = (DRONES, *FLIGHTS, *SCENES, *PATTERNS, *WIDGETS)
_WEIGHTS = [family.weight for family in FAMILIES]


def generate(rng: random.Random) -> Sample:
    """One request for a page and its answer, from any family."""
    return generate_family(rng, rng.choices(FAMILIES, _WEIGHTS)[0])


def generate_family(rng: random.Random, family: Family) -> Sample:
    plan = draw_plan(rng, family)
    prompt = write_prompt(rng, plan)
    response = f"{announce(rng, plan)}\n\n```html index.html\n{family.write(plan, rng)}\n```"
    return Sample("html", prompt, response, plan.combination, _facts(plan))


def _facts(plan: Plan) -> dict[str, Any]:
    """What the checker needs: the requested slots, with colours as the page writes them."""
    slots: dict[str, Any] = {slot: _fact(plan, slot) for slot in plan.asked}
    if plan.family.things == "step" and "count" in slots:
        slots["step"] = slots.pop("count")
    return {"family": plan.family.name, "script": plan.family.script, "canvas": plan.family.canvas, "slots": slots}


def _fact(plan: Plan, slot: str) -> Any:
    match slot:
        case "color":
            return COLORS.get(plan.color, plan.color)
        case "background":
            return BACKGROUNDS[plan.background]
        case "count":
            return plan.count
        case "trails":
            return plan.trails
        case _:
            return plan.value(slot)
