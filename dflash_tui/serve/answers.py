"""Adds up the events of one answer: pieces of text, why it ended, and figures as OpenAI, llama.cpp and vLLM name
them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from engine.commands import ToolCall
from engine.events import PROBABILITY_STEPS, EmittedToken, FinishReason, PrefillDone, Step, TurnStarted

from .requests import CompletionRequest
from .stop_texts import StopTextFilter
from .tool_calls import AnswerPart, CallReader

_REASONS: dict[FinishReason, str] = {"stop": "stop", "length": "length", "context": "length", "stopped": "stop"}
LEAST_PROBABILITY = 0.5 / PROBABILITY_STEPS
"""Stands for a probability that was rounded to 0, since its logarithm has to be a number."""


@dataclass(slots=True)
class Piece:
    """What a round adds to an answer."""

    text: str = ""
    thought: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    tokens: list[EmittedToken] = field(default_factory=list)
    """The tokens that count: up to the one that ends the answer."""


class AnswerProgress:
    """Follows the events of one answer. Times are in milliseconds."""

    def __init__(self, wanted: CompletionRequest) -> None:
        self._wanted = wanted
        self._watch = StopTextFilter(wanted.stops)
        self._calls = None if wanted.calls is None else CallReader(wanted.calls, wanted.tools)
        self.num_calls = 0
        """How many tools were called so far."""
        self._stop_id: int | None = None
        self.queue_ms = 0.0
        self._prompt_tokens = self._reused = 0
        self._prompt_ms = 0.0
        self._num_tokens = self._num_thought = 0
        self._first_ms: float | None = None
        self._last_ms = 0.0
        self._accepted: list[int] = []
        self._drafted: list[int] = []

    @property
    def stopped(self) -> bool:
        """Whether one of the request's own stops came, so that the rest of the answer isn't wanted."""
        return self._watch.stop_text is not None or self._stop_id is not None

    @property
    def stop_reason(self) -> str | int | None:
        """The stop text or stop token that ended the answer; None where none did."""
        return self._watch.stop_text if self._stop_id is None else self._stop_id

    def begin(self, event: TurnStarted) -> None:
        self._prompt_tokens, self._reused = event.num_prompt_tokens, event.num_reused_tokens

    def prefilled(self, event: PrefillDone) -> None:
        self._prompt_ms = event.milliseconds

    def add(self, step: Step) -> Piece:
        """Takes a round into the answer; returns the piece that it adds, which is empty once the answer is
        ``stopped``."""
        piece = Piece()
        if self.stopped:
            return piece
        for token in step.emitted:
            piece.tokens.append(token)
            if self._ends_with(token, piece):
                break
        if self._calls is not None and piece.text:
            self._sort(piece, self._calls.push(piece.text))
        self._num_tokens += len(piece.tokens)
        self._num_thought += sum(token.channel == "thought" for token in piece.tokens)
        self._last_ms = 1000 * step.time
        self._first_ms = self._last_ms if self._first_ms is None else self._first_ms
        if step.num_verified:
            self._accepted.append(step.num_accepted)
            self._drafted.append(step.num_verified)
        return piece

    def _ends_with(self, token: EmittedToken, piece: Piece) -> bool:
        if token.id in self._wanted.stop_ids:
            self._stop_id = token.id
        elif token.channel == "thought" and self._wanted.kind == "chat":
            piece.thought += token.text
        else:
            piece.text += self._watch.push(token.text)
        return self.stopped

    def rest(self) -> Piece:
        """Gives what was held back, once the answer has ended."""
        piece = Piece(self._watch.rest())  # a stop text leaves nothing held, a stop token may
        if self._calls is not None:
            self._sort(piece, [*self._calls.push(piece.text), *self._calls.rest()])
        return piece

    def _sort(self, piece: Piece, parts: list[AnswerPart]) -> None:
        """Puts text and calls where they belong in a piece."""
        piece.text = "".join(text for text in parts if isinstance(text, str))
        for text in parts:
            if isinstance(text, ToolCall):
                piece.calls.append(replace(text, id=f"call_{uuid4().hex[:24]}"))
        self.num_calls += len(piece.calls)

    def finish_reason(self, reason: FinishReason) -> str:
        finish = "stop" if self.stopped else _REASONS[reason]
        return "tool_calls" if finish == "stop" and self.num_calls else finish

    def usage(self) -> dict[str, Any]:
        """Token counts, as OpenAI has them. The stop token counts, as it does elsewhere."""
        return {
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": self._num_tokens,
            "total_tokens": self._prompt_tokens + self._num_tokens,
            "prompt_tokens_details": {"cached_tokens": self._reused},
            "completion_tokens_details": {"reasoning_tokens": self._num_thought},
        }

    def timings(self) -> dict[str, Any]:
        """Timings as llama.cpp has them: ``predicted_ms`` is the same for all tokens of a round and grows with every
        round."""
        read = self._prompt_tokens - self._reused
        written, spent = self._num_tokens, self._decode_ms or 0.001
        speculated = {"draft_n": sum(self._drafted), "draft_n_accepted": sum(self._accepted)} if self._drafted else {}
        return {
            "cache_n": self._reused,
            "prompt_n": read,
            "prompt_ms": self._prompt_ms,
            "prompt_per_token_ms": _share(self._prompt_ms, read),
            "prompt_per_second": _share(1000 * read, self._prompt_ms),
            "predicted_n": written,
            "predicted_ms": spent,
            "predicted_per_token_ms": _share(self._decode_ms, written - 1),
            "predicted_per_second": _share(1000 * (written - 1), self._decode_ms),
            **speculated,
        }

    def metrics(self, most_drafted: int) -> dict[str, Any]:
        """Speculation figures as vLLM has them. ``most_drafted``: tokens of the longest draft."""
        first = self.queue_ms + (self._first_ms or 0.0)
        return {
            "time_to_first_token_ms": first,
            "generation_time_ms": self._decode_ms,
            "queue_time_ms": self.queue_ms,
            "mean_itl_ms": _share(self._decode_ms, self._num_tokens - 1),
            "tokens_per_second": _share(1000 * self._num_tokens, first + self._decode_ms),
            **({"speculative_decoding": self._speculation(most_drafted)} if self._drafted else {}),
        }

    def _speculation(self, most_drafted: int) -> dict[str, Any]:
        accepted, drafted = self._accepted, self._drafted
        longest = max(most_drafted, *accepted)
        return {
            "mean_acceptance_length": 1 + sum(accepted) / len(accepted),
            "draft_acceptance_rate": sum(accepted) / sum(drafted),
            "acceptance_histogram": [accepted.count(num_accepted) for num_accepted in range(longest + 1)],
            "num_spec_steps": len(accepted),
            "num_accepted_draft_tokens": sum(accepted),
            "num_draft_tokens": sum(drafted),
            "num_spec_tokens": longest,
            "per_step_accepted": accepted,
            "per_step_drafted": drafted,
        }

    @property
    def _decode_ms(self) -> float:
        return self._last_ms - (self._first_ms or 0.0)


def _share(amount: float, count: float) -> float:
    return amount / count if count > 0 else 0.0


def logarithm(token: EmittedToken) -> float:
    """The logarithm of the target's probability for the token, which the engine tells in steps of a thousandth."""
    return math.log(max(token.probability or 0.0, LEAST_PROBABILITY))


def chat_logprobs(tokens: Sequence[EmittedToken]) -> dict[str, Any]:
    """The answer's tokens with their logarithms of probabilities, as ``/v1/chat/completions`` has them."""
    shown = [token for token in tokens if token.channel == "answer"]
    return {"content": [_entry(token) for token in shown], "refusal": None}


def _entry(token: EmittedToken) -> dict[str, Any]:
    spelled = list(token.text.encode())
    return {"token": token.text, "bytes": spelled, "logprob": logarithm(token), "top_logprobs": []}


def text_logprobs(tokens: Sequence[EmittedToken], offset: int) -> dict[str, Any]:
    """The answer's tokens with their logarithms of probabilities, as ``/v1/completions`` has them; ``offset`` is the
    character at which the first token begins."""
    shown = [token for token in tokens if token.channel != "control"]
    offsets = []
    for token in shown:
        offsets.append(offset)
        offset += len(token.text)
    return {
        "tokens": [token.text for token in shown],
        "token_logprobs": [logarithm(token) for token in shown],
        "top_logprobs": None,
        "text_offset": offsets,
    }
