"""Short explanations: DFlash, language models, the machine below them and computing basics.

The question decides the answer: its kind (what, how, why, picture) says which sentence comes first, its form (short,
long, for a child, one sentence, bullet points) says which sentences there are.
"""

from __future__ import annotations

import random
import re
from typing import Any

from engine.demo.corpus.explain.choosing import CHOOSING
from engine.demo.corpus.explain.computing import COMPUTING
from engine.demo.corpus.explain.decoding import DECODING
from engine.demo.corpus.explain.machines import MACHINES
from engine.demo.corpus.explain.models import MODELS
from engine.demo.corpus.explain.questions import FORMS, KINDS, Form, Kind, question
from engine.demo.corpus.explain.structures import STRUCTURES
from engine.demo.corpus.explain.topic import Topic
from engine.demo.corpus.explain.web import WEB
from engine.demo.corpus.sample import Sample
from engine.demo.corpus.wording import phrase, pick

__all__ = ["TOPICS", "check", "generate"]

TOPICS: tuple[Topic, ...] = DECODING + MODELS + CHOOSING + MACHINES + COMPUTING + STRUCTURES + WEB
_WEIGHTED: tuple[Topic, ...] = TOPICS + DECODING  # this program's own subject is asked about most

_ORDER: dict[Kind, tuple[str, ...]] = {
    "what": ("what", "how", "why", "picture", "note"),
    "how": ("how", "what", "note", "why", "picture"),
    "why": ("why", "what", "note", "how", "picture"),
    "picture": ("picture", "what", "why", "how", "note"),
}


def generate(rng: random.Random) -> Sample:
    """One question about a topic and its answer of one to five sentences."""
    topic = pick(rng, _WEIGHTED)
    kind, form = pick(rng, KINDS), pick(rng, FORMS)
    slots = _slots(kind, form)
    sentences = [phrase(rng, pick(rng, topic.slot(slot))) for slot in slots]
    response = "\n".join(f"- {text}" for text in sentences) if form == "bullets" else " ".join(sentences)
    facts = {"keywords": list(topic.keywords), "form": form, "sentences": len(sentences)}
    combination = f"explain/{topic.name}/{kind}/{form}"
    return Sample("explain", question(rng, topic.term, kind, form), response, combination, facts)


def _slots(kind: Kind, form: Form) -> tuple[str, ...]:
    order = _ORDER[kind]
    match form:
        case "sentence":
            return order[:1]
        case "short":
            return order[:2]
        case "plain" | "bullets":
            return order[:3]
        case "long":
            return order
        case "child":
            return ("picture", "what") if kind == "picture" else ("picture", kind)


def check(response: str, check: dict[str, Any]) -> dict[str, bool]:
    """Verdicts: "on_topic" (two of four keywords), "ends" (in punctuation), "form" (sentences or bullets as asked)."""
    text = response.strip()
    found = sum(keyword in text.lower() for keyword in check.get("keywords", ()))
    return {"on_topic": found >= 2, "ends": text.endswith((".", "!", "?")), "form": _has_form(text, check)}


def _has_form(text: str, facts: dict[str, Any]) -> bool:
    lines = text.splitlines()
    if facts.get("form") == "bullets":
        return len(lines) == facts.get("sentences") and all(line.startswith("- ") for line in lines)
    return len(lines) == 1 and len(re.findall(r"[.!?](?= [A-Z]|$)", text)) == facts.get("sentences")
