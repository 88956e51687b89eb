"""What a small model's own description says it can't do, so that whoever asks hears that before a bad answer. Models
that describe nothing are asked anything."""

from __future__ import annotations

import ast
import builtins
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LOOKED_AT, LONGEST_CHANGE = 2000, 300
"""How many characters of a question are looked at, half of them at its end; and beyond how many it is no change of
what stands there, but a text."""
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
class Change:
    """A change that the model learnt to make in its own answers."""

    asks: re.Pattern[str]
    """Matches the questions for it."""
    needs: re.Pattern[str]
    """Matches the answers that can be changed so."""
    tells: re.Pattern[str]
    """Matches the words before the code by which an answer says that it made it."""
    says: str
    """A sentence about an answer that can't be changed so."""
    example: str
    """How to ask for it; empty for a change that no hint names."""


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
    without: re.Pattern[str] | None = None
    """Matches what makes sense of such a question: with that anywhere before it, it is asked."""
    knows: re.Pattern[str] | None = None
    """Matches what is asked nevertheless: where all but a few questions are answered badly, these are named."""
    again: int = 0
    """How many such questions in a row it takes, this one aside."""
    changes: tuple[Change, ...] = ()
    """What is asked nevertheless where the last answer can be changed so; ``{changes}`` in ``instead`` names these."""

    def is_met(self, text: str, earlier: Sequence[str]) -> bool:
        """Whether the question ``text`` is of this kind, behind the questions and answers ``earlier``."""
        if (self.knows or self.again) and len(text) > LONGEST_CHANGE:
            return False
        last = earlier[-1] if earlier else ""
        there = self.behind is None or self.behind.search(last)
        senseless = self.without is None or not any(map(self.without.search, earlier))
        questions = [text, *earlier[-2::-2]][: self.again + 1]
        kind = all(self.asks.search(each) and not (self.knows and self.knows.search(each)) for each in questions)
        if asked := self.asked(text):
            kind = not any(change.needs.search(last) for change in asked)
        return bool(there and senseless and kind and len(questions) > self.again)

    def asked(self, text: str) -> list[Change]:
        """The changes that a question may ask for."""
        short = len(text) <= LONGEST_CHANGE
        return [change for change in self.changes if short and change.asks.search(text)]

    def told(self, text: str, earlier: Sequence[str]) -> tuple[str, str]:
        """What is said about such a question, and what to ask instead: of all changes, those that fit."""
        says = next((change.says for change in self.asked(text) if change.says), self.says)
        fitting = [each.example for each in self.changes if each.example and each.needs.search(earlier[-1])]
        return says, self.instead.replace("{changes}", "; ".join(fitting))


