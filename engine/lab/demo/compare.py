"""``python -m engine.lab.demo.compare FOLDER FOLDER``: two bundled pairs on the same held-out prompts, by domain.

Greedy, block size 16, weights as shipped, fp32. Every pair reads the prompts with its own tokenizer. Ten prompts a
domain take a few minutes for each pair on a CPU.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from ..training.generation import Sampler, speculate
from ..training.measures import speculation
from .conversation import Conversation, encode_prompt
from .corpus.sample import Domain, Sample
from .files import load_drafter, load_target
from .mixture import Generator, Mixture, load_generators
from .tokenizer import load_tokenizer

LIMIT = 1024
"""Tokens of an answer."""
CPU = torch.device("cpu")
Question = tuple[Sample, Conversation]


@dataclass(frozen=True, slots=True)
class Ability:
    """What one pair makes of one domain."""

    pair: str
    domain: Domain
    prompts: int
    right: float
    """Share of the answers that pass every check."""
    checks: dict[str, float]
    """Of the answers that a check applies to, the share that passes it."""
    acceptance_length: float


def questions(mixture: Mixture, domain: Domain, count: int) -> list[Question]:
    rng = random.Random(f"compare/{domain}")
    drawn = [mixture.of_domain(rng, domain, held_out=True) for _ in range(count)]
    return [(sample, Conversation(mixture.turns(rng, sample))) for sample in drawn]


def measure(pair: Path, domain: Domain, asked: list[Question], generator: Generator) -> Ability:
    """Speculation says the plain answers, so one pass over the prompts tells both figures."""
    tokenizer, target = load_tokenizer(pair / "target"), load_target(pair, CPU)
    drafter = load_drafter(pair, target)
    block = drafter.config.block_size
    prompts = [encode_prompt(tokenizer, conversation) for _, conversation in asked]
    answers = speculate(target, drafter, prompts, LIMIT, Sampler(0, 0, CPU), block)
    verdicts = [
        generator.check(tokenizer.decode(answer.ids), sample.check)
        for answer, (sample, _) in zip(answers, asked, strict=True)
    ]
    names = sorted({name for each in verdicts for name in each})
    found = {name: [each[name] for each in verdicts if name in each] for name in names}
    return Ability(
        str(pair),
        domain,
        len(asked),
        sum(all(each.values()) for each in verdicts) / len(asked),
        {name: sum(passed) / len(passed) for name, passed in found.items()},
        round(speculation(answers, block).tau, 2),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--prompts", type=int, default=100, help="held-out prompts of each domain")
    parser.add_argument("--domains", nargs="+", metavar="DOMAIN", help="default: all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write JSON there")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    generators = load_generators()
    mixture = Mixture(load_tokenizer(options.pairs[-1] / "target"), generators)
    found: list[Ability] = []
    for domain in generators:
        if options.domains and domain not in options.domains:
            continue
        asked = questions(mixture, domain, options.prompts)
        for pair in options.pairs:
            found.append(measure(pair, domain, asked, generators[domain]))
            newest = found[-1]
            print(f"{pair}  {domain}: right {newest.right:.0%}, {newest.acceptance_length} a round", flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
