"""Measures the shipped pair on held-out prompts: answers, speculation, sizes. ``report.py`` judges the figures.

Weights as shipped (rounded to bfloat16), arithmetic in float32, greedy unless said otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import nn

from ...models.dflash.modules import DFlashDrafter
from ...models.target import TargetModel
from ..training.answers import load_all
from ..training.generation import GeneratedAnswer, Sampler, generate, speculate
from ..training.measures import calibration, speculation
from ..training.passes import BatchedTarget, PackedPass
from ..training.rows import RowDataset, batches, causal_within_documents
from .judging.checks import Right, verdicts
from .model.files import load_drafter, load_target
from .model.tokenizer import load_tokenizer
from .texts.conversation import TextTurn, TrainingText, encode_prompt
from .texts.exchanges import DOMAINS, Asking, Domain, HeldOutQuestion, read_questions
from .texts.headlines import HEADLINE_PROMPTS
from .texts.mixture import Mixture

BLOCK_SIZES = (4, 8, 16)
VARIATIONS = 5
"""How many answers at temperature 0.8 are compared with one another."""
SEED = 1000
"""The seed of sampled answers."""
ANSWERS = "answers"
"""The folder of a pair with its target's answers to the drafter's prompts."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured."""

    prompts: int
    """Held-out prompts of each domain."""
    seen: int
    """Prompts of each domain among those on which the drafter was trained."""
    probe: int
    """Prompts of each domain that are asked while the drafter trains."""
    rows: int
    """Packed rows from which the experts' shares are computed."""
    limit: int = 1024
    """Tokens after which an answer counts as one that doesn't end by itself."""


FULL_SCALE = Scale(prompts=100, seen=60, probe=16, rows=16)
SMOKE_SCALE = Scale(prompts=1, seen=1, probe=1, rows=1, limit=12)


def first_of(asking: Asking, count: int) -> dict[Domain, Sequence[HeldOutQuestion]]:
    """The first ``count`` held-out questions of each domain, or as many as there are."""
    return {domain: questions[:count] for domain, questions in read_questions(asking).items()}


class DrafterProbe:
    """Measures the acceptance in each domain while the drafter trains, which shows when to stop. Its prompts are not
    the evaluation's."""

    def __init__(self, target: TargetModel, tokenizer: Tokenizer, scale: Scale) -> None:
        self.target = target
        self.limit = scale.limit
        self.questions = [each for part in first_of("probe", scale.probe).values() for each in part]
        self.prompts = [encode_prompt(tokenizer, question.conversation) for question in self.questions]

    def __call__(self, drafter: DFlashDrafter) -> dict[str, float]:
        """Greedy acceptance length of each domain, at the drafter's block size."""
        block = drafter.config.block_size
        sampler = Sampler(0, 0, self.target.device)
        answers = speculate(self.target, drafter, self.prompts, self.limit, sampler, block)
        by_domain: dict[str, list[GeneratedAnswer]] = defaultdict(list)
        for question, answer in zip(self.questions, answers, strict=True):
            by_domain[question.domain].append(answer)
        return {domain: round(speculation(part, block).tau, 2) for domain, part in by_domain.items()}


@dataclass(frozen=True, slots=True)
class DomainAnswers:
    """A pair's answers to the questions of a domain."""

    plain: list[GeneratedAnswer]
    second: list[GeneratedAnswer]
    """The answers to the same questions as a second turn."""
    by_block: dict[int, list[GeneratedAnswer]]
    """The drafted answers, by block size."""
    seen: list[GeneratedAnswer]
    """The answers to prompts on which the drafter was trained."""
    sampled: list[GeneratedAnswer]


