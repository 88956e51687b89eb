"""``python -m engine.lab.demo.formats``: what 8 and 4 bits cost the bundled pair, in a table.

Its target's weights are rounded as ``--weights`` rounds them while loading, the drafter stays as it is. Per domain and
format: the share of held-out prompts answered right (``evaluate``'s, the first so many), and the acceptance length,
greedy. A model of 7 million parameters suffers more from rounding than one of billions. With a thread on a CPU 100
prompts take about ten minutes for each format.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

import torch

from ...commands import WeightFormat
from ...kernels.weights.kinds import MAKERS
from ...models.dflash.modules import DFlashDrafter
from ...models.packed import packable
from ...models.target import TargetModel
from ..training.generation import Sampler, speculate
from ..training.measures import speculation
from .evaluate import first_of
from .judging.checks import verdicts
from .model.files import PAIR, load_drafter, load_target
from .model.tokenizer import load_tokenizer
from .texts.conversation import encode_prompt
from .texts.exchanges import Domain

SEED = 1000
LIMIT = 1024
"""The most tokens of an answer."""
FORMATS: tuple[WeightFormat, ...] = get_args(WeightFormat)
CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Quality:
    """The figures of one domain in one format."""

    weights: WeightFormat
    domain: Domain
    prompts: int
    right: float
    """The share of the answers that pass every check."""
    acceptance_length: float


class Comparison:
    """Asks the same prompts in every format."""

    def __init__(self, prompts: int) -> None:
        self.tokenizer = load_tokenizer(PAIR / "target")
        self.questions = first_of("evaluate", prompts)

    def measure(self, weights: WeightFormat, domain: Domain, target: TargetModel) -> Quality:
        """The figures of a domain. Speculation gives the plain answers, so one pass over the prompts tells both."""
        questions = self.questions[domain]
        drafter: DFlashDrafter = load_drafter(PAIR, target)
        block = drafter.config.block_size
        prompts = [encode_prompt(self.tokenizer, question.conversation) for question in questions]
        answers = speculate(target, drafter, prompts, LIMIT, Sampler(0, SEED, CPU), block)
        texts = [self.tokenizer.decode(answer.ids) for answer in answers]
        right = [all(verdicts(text, question.right).values()) for text, question in zip(texts, questions, strict=True)]
        return Quality(weights, domain, len(right), sum(right) / len(right), speculation(answers, block).tau)


def rounded_target(pair: Path, weights: WeightFormat) -> TargetModel:
    """The target in fp32, with the weights that those of a format stand for."""
    target = load_target(pair, CPU)
    for name in list(packable(target)):
        parameter = target.get_parameter(name)
        parameter.data = MAKERS[weights](parameter.data).restored()
    return target


def table(found: Sequence[Quality]) -> str:
    """A table in Markdown: a row for each domain, two columns for each format."""
    formats = list(dict.fromkeys(each.weights for each in found))
    cells = {(each.domain, each.weights): each for each in found}
    heads = [f"{what}, {weights}" for what in ("right", "acceptance") for weights in formats]
    lines = [f"| {' | '.join(('held-out prompts', *heads))} |", "|--" * (1 + len(heads)) + "|"]
    for domain in dict.fromkeys(each.domain for each in found):
        row = [cells[domain, weights] for weights in formats]
        right = [f"{100 * each.right:.0f} %" for each in row]
        lines.append(f"| {domain} | {' | '.join((*right, *(f'{each.acceptance_length:.2f}' for each in row)))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=100, help="held-out prompts of each domain")
    parser.add_argument("--weights", choices=FORMATS, nargs="+", default=list(FORMATS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write JSON there")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    comparison = Comparison(options.prompts)
    found: list[Quality] = []
    for weights in options.weights:
        target = rounded_target(PAIR, weights)
        for domain in comparison.questions:
            found.append(comparison.measure(weights, domain, target))
            print(found[-1], flush=True)
    print(table(found))
    if options.out is not None:
        options.out.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
