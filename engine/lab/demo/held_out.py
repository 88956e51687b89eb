"""Reads what the bundled pair is asked: questions that no training saw. ``data/held_out.xz`` holds them as lines of
JSON; README.md says where they come from."""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from ...commands import Message

Domain = Literal["code", "html", "maths", "explain", "chat", "unknown", "screen", "follow", "edit"]
DOMAINS: tuple[Domain, ...] = get_args(Domain)
Asking = Literal["evaluate", "probe", "edits", "headline"]
"""The purpose of a held-out question: the report, the drafter's figures while it was trained, edits of a file, or the
prompts that demonstrations show."""

DATA = Path(__file__).with_name("data") / "held_out.xz"


@dataclass(frozen=True, slots=True)
class HeldOutQuestion:
    """A held-out prompt, as somebody might type it."""

    domain: Domain
    messages: tuple[Message, ...]
    """What the question refers to, and the question."""

    @property
    def prompt(self) -> str:
        return self.messages[-1].content


@cache
def read_questions(asking: Asking) -> dict[Domain, tuple[HeldOutQuestion, ...]]:
    by_domain: dict[Domain, list[HeldOutQuestion]] = {domain: [] for domain in DOMAINS}
    with lzma.open(DATA, "rt", encoding="utf-8") as file:
        for line in map(json.loads, file):
            if line["for"] == asking:
                before = [
                    message
                    for prompt, answer in line.get("before", ())
                    for message in (Message("user", prompt), Message("assistant", answer))
                ]
                messages = (*before, Message("user", line["prompt"]))
                by_domain[line["domain"]].append(HeldOutQuestion(line["domain"], messages))
    return {domain: tuple(questions) for domain, questions in by_domain.items()}
