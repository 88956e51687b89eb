"""Two versions side by side: what was asked for, what came of it, and where the texts part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from engine.events import TurnStatistics

from ..figures.labels import TOKENS_PER_ROUND
from ..figures.statistics import accepted_share
from .chat import Exchange
from .models import short_name

SETTINGS = {
    "block_size": "block", "temperature": "temperature", "seed": "seed", "speculation": "speculation",
    "thinking": "thinking", "top_p": "top-p", "top_k": "top-k", "max_new_tokens": "longest answer",
}  # fmt: skip
NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Compared:
    """A line of the comparison."""

    name: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        return self.left != self.right


def compare(left: Exchange, right: Exchange) -> list[Compared]:
    """Settings and figures of two versions: of the settings that were used, and what is known of both."""
    lines = [Compared("drafter", _drafter(left), _drafter(right))]
    if left.target != right.target:
        lines.insert(0, Compared("target", left.target or NOT_KNOWN, right.target or NOT_KNOWN))
    if left.system != right.system:
        lines.append(Compared("system prompt", left.system or "none", right.system or "none"))
    for field, name in SETTINGS.items():
        told = [_said(each.settings.get(field, NOT_KNOWN)) for each in (left, right)]
        if field in ("block_size", "temperature", "seed", "speculation") or told[0] != told[1]:
            lines.append(Compared(name, *told))
    return lines + [Compared(name, figure(left), figure(right)) for name, figure in _FIGURES.items()]


def settings_apart(exchange: Exchange, other: Exchange) -> str:
    """In few words, what this version was decoded with that the other was not; empty for nothing."""
    changed = [line for line in compare(exchange, other) if line.differs and line.name in _CHOSEN]
    return " · ".join(f"{line.name} {line.left}" for line in changed)


def models_apart(exchanges: Iterable[Exchange]) -> dict[int, str]:
    """Who answered each question, by its number; nothing where one model answered all of them."""
    names = {exchange.number: short_name(exchange.target) for exchange in exchanges if exchange.target}
    return names if len(set(names.values())) > 1 else {}


def parting(left: str, right: str) -> str:
    """In words, how far two texts are the same."""
    if left == right:
        return "The texts are the same, character for character."
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
    if not same:
        return "The texts differ from their first character on."
    return f"The first {same} characters are the same."


def _drafter(exchange: Exchange) -> str:
    return exchange.drafter or ("none" if exchange.target else NOT_KNOWN)


def _acceptance(figures: TurnStatistics) -> str:
    if figures.num_spec_steps:
        return f"{figures.mean_acceptance_length:.2f}"
    return accepted_share(figures) or "–"


def _said(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _figure(of: Callable[[Exchange], str]) -> Callable[[Exchange], str]:
    return lambda exchange: of(exchange) if exchange.figures.num_tokens else "–"


_FIGURES: dict[str, Callable[[Exchange], str]] = {
    "tokens": _figure(lambda each: str(each.figures.num_tokens)),
    "tok/s": _figure(lambda each: f"{each.figures.tok_s:.0f}"),
    TOKENS_PER_ROUND.name: _figure(lambda each: _acceptance(each.figures)),
    "rounds": _figure(lambda each: str(each.figures.num_spec_steps) if each.figures.num_spec_steps else "–"),
    "first token": _figure(lambda each: f"{each.figures.ttft_ms:.0f} ms"),
    "prompt": _figure(lambda each: f"{each.figures.num_prompt_tokens}, {each.figures.num_reused_tokens} reused"),
    "ended": lambda each: each.reason or "within the answer",
}
_CHOSEN = {"drafter", "system prompt", *SETTINGS.values()}
