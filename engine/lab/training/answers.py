"""Records the target's own answers, from which a drafter learns what it will meet."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from ...models.target import TargetModel
from .generation import Sampler, generate
from .prompts import TrainingPrompt
from .rows import RESPONSE_WEIGHT, Encoded, RowSource

SHARD = "answers-{:04d}.safetensors"
LEAST = 2
"""The fewest tokens of an answer that holds something to draft."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """A prompt as the template renders it, and the answer up to its stop token."""

    domain: str
    prompt: list[int]
    answer: list[int]

    def encoded(self) -> Encoded:
        return Encoded(self.prompt + self.answer, [0.0] * len(self.prompt) + [RESPONSE_WEIGHT] * len(self.answer))


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """How prompts are answered for a recording."""

    batch: int
    limit: int
    """The most tokens of an answer. One that was cut off counts: what there is of it is the target's own."""
    seed: int
    temperatures: tuple[float, ...]
    """Temperatures that prompts take in turn: most people see greedy answers, the others hold what the target says less
    often."""


def record_answers(
    target: TargetModel,
    prompts: Sequence[TrainingPrompt],
    asking: AnswerSettings,
    folder: Path,
    report: Callable[[int, int, int], None],
    enough: Callable[[], bool] = lambda: False,
) -> None:
    """Asks the prompts and writes a file to ``folder`` for each batch; batches that are there already are left alone.
    ``report`` is called with (prompts answered, in all, tokens of the last batch). ``enough``: asked behind each batch,
    whether to leave out the rest."""
    groups = [prompts[begin : begin + asking.batch] for begin in range(0, len(prompts), asking.batch)]
    answered = 0
    for index, group in enumerate(groups):
        path = folder / SHARD.format(index)
        answered += len(group)
        if path.exists():
            continue
        temperatures = list(itertools.islice(itertools.cycle(asking.temperatures), len(group)))
        sampler = Sampler(temperatures, asking.seed * 1_000_003 + index, target.device)
        answers = generate(target, [prompt.ids for prompt in group], asking.limit, sampler)
        recorded = [
            RecordedAnswer(prompt.domain, list(prompt.ids), answer.ids)
            for prompt, answer in zip(group, answers, strict=True)
            if len(answer.ids) >= LEAST
        ]
        save_answers(path, recorded)
        report(answered, len(prompts), sum(len(each.answer) for each in recorded))
        if enough():
            return


def save_answers(path: Path, answers: Sequence[RecordedAnswer]) -> None:
    """Writes answers to one file: all ids in a row, the lengths that cut it up, and the domains by number."""
    domains = sorted({answer.domain for answer in answers})
    ids = torch.tensor([id for a in answers for id in a.prompt + a.answer], dtype=torch.int32)
    small = bool((ids < 2**16).all())
    tensors = {
        "ids": ids.to(torch.uint16) if small else ids,
        "lengths": torch.tensor([(len(a.prompt), len(a.answer)) for a in answers], dtype=torch.int32).view(-1, 2),
        "domains": torch.tensor([domains.index(a.domain) for a in answers], dtype=torch.int32),
    }
    temporary = path.with_suffix(".partial")
    save_file(tensors, temporary, metadata={"domains": "\n".join(domains)})
    os.replace(temporary, path)


def load_answers(path: Path) -> list[RecordedAnswer]:
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        domains = (file.metadata() or {})["domains"].split("\n")
    ids: list[int] = tensors["ids"].tolist()
    answers, at = [], 0
    for domain, (prompt, answer) in zip(tensors["domains"].tolist(), tensors["lengths"].tolist(), strict=True):
        answers.append(RecordedAnswer(domains[domain], ids[at : at + prompt], ids[at + prompt : at + prompt + answer]))
        at += prompt + answer
    return answers


def load_all(folder: Path) -> list[RecordedAnswer]:
    return [answer for path in sorted(folder.glob(SHARD.replace("{:04d}", "*"))) for answer in load_answers(path)]


def drawn(answers: Sequence[RecordedAnswer]) -> RowSource:
    return lambda rng: answers[rng.randrange(len(answers))].encoded()
