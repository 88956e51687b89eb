"""Makes prompts look as people really type them: lower case, no full stop, "pls", a typo. Values are never touched."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

_PROTECTED = re.compile(r"""(```.*?```|`[^`]*`|"[^"]*"|(?<!\w)'[^'\n]*'(?!\w))""", re.DOTALL)
_WORD = re.compile(r"(?<![\w#'.-])[A-Za-z]+(?![\w'-])")


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """A uniform choice, faster than ``rng.choice``."""
    return options[int(rng.random() * len(options))]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IMPERATIVES = _words(
    "write create make build show give explain tell describe implement calculate compute solve find add subtract "
    "multiply divide define code draw generate program help"
)
_COMMON = _IMPERATIVES | _words(
    "what who why when where which how can could would should will do does did is are was were the this that there "
    "and with please need want like have has know about using into from more many much some only just also "
    "function program page animation single file simple small code example test hints docstring python html "
    "work works working mean means difference between short sentence words bullet points child long detail "
    "number numbers total left together each every average background colour color title called name canvas particles "
    "recursive iterative speculative decoding drafter target token tokens model cache memory "
    "good morning hello thanks thank help today anything something"
)
"""Everyday words: they may change their case or get a typo, since no answer copies them from the prompt."""
_SPECIAL = _words("i dflash gpu cpu kv html http url css json git moe python")
"""Spellings with capitals that people drop."""

_POLITE = ("please ", "pls ", "can you ", "could you ", "could you please ", "hey, can you ", "hi, please ")
_OPENERS = ("hey, ", "hi, ", "ok, ", "so, ", "quick question: ", "um, ", "hello, ", "and ", "one more: ", "well, ")
_CLOSERS = (" please", ", please", " thanks", ", thanks", " pls", " thx", " :)", ", thank you", " if you can", " now")


def noisy(rng: random.Random, prompt: str) -> str:
    """The prompt with one to three everyday flaws. Numbers, names and quoted values stay as they are.

    Words outside a list of everyday words are never changed, so that slots which the answer must copy survive.
    """
    text = prompt
    if rng.random() < 0.4:
        text = _each_free_part(text, lambda part: _with_typo(rng, part))
    if rng.random() < 0.6:
        text = _each_free_part(text, _lowered)
    if rng.random() < 0.5:
        text = _without_end(text)
    if len(text.split()) > 2:
        if rng.random() < 0.3:
            text = _opened(rng, text)
        if rng.random() < 0.25:
            text = _closed(rng, text)
    return text


def _each_free_part(text: str, change: Callable[[str], str]) -> str:
    """Applies a change to what lies outside quotes and code."""
    pieces = _PROTECTED.split(text)  # odd entries are protected
    return "".join(piece if i % 2 else change(piece) for i, piece in enumerate(pieces))


def _lowered(part: str) -> str:
    def lower(match: re.Match[str]) -> str:
        word = match.group().lower()
        return word if word in _COMMON or word in _SPECIAL else match.group()

    return _WORD.sub(lower, part)


def _with_typo(rng: random.Random, part: str) -> str:
    """Misspells one everyday word of at least four letters, if there is one."""
    words = [m for m in _WORD.finditer(part) if len(m.group()) >= 4 and m.group().lower() in _COMMON]
    if not words:
        return part
    match = pick(rng, words)
    return part[: match.start()] + _misspelt(rng, match.group()) + part[match.end() :]


def _misspelt(rng: random.Random, word: str) -> str:
    """Swaps, drops or doubles a letter after the first."""
    at = rng.randint(1, len(word) - 2)
    kind = rng.random()
    if kind < 0.5:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word[:at] + (word[at + 1 :] if kind < 0.8 else word[at] + word[at:])


def _without_end(text: str) -> str:
    return re.sub(r"[.?!]+$", "", text) or text


def _opened(rng: random.Random, text: str) -> str:
    """Puts a few words in front; the old beginning loses its capital if it is an everyday word."""
    first = re.match(r"[A-Za-z]+", text)
    if first and first.group().lower() in _COMMON:
        text = first.group().lower() + text[first.end() :]
        if first.group().lower() in _IMPERATIVES and "please" not in text:
            return pick(rng, _POLITE) + text
    return pick(rng, _OPENERS) + text


def _closed(rng: random.Random, text: str) -> str:
    if re.search(r"please|thank|pls|[\"'`=]$", text):
        return text
    return _without_end(text) + pick(rng, _CLOSERS)
