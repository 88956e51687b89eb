"""The training mixture: which domains, how much of each, and how exchanges become conversations."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer

from ..training.rows import Encoded
from .conversation import Conversation, Turn, encode
from .corpus import chat, code, edit, explain, follow, html, maths, screen, unknown
from .corpus.noise import noisy
from .corpus.sample import Domain, Sample
from .corpus.thinking import thought
from .tokenizer import WordEncoder

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
"""Of all tokens that answer a prompt. Short answers need few tokens to be seen often; what a follow-up refers to comes
on top."""

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
"""Of all tokens the drafter trains on. Small talk has few sentences: a larger share and it is learnt by heart, which
says nothing about drafting."""

NOISY_PROMPTS = 0.30
THINKING = 0.06
SYSTEM_TURN = 0.06
TURNS, TURN_SHARES = (1, 2, 3), (0.74, 0.21, 0.05)

MAX_RESPONSE_CHARACTERS = 2650
"""About 960 tokens of a page: answers end within 1024."""

UNTOUCHED: tuple[Domain, ...] = ("edit",)
"""Prompts that hold a text to copy: they stay as they are."""

TIED_DOMAINS: tuple[Domain, ...] = ("chat", "unknown")
WORDINGS = 3
UNTIED = 0.1
"""Share of ill-matched wordings that stay, so that sampling at a temperature finds all of them."""

SYSTEM_TEXTS = (
    "You are a helpful assistant.",
    "You are dflash-demo, a tiny demo model.",
    "Answer briefly.",
    "Be friendly and precise.",
    "You are a coding assistant.",
    "You help people learn.",
    "Answer in English.",
)


@dataclass(frozen=True, slots=True)
class Generator:
    """One domain: how to draw an exchange, and how to judge an answer to it."""

    generate: Callable[[random.Random], Sample]
    check: Callable[[str, dict[str, Any]], dict[str, bool]]


def is_tied(sample: Sample) -> bool:
    """Whether the answer begins and ends as answers to this combination should: a third of all wordings each.

    Where wording is free, a greedy model would give everybody the one likeliest text. Tied to what was asked, in a
    way that no rule predicts, the wording varies from prompt to prompt.
    """
    words = sample.response.split()
    wanted = zlib.crc32(sample.combination.encode())
    return all(
        zlib.crc32(" ".join(ends).encode()) % WORDINGS == (wanted >> shift) % WORDINGS
        for ends, shift in ((words[:2], 0), (words[-2:], 8))
    )


def load_generators() -> dict[Domain, Generator]:
    """The generator of each domain."""
    modules = (code, html, maths, explain, chat, unknown, screen, follow, edit)
    return {
        domain: Generator(module.generate, module.check) for domain, module in zip(TOKEN_SHARES, modules, strict=True)
    }


class Mixture:
    """Draws exchanges and conversations, domains in proportion to their shares.

    The shares are of tokens while draws are of exchanges, so each domain's mean length is estimated first.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        generators: dict[Domain, Generator],
        shares: dict[Domain, float] = TOKEN_SHARES,
    ) -> None:
        self.tokenizer = tokenizer
        self.encoder = WordEncoder(tokenizer)
        self.generators = generators
        self.domains = list(generators)
        rng = random.Random("mean lengths")
        self.odds = [shares[domain] / self._mean_tokens(domain, rng) for domain in self.domains]

    def _mean_tokens(self, domain: Domain, rng: random.Random, draws: int = 400) -> float:
        samples = [self.generators[domain].generate(rng) for _ in range(draws)]
        return sum(len(self.encoder(sample.response)) for sample in samples) / draws

    def sample(self, rng: random.Random) -> Sample:
        """An exchange to train on, of a random domain."""
        return self.of_domain(rng, rng.choices(self.domains, self.odds)[0], held_out=False)

    def of_domain(self, rng: random.Random, domain: Domain, held_out: bool) -> Sample:
        """An exchange of one domain, from the training or the held-out combinations."""
        while True:
            sample = self.generators[domain].generate(rng)
            if sample.held_out != held_out or len(sample.response) > MAX_RESPONSE_CHARACTERS:
                continue
            if domain not in TIED_DOMAINS or is_tied(sample) or rng.random() < UNTIED:
                return sample

    def prompt(self, rng: random.Random, sample: Sample) -> str:
        """The prompt as somebody might type it: sometimes carelessly."""
        if sample.domain in UNTOUCHED or rng.random() >= NOISY_PROMPTS:
            return sample.prompt
        return noisy(rng, sample.prompt)

    def turns(self, rng: random.Random, sample: Sample) -> tuple[Turn, ...]:
        """The exchange, behind those that it refers to."""
        return (*(Turn(*exchange) for exchange in sample.before), Turn(self.prompt(rng, sample), sample.response))

    def conversation(self, rng: random.Random, last: Sample | None = None) -> Conversation:
        """One to three exchanges of any domains, sometimes with a system turn, sometimes thinking; ``last`` fixes
        the last exchange."""
        samples = [self.sample(rng) for _ in range(rng.choices(TURNS, TURN_SHARES)[0])]
        if last is not None:
            samples[-1] = last
        # What can only begin a conversation begins one.
        samples = samples[max(at for at, sample in enumerate(samples) if at == 0 or sample.opens) :]
        turns = tuple(turn for sample in samples for turn in self.turns(rng, sample))
        system = rng.choice(SYSTEM_TEXTS) if rng.random() < SYSTEM_TURN else ""
        thinks = rng.random() < THINKING
        return Conversation(turns, system, thought(rng, samples[-1]) if thinks else None)

    def encoded(self, rng: random.Random) -> Encoded:
        """A training conversation as tokens."""
        return encode(self.encoder, self.conversation(rng))

    def encoded_if(self, allowed: Callable[[Turn], bool], rng: random.Random) -> Encoded:
        """A training conversation as tokens, drawn until all its turns are allowed."""
        while True:
            conversation = self.conversation(rng)
            if all(map(allowed, conversation.turns)):
                return encode(self.encoder, conversation)


def tokenizer_texts(generators: dict[Domain, Generator], seed: str, per_domain: int) -> Iterator[str]:
    """Texts to learn the merges from: prompts and answers of all domains, with the roles that templates write."""
    rng = random.Random(seed)
    for generator in generators.values():
        for _ in range(per_domain):
            sample = generator.generate(rng)
            yield f"user\n{sample.prompt}\nmodel\nthought\n"
            yield f"system\n{rng.choice(SYSTEM_TEXTS)}\nmodel\n{sample.response}"
