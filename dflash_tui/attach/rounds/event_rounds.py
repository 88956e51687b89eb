"""Draws a stream's events as they come. Where each is one round of the server's (vLLM's are), its tokens have verdicts;
elsewhere an answer is text, and the server's totals stand at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.events import EmittedToken, Verdict

from ..reading import Chunk, PromptUsage, usage_prompt
from ..untrusted import count
from .server_counts import Count, server_count
from .steps import HELD, WIDEST, StepMaker, StreamRounds, TurnReport, verdicts
from .token_texts import TokenTexts


@dataclass(slots=True)
class EventKind:
    """What an event of a server is known to be."""

    is_round: bool = False
    """Whether each is one decoding step."""
    speculates: bool | None = None
    """Whether the server guesses ahead; None where that is not known."""
    drafted: int = 0
    """Tokens that a round drafts; 0 where that is not known."""
    always_drafts: bool = False
    """Whether every step so far had a draft, by the server's own count; otherwise a single token may have had none."""


class EventRounds(StreamRounds):
    """Turns a stream into one step per event."""

    def __init__(self, steps: StepMaker, kind: EventKind, odds: bool = False) -> None:
        """``kind`` learns from the answer's end. ``odds``: whether the probabilities that come are those which the
        server sampled from."""
        super().__init__(steps)
        self._kind, self._odds = kind, odds
        self._token_texts = TokenTexts()
        self._ends: list[Chunk] = []
        self._tokens = 0
        self._time = 0.0
        self._owed, self._since = 0, 0.0
        """Tokens whose text is held back, and when the first of them came, where no rounds are told."""
        self._count = Count()

    def _read(self, chunk: Chunk) -> None:
        if isinstance(ids := chunk.data.get("prompt_token_ids"), list) and ids:
            self.steps.prompt = PromptUsage(len(ids))
        self.steps.prompt = usage_prompt(chunk) or self.steps.prompt
        if (not chunk.pieces and not chunk.ids) or chunk.finish:
            self._ends.append(chunk)
        tokens = self._tokens_of(chunk)
        if tokens and not self.steps.made:  # the prefill's token
            self._tell(tokens[:1], self._since or chunk.time)
            tokens = tokens[1:]
        if self._kind.is_round and tokens:
            self._tell(tokens, chunk.time, bool(chunk.finish))
        elif tokens:
            for token in tokens:
                self._tell([token], chunk.time)

    def _finish(self) -> None:
        self._count = server_count(self._ends)
        if self._kind.is_round and self._count.rounds:
            self._kind.drafted = self._count.width or self._kind.drafted
            self._kind.always_drafts = self._count.rounds == len(self.steps.made) - 1
        for _ in range(max(self._owed, 1 if self._texts else 0)):
            self._tell([self._texts.token()], self._ends[-1].time if self._ends else self._time)
        while self._texts:
            self._tell([self._texts.token()], self._time)

    def report(self) -> TurnReport:
        count = self._count
        return TurnReport(
            count.over(self.steps.statistics()),
            count.drafted is not None or count.rounds is not None,
        )

    def _tokens_of(self, chunk: Chunk) -> list[EmittedToken]:
        """The tokens that an event stands for. Without ids or probabilities the usage's running count tells how
        many."""
        so_far = count(chunk.figures("usage").get("completion_tokens")) if chunk.data.get("choices") else None
        number = len(chunk.ids) or len(chunk.logprobs)
        if not number and so_far is not None and 0 <= so_far - self._tokens <= WIDEST:
            number = so_far - self._tokens
        elif not number and chunk.spoke:
            number = 1
        self._texts.put(chunk.pieces)
        self._tokens += number
        if not self._kind.is_round:
            self._since = chunk.time if number and not self._owed else self._since
            number, self._owed = (number + self._owed, 0) if self._texts else (0, number + self._owed)
            pieces = self._texts.take_all()
            held = [HELD] * (number - len(pieces))
            return [*(EmittedToken(None, text, "unknown", channel, None) for channel, text in pieces), *held]
        if not number:
            return []
        return self._token_texts.tokens(self._texts, number, chunk.ids, chunk.logprobs, self._odds)

    def _tell(self, tokens: Sequence[EmittedToken], time: float, last: bool = False) -> None:
        judged, drafted = self._judged(len(tokens))
        if last and drafted:  # the end may have cut the round, so that this token was accepted
            judged[-1] = "unknown"
        emitted = [replace(token, verdict=verdict) for token, verdict in zip(tokens, judged, strict=True)]
        self.steps.make(emitted, drafted, len(tokens) - 1 if drafted else 0, time, (time - self._time) * 1000)
        self._time = time

    def _judged(self, size: int) -> tuple[list[Verdict], int]:
        """The verdicts of an event's tokens, and how many its round drafted; 0 where it isn't known to be a round."""
        kind = self._kind
        if kind.speculates is False or (kind.is_round and not self.steps.made):
            return ["plain"] * size, 0
        merged = kind.drafted and size > kind.drafted + 1  # the server fell behind, and sent several rounds as one
        if not kind.is_round or merged or (size == 1 and not kind.always_drafts):
            return ["unknown"] * size, 0
        judged = verdicts(size, kind.drafted or size, size - 1)
        return judged if kind.drafted else [*judged[:-1], "unknown"], kind.drafted or size - 1
