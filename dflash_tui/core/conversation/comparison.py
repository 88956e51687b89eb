"""Two versions side by side: what was asked for, what came of it, and where the texts part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.commands import ADDED_LATER
from engine.events import TurnStatistics
from engine.speculation.lookup import num_agreed

from ..figures.labels import TOKENS_PER_ROUND, accepted_share
from ..settings.decoding import SETTINGS
from ..text.counted import counted
from .models import short_name
from .turn import Turn

NOT_KNOWN = "not known"
_ALWAYS = ("speculation", "block_size", "temperature", "seed")
"""Settings that a comparison shows also where they are the same."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A line of the comparison: a setting or figure, with its value in either version."""

    name: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        return self.left != self.right


def compare(left: Turn, right: Turn) -> list[Compared]:
    """Settings and figures of two versions: of the settings that were used, and what is known of both."""
    lines = [Compared("drafter", _drafter(left), _drafter(right))]
    if left.target != right.target:
        lines.insert(0, Compared("target", left.target or NOT_KNOWN, right.target or NOT_KNOWN))
    if left.system != right.system:
        lines.append(Compared("system prompt", left.system or "none", right.system or "none"))
    for setting in SETTINGS:
        values = [_value_text(_known(each.settings).get(setting.name, NOT_KNOWN)) for each in (left, right)]
        if setting.name in _ALWAYS or values[0] != values[1]:
            lines.append(Compared(setting.words, *values))
    return lines + [Compared(name, figure(left), figure(right)) for name, figure in _FIGURES.items()]


def _known(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings, with those filled in that our engine leaves out while they have their old values. A server's stay
    as they are: it says nothing of how it drafts."""
    return {**ADDED_LATER, **settings} if "speculation" in settings else settings


def settings_apart(exchange: Turn, other: Turn) -> str:
    """In few words, what this version was decoded with that the other was not; empty for nothing."""
    changed = [line for line in compare(exchange, other) if line.differs and line.name in _CHOSEN]
    return " · ".join(f"{line.name} {line.left}" for line in changed)


def models_apart(exchanges: Iterable[Turn]) -> dict[int, str]:
    """Who answered each question, by its number; nothing where one model answered all of them."""
    names = {exchange.number: short_name(exchange.target) for exchange in exchanges if exchange.target}
    return names if len(set(names.values())) > 1 else {}


def parting(left: str, right: str) -> str:
    """A sentence that says how far two texts are the same."""
    if left == right:
        return "The texts are the same, character for character."
    same = num_agreed(left, right)
    if not same:
        return "The texts differ from their first character on."
    return f"The same at first, for {counted(same, 'character')}."


def _drafter(exchange: Turn) -> str:
    return exchange.drafter or ("none" if exchange.target else NOT_KNOWN)


def _acceptance(figures: TurnStatistics) -> str:
    if figures.num_spec_steps:
        return f"{figures.tokens_per_round:.2f}"
    return accepted_share(figures) or "–"


def _value_text(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _figure(of: Callable[[Turn], str]) -> Callable[[Turn], str]:
    return lambda exchange: of(exchange) if exchange.figures.num_tokens else "–"


_FIGURES: dict[str, Callable[[Turn], str]] = {
    "tokens": _figure(lambda each: str(each.figures.num_tokens)),
    "tok/s": _figure(lambda each: f"{each.figures.tok_s:.0f}"),
    TOKENS_PER_ROUND.name: _figure(lambda each: _acceptance(each.figures)),
    "rounds": _figure(lambda each: str(each.figures.num_spec_steps) if each.figures.num_spec_steps else "–"),
    "first token": _figure(lambda each: f"{each.figures.ttft_ms:.0f} ms"),
    "prompt": _figure(lambda each: f"{each.figures.num_prompt_tokens}, {each.figures.num_reused_tokens} reused"),
    "ended": lambda each: each.reason or "within the answer",
}
_CHOSEN = {"drafter", "system prompt", *(setting.words for setting in SETTINGS)}
