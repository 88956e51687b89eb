"""How full the context is, whether a question still fits, and what would have to go. Pure: whoever asks chooses.

``Ruler`` measures messages: exactly where the source counts tokens, by what its last prompt took where it doesn't.
``fit`` says whether a question fits behind a conversation, and which of the oldest questions would have to be left out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.commands import Ask, GenerationSettings, Message

from ..attachments.attachment import CHARACTERS
from ..text.counted import counted
from .question_context import NOTHING, QuestionContext, SaidTurn, left_out_of, messages_of

NEARLY_FULL, ALMOST_FULL = 0.8, 0.95
"""Shares of the context from which the screen says so, in two colours."""
LEAST_ANSWER = 256
"""Tokens that an answer should have room for; less in a very small context."""
LIGHTER = 0.6
"""The share of the context that stays filled when something has to go, so that the next questions fit too."""
MARKUP = 8
"""Tokens that a template puts around a message, about."""
NEXT_TO_NOTHING = 16
"""Tokens that are not worth counting."""

Measure = Callable[[Sequence[Message]], int]
"""Tokens of a prompt made of these messages."""


class Ruler:
    """Measures prompts for one source."""

    def __init__(self, count: Callable[[Ask], int | None], settings: Callable[[], GenerationSettings]) -> None:
        self._count = count
        self._settings = settings
        self._bytes_per_token = float(CHARACTERS)

    def learn(self, messages: Sequence[Message], num_tokens: int) -> None:
        """Take over how many tokens a prompt took, as the source says, for better estimates of the next ones."""
        if num_tokens > MARKUP * (len(messages) + 1):
            self._bytes_per_token = max(bytes_of(messages) / (num_tokens - MARKUP * len(messages)), 1.0)

    def prompt(self, messages: Sequence[Message]) -> int:
        counted = self._count(Ask(0, tuple(messages), self._settings())) if messages else 0
        if counted is not None:
            return counted
        return round(bytes_of(messages) / self._bytes_per_token) + MARKUP * len(messages)

    def text(self, text: str) -> int | None:
        """Tokens of a text by itself; None where only a guess is possible."""
        return self._count(Ask(0, (), self._settings(), prompt=text)) if text else 0


def bytes_of(messages: Sequence[Message]) -> int:
    """The bytes of all texts of a prompt: as many tokens as it can have at most, the template's aside."""
    return sum(len(message.content.encode("utf-8", "replace")) for message in messages)


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a question fits behind a conversation."""

    tokens: int
    """How many tokens the whole prompt has; a bound where it obviously fits."""
    limit: int
    left_out: tuple[int, ...] | None
    """The numbers of the questions that would have to go, oldest first: none where it fits. None: nothing helps, for
    the question alone is too long."""


def answer_room(limit: int) -> int:
    """Tokens that a context should have left for an answer."""
    return min(LEAST_ANSWER, limit // 16)


def fit(
    earlier: Sequence[SaidTurn],
    system: str | None,
    question: str,
    limit: int,
    measure: Measure,
    context: QuestionContext = NOTHING,
) -> Fit:
    """Find out whether ``question`` fits behind ``earlier`` into a context of ``limit`` tokens; 0 stands for an unknown
    limit, where everything fits. ``measure`` is called as rarely as possible."""
    messages = messages_of(earlier, system, question, context)
    bound = bytes_of(messages) + MARKUP * (len(messages) + 1)
    most = limit - answer_room(limit)
    if not limit or bound <= most:
        return Fit(bound, limit, ())
    tokens = measure(messages)
    if tokens <= most:
        return Fit(tokens, limit, ())
    gone = left_out_of(earlier, context)
    read = [each.number for each in earlier if each.number not in gone and each.answer]

    def left(count: int) -> int:
        lighter = replace(context, left_out=(*context.left_out, *read[:count]))
        return measure(messages_of(earlier, system, question, lighter))

    return Fit(tokens, limit, _oldest(read, left, LIGHTER * limit, most))


def _oldest(read: Sequence[int], left: Callable[[int], int], light: float, most: int) -> tuple[int, ...] | None:
    """The first of the numbers in ``read``: as few as make the rest light, or if nothing does, as make it fit; None
    where nothing does. ``left(n)`` measures what is left without n of them, which never grows with n."""
    if left(len(read)) > most:
        return None
    aim = light if left(len(read)) <= light else most
    return tuple(read[: 1 + bisect_left(range(1, len(read)), True, key=lambda count: left(count) <= aim)])


def room_words(used: int, limit: int) -> str:
    """What still fits, for people: ``about 1,600 tokens still fit, some 1,200 words``."""
    left = max(limit - used, 0)
    if left < NEXT_TO_NOTHING:
        return "next to nothing more fits"
    return f"about {counted(left, 'token')} still fit, some {counted(left * 3 // 4, 'word')}"


def too_long_words(fit: Fit) -> str:
    """Why a question can't be asked at all."""
    tokens = counted(fit.tokens, "token")
    return f"This question has {tokens} with all that goes with it, and the context holds {fit.limit:,}."
