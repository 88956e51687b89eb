"""``python -m engine.lab.demo.confirm``: checks the bundled pair with the engine itself, on this machine.

``report.json`` was written where the pair was trained, by batched code. This command asks the same held-out prompts
through the engine that people use, one at a time, and prints for each domain: whether speculation changed a token, the
acceptance length, and tokens per second with and without speculation. The two ways take turns on every prompt, so that
whatever else the machine does affects both."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import geometric_mean
from time import perf_counter
from typing import Any

import torch

from ...commands import GenerationSettings
from ...decoding.decoder import Decoder, Prompt, Round
from ...hub.pairs import BUNDLED_PAIR
from ...loading.checkpoint import compute_dtype, load_drafter, load_target, pick_device
from ...speculation.lookup import num_agreed
from ...tokenization.tokenizer import ChatTokenizer
from ..judging.selftest import margin
from .held_out import HeldOutQuestion, read_questions

BLOCK_SIZES = (4, 8, 16)
MAX_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class Answered:
    """One decoded answer. ``seconds`` counts the rounds after the first token."""

    ids: tuple[int, ...]
    rounds: tuple[Round, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class DepartedAnswer:
    """The place where a speculative answer departed from the plain one, and how close the plain one's two best tokens
    were there."""

    domain: str
    block_size: int
    temperature: float
    index: int
    margin: float


@dataclass(slots=True)
class DomainTotals:
    """What the answers to the prompts of one domain add up to."""

    answers: int = 0
    compared: int = 0
    divergences: list[DepartedAnswer] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    drafted: list[float] = field(default_factory=list)
    accepted: int = 0
    rounds: int = 0

    def row(self) -> dict[str, Any]:
        speed_ups = [drafted / plain for plain, drafted in zip(self.plain, self.drafted, strict=True)]
        return {
            "answers": self.answers,
            "identical": f"{self.compared - len(self.divergences)}/{self.compared}",
            "acceptance_length": round(1 + self.accepted / self.rounds, 2) if self.rounds else 0.0,
            "ar_tok_s": round(geometric_mean(self.plain)),
            "dflash_tok_s": round(geometric_mean(self.drafted)),
            "speed_up": round(geometric_mean(speed_ups), 2),
        }


class Confirmation:
    """Plays prompts on a freshly loaded bundled pair."""

    def __init__(self, device: torch.device, dtype: torch.dtype, max_new_tokens: int) -> None:
        target = load_target(BUNDLED_PAIR / "target", device, lambda *_: None)
        drafter = load_drafter(BUNDLED_PAIR / "drafter", target, lambda *_: None)
        self.decoder = Decoder(target.to(dtype), drafter.to(dtype), MAX_CONTEXT)
        self.max_new_tokens = max_new_tokens

    def answer(self, ids: Sequence[int], block_size: int | None, temperature: float) -> Answered:
        """Decodes from scratch; ``block_size`` None is plain decoding."""
        settings = GenerationSettings(
            block_size=block_size or 16,
            speculation=block_size is not None,
            temperature=temperature,
            seed=1,
            max_new_tokens=self.max_new_tokens,
        )
        self.decoder.clear()
        rounds: list[Round] = []
        started = 0.0
        for progress in self.decoder.decode(Prompt(tuple(ids), len(ids)), lambda: settings):
            if isinstance(progress, Round):
                rounds.append(progress)
                started = started or perf_counter()
        seconds = perf_counter() - started
        return Answered(tuple(token for each in rounds for token in each.emitted), tuple(rounds), seconds)

    def compare(
        self, tally: DomainTotals, question: HeldOutQuestion, ids: Sequence[int], temperatures: Sequence[float]
    ) -> None:
        """Asks one prompt plainly and with every block size, at every temperature."""
        tally.answers += 1
        for temperature in temperatures:
            plain = self.answer(ids, None, temperature)
            for block_size in BLOCK_SIZES:
                drafted = self.answer(ids, block_size, temperature)
                tally.compared += 1
                if drafted.ids != plain.ids:
                    index = num_agreed(plain.ids, drafted.ids)
                    near = margin(self.decoder, [*ids, *plain.ids[:index]])
                    tally.divergences.append(DepartedAnswer(question.domain, block_size, temperature, index, near))
                if block_size == BLOCK_SIZES[-1] and temperature == 0 and len(plain.ids) > 1:
                    self._time(tally, plain, drafted)

    def _time(self, tally: DomainTotals, plain: Answered, drafted: Answered) -> None:
        tally.plain.append((len(plain.ids) - 1) / plain.seconds)
        tally.drafted.append((len(drafted.ids) - 1) / drafted.seconds)
        # The last cycle of an answer is left out: the stop token cuts it short.
        cycles = [each for each in drafted.rounds if each.draft_ids][:-1]
        tally.accepted += sum(each.num_accepted for each in cycles)
        tally.rounds += len(cycles)


def questions(prompts: int) -> Iterator[tuple[HeldOutQuestion, list[int]]]:
    """Held-out questions with their prompts' ids, domain after domain: the first ``prompts`` of those that the report
    is about."""
    tokenizer = ChatTokenizer(BUNDLED_PAIR / "target")
    for of_domain in read_questions("evaluate").values():
        for question in of_domain[:prompts]:
            yield question, list(tokenizer.prompt(question.messages, thinking=False).ids)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=34, help="held-out prompts of each domain")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.0, 0.8])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), help="default: fp32 on the CPU, bf16 on a GPU")
    parser.add_argument("--max-new-tokens", type=int, default=1024)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device = pick_device(arguments.device)
    dtype: torch.dtype = getattr(torch, arguments.dtype) if arguments.dtype else compute_dtype(device)
    confirmation = Confirmation(device, dtype, arguments.max_new_tokens)
    tallies: dict[str, DomainTotals] = {}
    for question, ids in questions(arguments.prompts):
        confirmation.compare(tallies.setdefault(question.domain, DomainTotals()), question, ids, arguments.temperatures)
    divergences = [each for tally in tallies.values() for each in tally.divergences]
    if arguments.json:
        print(json.dumps({domain: tally.row() for domain, tally in tallies.items()}))
        return
    print(f"{'domain':10}{'identical':>12}{'tau':>8}{'AR tok/s':>10}{'DFlash':>10}{'speed-up':>10}")
    for domain, tally in tallies.items():
        row = tally.row()
        print(
            f"{domain:10}{row['identical']:>12}{row['acceptance_length']:>8}{row['ar_tok_s']:>10}"
            f"{row['dflash_tok_s']:>10}{row['speed_up']:>10}"
        )
    for each in divergences:
        print(each)


if __name__ == "__main__":
    main()
