"""Short explanations: DFlash, language models, the machine below them and computing basics.

The question decides the answer: its kind (what, how, why, picture) says which sentence comes first, its form (short,
long, for a child, one sentence, bullet points) says which sentences there are.
"""

from __future__ import annotations

import random
import re
from typing import Any

from engine.lab.demo.corpus.explain.choosing import CHOOSING
from engine.lab.demo.corpus.explain.computing import COMPUTING
from engine.lab.demo.corpus.explain.decoding import DECODING
from engine.lab.demo.corpus.explain.machines import MACHINES
from engine.lab.demo.corpus.explain.models import MODELS
from engine.lab.demo.corpus.explain.questions import FORMS, KINDS, Form, Kind, comparison, question
from engine.lab.demo.corpus.explain.structures import STRUCTURES
from engine.lab.demo.corpus.explain.topic import Topic
from engine.lab.demo.corpus.explain.web import WEB
from engine.lab.demo.corpus.sample import Sample
from engine.lab.demo.corpus.wording import phrase, pick

__all__ = ["COMPARED", "TOPICS", "check", "generate"]

TOPICS: tuple[Topic, ...] = DECODING + MODELS + CHOOSING + MACHINES + COMPUTING + STRUCTURES + WEB
_WEIGHTED: tuple[Topic, ...] = TOPICS + DECODING  # this program's own subject is asked about most

_ORDER: dict[Kind, tuple[str, ...]] = {
    "what": ("what", "how", "why", "picture", "note"),
    "how": ("how", "what", "note", "why", "picture"),
    "why": ("why", "what", "note", "how", "picture"),
    "picture": ("picture", "what", "why", "how", "note"),
}

_BY_NAME = {topic.name: topic for topic in TOPICS}
COMPARED: tuple[tuple[str, str], ...] = (
    ("stack", "queue"), ("drafter", "target"), ("python_list", "dictionary"), ("cpu", "gpu"), ("tree", "graph"),
    ("greedy_decoding", "sampling"), ("autoregressive", "speculative_decoding"), ("linked_list", "python_list"),
    ("loop", "recursion"), ("html", "css"), ("class", "function"), ("temperature", "top_p"), ("logits", "softmax"),
    ("dflash", "speculative_decoding"), ("attention", "sliding_window"), ("bonus_token", "rejected_token"),
    ("block_size", "verify_width"), ("cache", "kv_cache"), ("test", "debugging"), ("http", "html"),
    ("json", "database"), ("hash_table", "dictionary"), ("variable", "parameter"), ("token", "embedding"),
    ("router", "attention"), ("dflash", "autoregressive"), ("algorithm", "function"), ("training", "prefill"),
    ("binary_search", "sorting"),
)  # fmt: skip
COMPARISON_SHARE = 0.06


def generate(rng: random.Random) -> Sample:
    """One question about a topic, or about two of them, and its answer of one to five sentences."""
    return _comparison(rng) if rng.random() < COMPARISON_SHARE else _explanation(rng)


def _comparison(rng: random.Random) -> Sample:
    """The difference between two topics: what the one is, then what the other is."""
    first, second = (_BY_NAME[name] for name in pick(rng, COMPARED))
    if rng.random() < 0.5:
        first, second = second, first
    response = " ".join(phrase(rng, pick(rng, topic.what)) for topic in (first, second))
    facts = {"keywords": [*first.keywords, *second.keywords], "at_least": 3, "form": "plain", "sentences": 2}
    prompt = comparison(rng, first.term, second.term)
    return Sample("explain", prompt, response, f"explain/{first.name}/against/{second.name}", facts)


def _explanation(rng: random.Random) -> Sample:
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
    """Verdicts on an answer.

    "on_topic": it has two of the topic's four keywords (three of both topics' in a comparison); "ends": in punctuation;
    "form": as many sentences or bullet points as asked for.
    """
    text = response.strip()
    found = sum(keyword in text.lower() for keyword in check.get("keywords", ()))
    return {
        "on_topic": found >= check.get("at_least", 2),
        "ends": text.endswith((".", "!", "?")),
        "form": _has_form(text, check),
    }


def _has_form(text: str, facts: dict[str, Any]) -> bool:
    lines = text.splitlines()
    if facts.get("form") == "bullets":
        return len(lines) == facts.get("sentences") and all(line.startswith("- ") for line in lines)
    return len(lines) == 1 and len(re.findall(r"[.!?](?= [A-Z]|$)", text)) == facts.get("sentences")