class Evaluation:
    def __init__(self, pair: Path, device: torch.device, scale: Scale) -> None:
        self.pair, self.device, self.scale = pair, device, scale
        self.target = load_target(pair, device).float()
        self.drafter = load_drafter(pair, self.target).float()
        self.tokenizer = load_tokenizer(pair / "target")
        self.mixture = Mixture(self.tokenizer)
        self.recorded = load_all(pair / ANSWERS)
        self.block_size = self.drafter.config.block_size

    def run(self) -> dict[str, Any]:
        """Measures all figures, ready for JSON."""
        known = {tuple(recorded.answer) for recorded in self.recorded}
        questions = first_of("evaluate", self.scale.prompts)
        told = self._told(questions)
        domains = {}
        for domain in DOMAINS:
            domains[domain] = self._domain(questions[domain], told[domain], known)
            print(domain, domains[domain], flush=True)
        drafted = [answer for each in told.values() for answer in each.by_block[self.block_size]]
        return {
            "domains": domains,
            "headlines": [self._headline(each) for part in read_questions("headline").values() for each in part],
            "variation": self._variation(),
            "calibration": [asdict(entry) for entry in calibration(drafted)],
            "least_expert_share": self._least_expert_share(),
            "bytes": self._sizes(),
        }

    def _told(self, questions: dict[Domain, Sequence[HeldOutQuestion]]) -> dict[Domain, DomainAnswers]:
        """The pair's answers to questions, all domains in one batch."""
        alone = {domain: [self._ids(each.conversation) for each in part] for domain, part in questions.items()}
        second = {domain: [self._ids(each.second) for each in part] for domain, part in questions.items()}
        seen = {
            domain: [recorded.prompt for recorded in self.recorded if recorded.domain == domain][: self.scale.seen]
            for domain in questions
        }
        widest = self.block_size
        plain, later = _in_one_batch(self._answers, alone), _in_one_batch(self._answers, second)
        by_block = {size: _in_one_batch(partial(self._drafted, block_size=size), alone) for size in BLOCK_SIZES}
        before = _in_one_batch(partial(self._drafted, block_size=widest), seen)
        sampled = _in_one_batch(partial(self._drafted, block_size=widest, temperature=1.0), alone)
        return {
            domain: DomainAnswers(
                plain[domain],
                later[domain],
                {size: answers[domain] for size, answers in by_block.items()},
                before[domain],
                sampled[domain],
            )
            for domain in questions
        }

    def _domain(
        self, questions: Sequence[HeldOutQuestion], told: DomainAnswers, known: set[tuple[int, ...]]
    ) -> dict[str, Any]:
        plain, widest = told.plain, told.by_block[self.block_size]
        unseen = [tuple(answer.ids) not in known for answer in plain]
        fresh = [answer for answer, is_new in zip(widest, unseen, strict=True) if is_new]
        return {
            "prompts": len(questions),
            "checks": self._checks(questions, plain),
            "ended": sum(answer.ended for answer in plain) / len(plain),
            "second_turn": self._checks(questions, told.second),
            "mean_tokens": sum(len(answer.ids) for answer in plain) / len(plain),
            "identical": {size: _identical(plain, answers) for size, answers in told.by_block.items()},
            "tau": {size: speculation(answers, size).tau for size, answers in told.by_block.items()},
            "held_out": asdict(speculation(widest, self.block_size)),
            "unseen_answers": len(fresh),
            "unseen": asdict(speculation(fresh, self.block_size)),
            "seen": asdict(speculation(told.seen, self.block_size)) if told.seen else None,
            "sampled": asdict(speculation(told.sampled, self.block_size)),
        }

    def _answers(self, prompts: Sequence[list[int]], temperature: float = 0.0) -> list[GeneratedAnswer]:
        return generate(self.target, prompts, self.scale.limit, Sampler(temperature, SEED, self.device))

    def _drafted(
        self, prompts: Sequence[list[int]], block_size: int, temperature: float = 0.0
    ) -> list[GeneratedAnswer]:
        sampler = Sampler(temperature, SEED, self.device)
        return speculate(self.target, self.drafter, prompts, self.scale.limit, sampler, block_size)

    def _ids(self, conversation: TrainingText) -> list[int]:
        return encode_prompt(self.tokenizer, conversation)

    def _verdicts(self, question: HeldOutQuestion, answer: GeneratedAnswer) -> dict[str, bool]:
        return verdicts(self.tokenizer.decode(answer.ids), question.right)

    def _checks(self, questions: Sequence[HeldOutQuestion], answers: list[GeneratedAnswer]) -> dict[str, float]:
        """For each check, the share of answers that pass it among those it applies to; and for all checks at once."""
        tally: dict[str, list[bool]] = defaultdict(list)
        for question, answer in zip(questions, answers, strict=True):
            found = self._verdicts(question, answer)
            for name, passed in {**found, "all": all(found.values())}.items():
                tally[name].append(passed)
        return {name: sum(passed) / len(passed) for name, passed in tally.items()}

    def _headline(self, question: HeldOutQuestion) -> dict[str, Any]:
        ids = [self._ids(question.conversation)]
        answer = self._answers(ids)[0]
        drafted = self._drafted(ids, self.block_size)
        return {
            "prompt": question.prompt,
            "checks": self._verdicts(question, answer),
            "identical": drafted[0].ids == answer.ids,
            "answer": self.tokenizer.decode(answer.ids),
            **asdict(speculation(drafted, self.block_size)),
        }

    def _variation(self) -> dict[str, int]:
        """How many different pages the drone swarm gives at temperature 0.8, and how many of them are valid."""
        ids = self._ids(TrainingText((TextTurn(HEADLINE_PROMPTS[1], ""),)))
        answers = self._answers([ids] * VARIATIONS, temperature=0.8)
        texts = [self.tokenizer.decode(answer.ids) for answer in answers]
        whole: Right = {"kind": "page", "script": True}
        return {"different": len(set(texts)), "valid": sum(verdicts(text, whole)["valid"] for text in texts)}

    @torch.no_grad()
    def _least_expert_share(self) -> float:
        """The smallest share of choices that any expert of any layer takes on packed training conversations."""
        dataset = RowDataset(self.mixture.encoded, f"experts/{SEED}", self.scale.rows, 1024)
        rows = next(batches(dataset, self.scale.rows, 0, self.device))
        chosen: list[torch.Tensor] = []
        hooks = [
            router.register_forward_hook(lambda module, inputs, outputs: chosen.append(outputs[1]))
            for router in self.target.routers
            if isinstance(router, nn.Module)
        ]
        packed = PackedPass(rows.positions, self.target.config.attention, partial(causal_within_documents, rows))
        BatchedTarget(self.target)(rows.ids, packed)
        for hook in hooks:
            hook.remove()
        assert self.target.config.moe is not None
        counts = [ids.flatten().bincount(minlength=self.target.config.moe.num_experts) for ids in chosen]
        return min(float(count.min() / count.sum()) for count in counts)

    def _sizes(self) -> dict[str, int]:
        names = ("target/model.safetensors", "target/tokenizer.json", "drafter/model.safetensors")
        return {name: (self.pair / name).stat().st_size for name in names}


def _in_one_batch(
    run: Callable[[Sequence[list[int]]], list[GeneratedAnswer]], prompts: dict[Domain, list[list[int]]]
) -> dict[Domain, list[GeneratedAnswer]]:
    """The answers of each domain, from one batch, which takes hardly longer than that of a single domain."""
    together = [prompt for part in prompts.values() for prompt in part]
    answers = iter(run(together) if together else [])
    return {domain: list(islice(answers, len(part))) for domain, part in prompts.items()}


def _identical(plain: list[GeneratedAnswer], drafted: list[GeneratedAnswer]) -> float:
    return sum(a.ids == b.ids for a, b in zip(plain, drafted, strict=True)) / len(plain)
