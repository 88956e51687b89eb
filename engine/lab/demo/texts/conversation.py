"""Encodes conversations as token rows: exactly what the chat template renders, with a loss weight for every token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tokenizers import Tokenizer

from ...training.rows import RESPONSE_WEIGHT, Encoded

EMPTY_THOUGHT = "<|channel>thought\n<channel|>"
PROMPT_WEIGHT = 0.04
"""The loss weight of prompts, which teach what words look like; too much would teach the model to ask."""


@dataclass(frozen=True, slots=True)
class TextTurn:
    prompt: str
    response: str


@dataclass(frozen=True, slots=True)
class TrainingText:
    """Exchanges in order. With a ``thought`` the model is asked to think before its last answer."""

    turns: tuple[TextTurn, ...]
    system: str = ""
    thought: str | None = None


def prompt_text(conversation: TrainingText) -> str:
    """The text that the model is given before its last answer: the template with a generation prompt."""
    return "".join(text for text, _ in _opening(conversation))


def encode_prompt(tokenizer: Tokenizer, conversation: TrainingText) -> list[int]:
    ids: list[int] = tokenizer.encode(prompt_text(conversation), add_special_tokens=False).ids
    return ids


def encode(encoder: Callable[[str], list[int]], conversation: TrainingText) -> Encoded:
    """The whole conversation, every answer supervised up to its end-of-turn token."""
    last = conversation.turns[-1].response
    if conversation.thought is not None:
        last = f"<|channel>thought\n{conversation.thought}<channel|>{last}"
    pieces = [*_opening(conversation), (last + "<turn|>", RESPONSE_WEIGHT)]
    ids: list[int] = []
    weights: list[float] = []
    for text, weight in pieces:
        piece = encoder(text)
        ids += piece
        weights += [weight] * len(piece)
    return Encoded(ids, weights)


def _opening(conversation: TrainingText) -> list[tuple[str, float]]:
    """(text, weight) pieces up to where the last answer begins. Pieces meet at tokens that never merge."""
    thinking = conversation.thought is not None
    pieces = [("<bos>", 0.0)]
    if conversation.system or thinking:
        think = "<|think|>\n" if thinking else ""
        pieces.append((f"<|turn>system\n{think}{conversation.system}<turn|>\n", 0.0))
    for turn in conversation.turns[:-1]:
        # An answer before a thinking turn has no thought, so it must not teach how such a turn begins.
        weight = 0.0 if thinking else RESPONSE_WEIGHT
        pieces += [*_asked(turn), (turn.response + "<turn|>", weight), ("\n", 0.0)]
    pieces += _asked(conversation.turns[-1])
    if not thinking:
        pieces.append((EMPTY_THOUGHT, 0.0))
    return pieces


def _asked(turn: TextTurn) -> list[tuple[str, float]]:
    return [("<|turn>user\n", 0.0), (turn.prompt.strip(), PROMPT_WEIGHT), ("<turn|>\n<|turn>model\n", 0.0)]
