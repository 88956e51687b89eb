"""Keeps from the drafter the prompts that demonstrations show, so that its figures on them are honest."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer

from ....models.target import TargetModel
from ...training.generation import Sampler, generate
from .conversation import TextTurn, TrainingText, encode_prompt

HEADLINE_PROMPTS = (
    "Write a quicksort in Python",
    "create a single-file HTML animation of a drone swarm",
)
NEAR = 0.75
"""The share of a headline answer's lines from which on an answer is kept from the drafter."""


def is_headline(prompt: str) -> bool:
    """Whether a prompt is one of the headlines, give or take capitals and punctuation."""
    return _plain(prompt) in {_plain(headline) for headline in HEADLINE_PROMPTS}


class HeadlineGuard:
    """Recognises headline prompts, and answers nearly equal to the target's own answers to them."""

    def __init__(self, answers: Sequence[str]) -> None:
        self.answers = [lines for answer in answers if (lines := _lines(answer))]

    @classmethod
    def of(cls, target: TargetModel, tokenizer: Tokenizer, limit: int) -> HeadlineGuard:
        """Asks the target the headlines, greedily."""
        prompts = [encode_prompt(tokenizer, TrainingText((TextTurn(prompt, ""),))) for prompt in HEADLINE_PROMPTS]
        answers = generate(target, prompts, limit, Sampler(0, 0, target.device))
        return cls([tokenizer.decode(answer.ids) for answer in answers])

    def allows(self, turn: TextTurn) -> bool:
        return not is_headline(turn.prompt) and not self.is_near(turn.response)

    def is_near(self, answer: str) -> bool:
        lines = _lines(answer)
        return any(len(lines & headline) >= NEAR * len(headline) for headline in self.answers)


def _plain(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if line.strip()}
