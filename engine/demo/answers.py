"""The target's own answers: what the drafter will meet, recorded to learn from."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .conversation import Conversation, Encoded, Turn, encode_prompt
from .corpus.sample import Domain
from .generation import Sampler, generate
from .mixture import HEADLINE_PROMPTS, Mixture, is_headline
from .target_model import TargetModel

@dataclass(frozen=True, slots=True)
class Recorded:
    """A prompt as the template renders it, and the answer up to its stop token."""

    domain: Domain
    """Of the last exchange."""
    prompt: list[int]
    answer: list[int]

    def encoded(self) -> Encoded:
        return Encoded(self.prompt + self.answer, [0.0] * len(self.prompt) + [1.0] * len(self.answer))


def record_answers(
    model: TargetModel, mixture: Mixture, count: int, seed: int, batch: int, limit: int = 1024
) -> Iterator[Recorded]:
    """Asks the target ``count`` training prompts, half of them at temperature 1 so that the drafter also sees
    what the target rarely says. Answers that didn't end are dropped, as are those equal to a headline's."""
    headlines = [encode_prompt(mixture.tokenizer, Conversation((Turn(prompt, ""),))) for prompt in HEADLINE_PROMPTS]
    device = model.norm.weight.device
    unwanted = {tuple(answer.ids) for answer in generate(model, headlines, limit, Sampler(0, seed, device))}
    rng = random.Random(f"answers/{seed}")
    # Answers of similar length finish together: a batch has one domain in its last exchange.
    samples = sorted((mixture.sample(rng) for _ in range(count)), key=lambda sample: sample.domain)
    conversations = [(sample.domain, mixture.conversation(rng, last=sample)) for sample in samples]
    asked = [
        (domain, encode_prompt(mixture.tokenizer, conversation))
        for domain, conversation in conversations
        if not any(is_headline(turn.prompt) for turn in conversation.turns)
    ]
    for number, begin in enumerate(range(0, len(asked), batch)):
        group = asked[begin : begin + batch]
        for temperature, part in ((0.0, group[::2]), (1.0, group[1::2])):
            if not part:
                continue
            answers = generate(model, [ids for _, ids in part], limit, Sampler(temperature, seed + number, device))
            for (domain, prompt), answer in zip(part, answers, strict=True):
                if answer.ended and tuple(answer.ids) not in unwanted:
                    yield Recorded(domain, prompt, answer.ids)


def save_answers(path: Path, answers: list[Recorded]) -> None:
    lengths = np.array([(len(a.prompt), len(a.answer)) for a in answers], dtype=np.uint16)
    ids = np.array([id for a in answers for id in a.prompt + a.answer], dtype=np.uint16)
    np.savez_compressed(path, lengths=lengths, ids=ids, domains=np.array([a.domain for a in answers]))


def load_answers(path: Path) -> list[Recorded]:
    with np.load(path) as data:
        lengths, ids, domains = data["lengths"].tolist(), data["ids"].tolist(), data["domains"].tolist()
    answers, at = [], 0
    for domain, (prompt, answer) in zip(domains, lengths, strict=True):
        answers.append(Recorded(domain, ids[at : at + prompt], ids[at + prompt : at + prompt + answer]))
        at += prompt + answer
    return answers
