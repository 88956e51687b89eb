"""What a small model's own description says it can't do, so that whoever asks hears that before a bad answer. Models
that describe nothing are asked anything."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FEW = 3
"""How many known letters a text needs for each strange one to count as readable: fewer strange ones are a name, or a
word that is asked about."""
CIRCLE, LONGEST_PIECE = 64, 12
"""An answer goes round in circles when its last ``CIRCLE`` tokens repeat one piece of at most ``LONGEST_PIECE``
tokens."""
ONCE_MORE = 64
"""How many tokens an answer goes on once it goes round in circles. No round holds more, so that it ends at the same
token with speculation and without, wherever rounds begin."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A kind of question that is answered badly."""

    asks: re.Pattern[str]
    """Matches such questions, files in them included; upper and lower case are alike."""
    says: str
    """A sentence for people about what the model can't do."""
    instead: str
    """What people may ask, or do, instead."""
    sure: bool = False
    """Whether the model answers no such question well: then it isn't asked, and ``says`` is the answer."""
    behind: re.Pattern[str] | None = None
    """Matches the answers behind which such a question is meant; None for any place."""


@dataclass(frozen=True, slots=True)
class Limits:
    """All that one model's description says it can't do."""

    letters: re.Pattern[str] | None = None
    """Matches each letter that the model reads; None where it reads any."""
    instead: str = ""
    """What people may do about a question in other letters."""
    kinds: tuple[Limit, ...] = ()

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Limits:
        """Reads the limits in a pair's ``about.json``."""
        kinds = (
            Limit(
                re.compile("|".join(each["asks"]), re.I),
                each["says"],
                each["instead"],
                each.get("sure", False),
                re.compile(each["behind"]) if "behind" in each else None,
            )
            for each in about["limits"]
        )
        return cls(re.compile(about["reads"]["letters"]), about["reads"]["instead"], tuple(kinds))

    def reads(self, text: str) -> bool:
        """Whether the model knows all but a few of a text's letters, and the text isn't made of pictures alone."""
        if self.letters is None:
            return True
        known = len(self.letters.findall(text)) + sum(map(str.isdecimal, text))
        strange = sum(sign.isalpha() and not self.letters.match(sign) for sign in text)
        pictures = any(unicodedata.category(sign) == "So" for sign in text)
        enough = FEW * strange if strange > 1 else strange  # "Olá!" has one, and is read
        return known >= enough and (known > 0 or not pictures)

    def met_by(self, text: str, before: str = "") -> Iterable[Limit]:
        """The limits that a question comes upon. ``before``: the answer that it follows."""
        told = (kind for kind in self.kinds if kind.behind is None or kind.behind.search(before))
        return (kind for kind in told if kind.asks.search(text))

    def refusal(self, text: str, before: str = "") -> tuple[str, str] | None:
        """Why a question gets no answer, and what to ask instead; None where it may get a good one."""
        if not self.reads(text):
            return "I can't read this.", self.instead
        return next(((kind.says, kind.instead) for kind in self.met_by(text, before) if kind.sure), None)


def goes_in_circles(ids: Sequence[int]) -> bool:
    """Whether an answer has come to say one thing over and over, which it won't leave by itself."""
    end = ids[-CIRCLE:]
    return len(end) == CIRCLE and any(end[length:] == end[:-length] for length in range(1, LONGEST_PIECE + 1))


ANYTHING = Limits()
"""The limits of a model without a description: none."""