@dataclass(frozen=True, slots=True)
class Limits:
    """All that one model's description says it can't do."""

    letters: re.Pattern[str] | None = None
    """Matches each letter that the model reads; None where it reads any."""
    instead: str = ""
    """What people may do about a question in other letters."""
    circles: str = ""
    """What people may do about an answer that went round in circles."""
    kinds: tuple[Limit, ...] = ()
    of_systems: tuple[Limit, ...] = ()
    """What holds of questions under a system prompt."""
    flaws: tuple[tuple[re.Pattern[str], str], ...] = ()
    """What makes code of an answer useless, and a sentence about it."""

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Limits:
        """Reads the limits in a pair's ``about.json``."""
        names: Mapping[str, str] = about.get("names", {})

        def form(patterns: str | Sequence[str], flags: int = 0) -> re.Pattern[str]:
            """One pattern of several, in which ``{{name}}`` stands for the pattern of that name."""
            whole = patterns if isinstance(patterns, str) else "|".join(patterns)
            while (named := _NAMED.sub(lambda found: names[found[1]], whole)) != whole:
                whole = named
            return re.compile(whole, flags)

        kinds = (
            Limit(
                form(each["asks"], re.I),
                each["says"],
                each["instead"],
                each.get("sure", False),
                form(each["behind"]) if "behind" in each else None,
                form(each["without"]) if "without" in each else None,
                form(each["knows"], re.I) if "knows" in each else None,
                each.get("again", 0),
                tuple(
                    Change(
                        form(change["asks"], re.I),
                        re.compile(change.get("needs", "")),
                        re.compile(change.get("tells", "")),
                        change.get("says", ""),
                        change.get("example", ""),
                    )
                    for change in each.get("changes", ())
                ),
            )
            for each in about["limits"]
        )
        return cls(
            re.compile(about["reads"]["letters"]),
            about["reads"]["instead"],
            about["circles"],
            tuple(kinds),
            (Limit(re.compile(""), **about["system"]),),
            tuple((form(flaw["finds"]), flaw["says"]) for flaw in about["flaws"]),
        )

    def reads(self, text: str) -> bool:
        """Whether the model knows all but a few of a text's letters, and the text isn't made of pictures alone."""
        if self.letters is None:
            return True
        known = len(self.letters.findall(text)) + sum(map(str.isdecimal, text))
        strange = sum(sign.isalpha() and not self.letters.match(sign) for sign in text)
        pictures = any(unicodedata.category(sign) == "So" for sign in text)
        enough = FEW * strange if strange > 1 else strange  # "Olá!" has one, and is read
        return known >= enough and (known > 0 or not pictures)

    def met_by(self, text: str, earlier: Sequence[str] = ()) -> Iterator[Limit]:
        """The limits that a question comes upon. ``earlier``: questions and answers before it, the newest last."""
        text = _BLANKS.sub(" ", text)
        if len(text) > LOOKED_AT:
            text = f"{text[: LOOKED_AT // 2]} {text[-LOOKED_AT // 2 :]}"
        return (kind for kind in self.kinds if kind.is_met(text, earlier))

    def refusal(self, text: str, earlier: Sequence[str] = ()) -> tuple[str, str] | None:
        """Why a question gets no answer, and what to ask instead; None where it may get a good one."""
        if not self.reads(text):
            return "I can't read this.", self.instead
        return next((kind.told(text, earlier) for kind in self.met_by(text, earlier) if kind.sure), None)

    def broken_promise(self, answer: str, earlier: Sequence[str] = ()) -> str:
        """What is wrong with the code of an answer, in a sentence: it stood there before, calls what isn't there, or
        lacks the name or the number that is promised, or was asked for by a change. Empty for nothing, and where the
        model describes no limits. ``earlier``: as in ``met_by``, the question last."""
        blocks = _BLOCK.findall(answer) if self.kinds else []
        if not blocks:
            return ""
        language, code = blocks[-1]
        if any(code == old for before in earlier for _, old in _BLOCK.findall(before)[-1:]):
            return "Whatever it says, it changed nothing: this is the code that stood here before."
        if other := self._another_change(answer, earlier):
            return other
        if flaw := next((says for finds, says in self.flaws if finds.search(code)), ""):
            return flaw
        promised = re.findall(r"`(\w+)`", _BLOCK.sub("", answer))
        if earlier and self._is_change(earlier[-1]):
            promised += [next(filter(None, found)) for found in _ASKED.findall(earlier[-1])]
        if missing := next((name for name in promised if not re.search(rf"\b{re.escape(name)}\b", code)), None):
            return f"Whatever it says, there is no {missing} in this code."
        return _broken(code) if language == "python" else ""

    @staticmethod
    def anew(earlier: Sequence[str]) -> str:
        """What people may do about a broken promise: it depends on how much code stood before."""
        match sum("```" in each for each in earlier):
            case 0:
                return "Ask for it in other words."
            case 1:
                return "Ask for the whole of it anew, with the change in it."
            case _:
                return "Ask for the whole of it anew: a small model loses names after a few changes."

    def _is_change(self, text: str) -> bool:
        """Whether a question asks for a change of what stands before it."""
        return len(text) <= LONGEST_CHANGE and any(kind.again and kind.asks.search(text) for kind in self.kinds)

    def _another_change(self, answer: str, earlier: Sequence[str]) -> str:
        """A sentence about an answer that made another change of the last one than the question asked for."""
        if len(earlier) < 2:
            return ""
        said = answer.partition("```")[0].strip(" \n:")
        there = (kind for kind in self.kinds if kind.behind and kind.behind.search(earlier[-2]))
        asked = [change for kind in there for change in kind.asked(earlier[-1])]
        done = not asked or any(change.tells.search(said) for change in asked)
        return "" if done else f'It made another change than the one that was asked for: "{said}".'


_BLANKS = re.compile(r"[^\S\n]+")
_NAMED = re.compile(r"\{\{(\w+)\}\}")
_ASKED = re.compile(r"`(\w+)`|\"([^\"]+)\"|\b(\d+)\b|\b(\w+_\w+)\b|(?<=\w )([A-Z]\w+)")
"""What a change leaves in the code: names, numbers, texts."""
_BLOCK = re.compile(r"^```(\w*+)[^\n]*+\n(.*?)^```", re.M | re.S)
"""A fenced block: its language and its code."""


def _broken(code: str) -> str:
    """Why a program can't run: it doesn't parse, or uses a name that nothing defines. Empty for neither."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError):
        return "This program doesn't parse: Python can't run it."
    names = [node for node in nodes if isinstance(node, ast.Name)]
    known = {name.id for name in names if not isinstance(name.ctx, ast.Load)} | set(dir(builtins)) | {"__name__"}
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                known.add(node.name)
            case ast.arg():
                known.add(node.arg)
            case ast.alias():
                known.add((node.asname or node.name).partition(".")[0])
            case ast.ExceptHandler() if node.name:
                known.add(node.name)
    lacking = next((name.id for name in names if name.id not in known), None)
    return f"This program uses {lacking}, which it doesn't define." if lacking else ""


def goes_in_circles(ids: Sequence[int]) -> bool:
    """Whether an answer has come to say one thing over and over, which it won't leave by itself."""
    end = ids[-CIRCLE:]
    return len(end) == CIRCLE and any(end[length:] == end[:-length] for length in range(1, LONGEST_PIECE + 1))


ANYTHING = Limits()
"""The limits of a model without a description: none."""
