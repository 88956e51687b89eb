"""The training mixture: which domains, how much of each, and how exchanges become conversations."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tokenizers import Tokenizer

from ...training.rows import Encoded
from ..model.tokenizer import WordEncoder
from .conversation import TextTurn, TrainingText, encode
from .exchanges import DOMAINS, Domain, TextExchange, read_exchanges
from .noise import noisy
from .thinking import thought

TOKEN_SHARES: dict[Domain, float] = {
    "code": 0.26,
    "html": 0.12,
    "maths": 0.18,
    "explain": 0.09,
    "chat": 0.04,
    "unknown": 0.05,
    "screen": 0.02,
    "follow": 0.08,
    "edit": 0.16,
}
"""By domain, the share of all tokens that answer a prompt. Short answers need few tokens to be seen often; what a
follow-up refers to comes on top."""

DRAFTER_SHARES: dict[Domain, float] = {
    "code": 0.46,
    "html": 0.11,
    "maths": 0.08,
    "explain": 0.15,
    "chat": 0.015,
    "unknown": 0.02,
    "screen": 0.015,
    "follow": 0.04,
    "edit": 0.11,
}
"""By domain, the share of all tokens on which the drafter trains. Small talk has few sentences: with a larger share it
would be learnt by heart, which says nothing about drafting."""

NOISY_PROMPTS = 0.30
THINKING = 0.06
SYSTEM_TURN = 0.06
TURNS, TURN_SHARES = (1, 2, 3), (0.74, 0.21, 0.05)

UNTOUCHED: tuple[Domain, ...] = ("edit",)
"""Domains whose prompts hold a text to copy, so that they stay as they are."""

SYSTEM_TEXTS = (
    "You are a helpful assistant.",
    "You are dflash-demo, a tiny demo model.",
    "Answer briefly.",
    "Be friendly and precise.",
    "You are a coding assistant.",
    "You help people learn.",
    "Answer in English.",
)


class Mixture:
    """Draws exchanges and conversations, domains in proportion to their shares.

    The shares are of tokens while draws are of exchanges, so each domain's mean length is estimated first.
    """

    def __init__(self, tokenizer: Tokenizer, shares: dict[Domain, float] = TOKEN_SHARES) -> None:
        self.tokenizer = tokenizer
        self.encoder = WordEncoder(tokenizer)
        rng = random.Random("mean lengths")
        self.odds = [shares[domain] / self._mean_tokens(domain, rng) for domain in DOMAINS]

    def _mean_tokens(self, domain: Domain, rng: random.Random, draws: int = 400) -> float:
        exchanges = rng.choices(read_exchanges(domain), k=draws)
        return sum(len(self.encoder(exchange.response)) for exchange in exchanges) / draws

    def exchange(self, rng: random.Random) -> TextExchange:
        """An exchange to train on, of a random domain."""
        exchanges = read_exchanges(rng.choices(DOMAINS, self.odds)[0])
        return exchanges[int(rng.random() * len(exchanges))]

    def prompt(self, rng: random.Random, exchange: TextExchange) -> str:
        """The prompt as somebody might type it: sometimes carelessly."""
        if exchange.domain in UNTOUCHED or rng.random() >= NOISY_PROMPTS:
            return exchange.prompt
        return noisy(rng, exchange.prompt)

    def turns(self, rng: random.Random, exchange: TextExchange) -> tuple[TextTurn, ...]:
        """The turns of an exchange, behind those of the exchanges to which it refers."""
        return (*exchange.before, TextTurn(self.prompt(rng, exchange), exchange.response))

    def conversation(self, rng: random.Random, last: TextExchange | None = None) -> TrainingText:
        """One to three exchanges of any domains, sometimes with a system turn, sometimes thinking; ``last`` fixes
        the last exchange."""
        exchanges = [self.exchange(rng) for _ in range(rng.choices(TURNS, TURN_SHARES)[0])]
        if last is not None:
            exchanges[-1] = last
        # An exchange that can only begin a conversation begins one.
        exchanges = exchanges[max(at for at, each in enumerate(exchanges) if at == 0 or each.opens) :]
        turns = tuple(turn for each in exchanges for turn in self.turns(rng, each))
        system = rng.choice(SYSTEM_TEXTS) if rng.random() < SYSTEM_TURN else ""
        thinks = rng.random() < THINKING
        return TrainingText(turns, system, thought(rng, exchanges[-1]) if thinks else None)

    def encoded(self, rng: random.Random) -> Encoded:
        """A training conversation as tokens."""
        return encode(self.encoder, self.conversation(rng))

    def encoded_if(self, allowed: Callable[[TextTurn], bool], rng: random.Random) -> Encoded:
        """A training conversation as tokens, drawn until all its turns are allowed."""
        while True:
            conversation = self.conversation(rng)
            if all(map(allowed, conversation.turns)):
                return encode(self.encoder, conversation)


def tokenizer_texts(seed: str, per_domain: int) -> Iterator[str]:
    """Texts to learn the merges from: prompts and answers of all domains, with the roles that templates write."""
    rng = random.Random(seed)
    for domain in DOMAINS:
        for exchange in rng.choices(read_exchanges(domain), k=per_domain):
            yield f"user\n{exchange.prompt}\nmodel\nthought\n"
            yield f"system\n{rng.choice(SYSTEM_TEXTS)}\nmodel\n{exchange.response}"
