"""The target's own answers: what the drafter will meet, recorded to learn from."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import torch
from safetensors.torch import load_file, save_file

from .conversation import Encoded, encode_prompt
from .corpus.sample import Domain
from .generation import Sampler, generate
from .headlines import HeadlineGuard
from .mixture import Mixture
from .target_model import TargetModel

DOMAINS: tuple[Domain, ...] = get_args(Domain)


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
    model: TargetModel, mixture: Mixture, guard: HeadlineGuard, count: int, seed: int, batch: int, limit: int
) -> Iterator[Recorded]:
    """Asks the target ``count`` training prompts, half of them at temperature 1 so that the drafter also sees what
    the target rarely says. Answers that didn't end are dropped, as is what the guard keeps from the drafter."""
    device = model.norm.weight.device
    rng = random.Random(f"answers/{seed}")
    asked: dict[Domain, list[list[int]]] = defaultdict(list)
    for _ in range(count):
        sample = mixture.sample(rng)
        conversation = mixture.conversation(rng, last=sample)
        if all(map(guard.allows, conversation.turns)):
            asked[sample.domain].append(encode_prompt(mixture.tokenizer, conversation))
    for domain, prompts in asked.items():  # answers of one domain end at similar lengths, so they share batches
        for begin in range(0, len(prompts), batch):
            group = prompts[begin : begin + batch]
            for temperature, part in ((0.0, group[::2]), (1.0, group[1::2])):
                if not part:
                    continue
                answers = generate(model, part, limit, Sampler(temperature, seed + begin, device))
                for prompt, answer in zip(part, answers, strict=True):
                    if answer.ended and not guard.is_near(mixture.tokenizer.decode(answer.ids)):
                        yield Recorded(domain, prompt, answer.ids)


def save_answers(path: Path, answers: list[Recorded]) -> None:
    """One file: all ids in a row, the lengths that cut it up, and the domains by number."""
    tensors = {
        "ids": torch.tensor([id for a in answers for id in a.prompt + a.answer], dtype=torch.int16),
        "lengths": torch.tensor([(len(a.prompt), len(a.answer)) for a in answers], dtype=torch.int32),
        "domains": torch.tensor([DOMAINS.index(a.domain) for a in answers], dtype=torch.uint8),
    }
    save_file(tensors, path)


def load_answers(path: Path) -> list[Recorded]:
    tensors = load_file(path)
    ids: list[int] = tensors["ids"].tolist()
    answers, at = [], 0
    for domain, (prompt, answer) in zip(tensors["domains"].tolist(), tensors["lengths"].tolist(), strict=True):
        answers.append(Recorded(DOMAINS[domain], ids[at : at + prompt], ids[at + prompt : at + prompt + answer]))
        at += prompt + answer
    return answers
