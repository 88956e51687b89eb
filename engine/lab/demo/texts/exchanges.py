"""Reads what the bundled pair was trained on and is asked: exchanges by domain, and held-out questions.

``data/DOMAIN.xz`` holds exchanges that the target was trained on, a line each: ``[prompt, answer]`` and, where they
apply, ``{"before": [[prompt, answer], ...], "opens": true}``. ``data/held_out.xz`` holds questions that no training
saw, each with what a right answer must hold (``checks``). All are lines of JSON, compressed by xz; README.md says where
they come from."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from .conversation import TextTurn, TrainingText

Domain = Literal["code", "html", "maths", "explain", "chat", "unknown", "screen", "follow", "edit"]
DOMAINS: tuple[Domain, ...] = get_args(Domain)
Asking = Literal["evaluate", "probe", "edits", "headline"]
"""The purpose of a held-out question: the report, the drafter's figures while it trains, ``measure.engine.edits``, or
the prompts that demonstrations show."""

DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True, slots=True)
class TextExchange:
    """A prompt and the answer that the target is trained to give."""

    domain: Domain
    prompt: str
    response: str
    before: tuple[TextTurn, ...] = ()
    """Earlier exchanges to which the prompt refers."""
    opens: bool = False
    """Whether it can only begin a conversation, because the answer says that nothing came before."""


@dataclass(frozen=True, slots=True)
class HeldOutQuestion:
    """A held-out prompt, as somebody might type it, and the demands on an answer to it."""

    domain: Domain
    conversation: TrainingText
    """The question alone, behind what it refers to."""
    second: TrainingText
    """The question as a later turn, behind an exchange about something else; ``conversation`` where it can only begin
    one."""
    right: dict[str, Any]
    """The demands by which ``checks.verdicts`` judges an answer."""

    @property
    def prompt(self) -> str:
        return self.conversation.turns[-1].prompt


@cache
def read_exchanges(domain: Domain) -> tuple[TextExchange, ...]:
    """All exchanges of a domain. Each process reads them once: workers are not sent them."""
    return tuple(
        TextExchange(domain, prompt, response, _turns(further), any(each.get("opens", False) for each in further))
        for prompt, response, *further in _lines(DATA / f"{domain}.xz")
    )


@cache
def read_questions(asking: Asking) -> dict[Domain, tuple[HeldOutQuestion, ...]]:
    """The held-out questions for one purpose, by domain."""
    found: dict[Domain, list[HeldOutQuestion]] = {domain: [] for domain in DOMAINS}
    for line in _lines(DATA / "held_out.xz"):
        if line["for"] == asking:
            turns = (*_turns([line]), TextTurn(line["prompt"], ""))
            alone = TrainingText(turns)
            first = line.get("first")
            second = TrainingText((TextTurn(*first), *turns)) if first else alone
            found[line["domain"]].append(HeldOutQuestion(line["domain"], alone, second, line.get("right", {})))
    return {domain: tuple(questions) for domain, questions in found.items()}


def _turns(further: list[dict[str, Any]]) -> tuple[TextTurn, ...]:
    return tuple(TextTurn(*exchange) for each in further for exchange in each.get("before", ()))


def _lines(path: Path) -> Iterator[Any]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)
