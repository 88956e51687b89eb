"""Makes the bundled pair from a seed: ``python -m engine.lab.demo.build all --pair FOLDER`` (a GPU, about 12 minutes).

The phases in order: ``tokenizer``, ``target``, ``answers`` (the target's own, for the drafter), ``drafter``,
``evaluate``. Each starts from what the one before left in the folder, so they can run one by one, on different days or
machines. ``all --smoke`` runs the chain at toy size on a CPU, in two minutes. At the end the figures of each domain
stand beside those of the bundled pair's report.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ...models.dflash.config import DFlashConfig
from ..training.answers import Answers, AnswerSettings, RecordedAnswer, drawn, load_all, record_answers
from ..training.pipeline import new_drafter, save_drafter
from ..training.prompts import TrainingPrompt
from ..training.rows import Encoded, RowDataset, Source, batches
from ..training.trainer import Schedule, Trainer
from .evaluate import ANSWERS, FULL_SCALE, SMOKE_SCALE, DrafterProbe, Evaluation, Scale
from .model.files import PAIR, load_target, save_target
from .model.shapes import TINY_DRAFTER, TINY_TARGET, DFlashShape, TargetShape
from .model.target_model import TrainableTarget
from .model.tokenizer import load_tokenizer, save_tokenizer, train_tokenizer
from .model.train_target import train_target
from .report import write_report
from .texts.conversation import encode_prompt
from .texts.exchanges import Domain
from .texts.headlines import HeadlineGuard
from .texts.mixture import DRAFTER_SHARES, TOKEN_SHARES, Mixture, tokenizer_texts


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """Everything that decides the result, except the corpus and the device."""

    target: TargetShape
    drafter: DFlashShape
    seed: int
    tokenizer_texts: int
    """Exchanges of each domain from which the tokenizer's merges are learnt."""
    row_length: int
    rows: int
    """Packed rows of one update."""
    target_steps: int
    recorded: int
    """How many prompts the target answers for the drafter."""
    unfinished: bool
    """Whether answers count that were cut off at the limit; those of a toy target never end."""
    drafter_steps: int
    anchors: int
    """Drafted blocks per row."""
    answer_batch: int
    workers: int
    report_every: int
    evaluation: Scale
    target_seconds: int | None = None
    """The most seconds of training; None lets all steps run."""
    drafter_seconds: int | None = None


FULL = BuildPlan(
    target=TargetShape(),
    drafter=DFlashShape(),
    seed=1,
    tokenizer_texts=1500,
    row_length=3072,
    rows=21,
    target_steps=6500,
    recorded=12_000,
    unfinished=False,
    drafter_steps=950,
    anchors=192,
    answer_batch=2048,
    workers=14,
    report_every=475,
    evaluation=FULL_SCALE,
)
SMOKE = BuildPlan(
    target=TINY_TARGET,
    drafter=TINY_DRAFTER,
    seed=1,
    tokenizer_texts=40,
    row_length=192,
    rows=1,
    target_steps=16,
    recorded=4,
    unfinished=True,
    drafter_steps=3,
    anchors=4,
    answer_batch=4,
    workers=0,
    report_every=8,
    evaluation=SMOKE_SCALE,
)


class Build:
    """The phases over one output folder; each starts from what the one before left there."""

    def __init__(self, plan: BuildPlan, pair: Path) -> None:
        self.plan = plan
        self.pair = pair
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        os.environ["TOKENIZERS_PARALLELISM"] = "false"

    def tokenizer(self) -> None:
        texts = tokenizer_texts(f"tokenizer/{self.plan.seed}", self.plan.tokenizer_texts)
        shape = self.plan.target
        save_tokenizer(train_tokenizer(texts, shape.vocab_size), self.pair / "target", shape.max_positions)

    def target(self) -> None:
        plan = self.plan
        model = TrainableTarget(plan.target)
        model.initialise(torch.Generator().manual_seed(plan.seed))
        model.to(self.device)
        mixture = self._mixture()
        dataset = RowDataset(mixture.encoded, f"target/{plan.seed}", plan.rows * plan.target_steps, plan.row_length)
        rows = batches(dataset, plan.rows, plan.workers, self.device)
        started = time.perf_counter()
        history = train_target(model, rows, plan.target_steps, plan.report_every, plan.target_seconds)
        save_target(model, mixture.tokenizer, self.pair)
        self._note("target", {"seconds": time.perf_counter() - started, "history": [asdict(p) for p in history]})

    def answers(self) -> None:
        plan = self.plan
        model, mixture = load_target(self.pair, self.device), self._mixture(DRAFTER_SHARES)
        guard = HeadlineGuard.of(model, mixture.tokenizer, plan.evaluation.limit)
        asking = AnswerSettings(plan.answer_batch, plan.evaluation.limit, plan.seed, TEMPERATURES, plan.unfinished)

        def allowed(answer: RecordedAnswer) -> bool:
            return not guard.is_near(mixture.tokenizer.decode(answer.answer))

        (self.pair / ANSWERS).mkdir(parents=True, exist_ok=True)
        prompts = corpus_prompts(mixture, guard, plan.recorded, plan.seed)
        record_answers(model, prompts, asking, self.pair / ANSWERS, print_progress("answers"), allowed)

    def drafter(self) -> None:
        plan = self.plan
        target, mixture = load_target(self.pair, self.device), self._mixture(DRAFTER_SHARES)
        written = plan.drafter.to_config(plan.target)
        drafter = new_drafter(DFlashConfig.from_json(written), target, plan.seed)
        guard = HeadlineGuard.of(target, mixture.tokenizer, plan.evaluation.limit)
        source = blended(partial(mixture.encoded_if, guard.allows), drawn(Answers(load_all(self.pair / ANSWERS))))
        schedule = Schedule(
            plan.drafter_steps,
            plan.rows,
            plan.row_length,
            plan.anchors,
            plan.seed,
            plan.workers,
            plan.report_every,
            plan.drafter_seconds,
        )
        started = time.perf_counter()
        learner = Trainer(target, drafter, schedule)
        probe = DrafterProbe(load_target(self.pair, self.device), mixture.tokenizer, plan.evaluation)
        history = learner.run(source, print_progress("drafter"), self.pair / "training.pt", probe)
        save_drafter(learner.drafter, written, self.pair / "drafter")
        self._note("drafter", {"seconds": time.perf_counter() - started, "history": [asdict(p) for p in history]})

    def evaluate(self) -> None:
        evaluation = Evaluation(self.pair, self.device, self.plan.evaluation)
        provenance = {
            "revision": revision(),
            "seed": self.plan.seed,
            "torch": torch.__version__,
            "device": str(self.device),
        }
        for criterion in write_report(self.pair / "report.json", evaluation.run(), provenance):
            verdict = "met" if criterion.met else "NOT MET"
            print(f"{verdict:8} {criterion.name}: {criterion.value:g} ({criterion.demand})")
        print(beside_the_bundled(json.loads((self.pair / "report.json").read_text())))

    def check_smoke(self) -> None:
        """Fails unless the target began to learn and speculation changed nothing."""
        notes = json.loads((self.pair / "training.json").read_text())
        first, last = (notes["target"]["history"][at]["loss"] for at in (0, -1))
        domains = json.loads((self.pair / "report.json").read_text())["figures"]["domains"].values()
        identical = min(min(domain["identical"].values()) for domain in domains)
        print(f"smoke: target loss {first:.2f}, then {last:.2f}; identical {identical:.0%}")
        if last > 0.95 * first or identical < 1:
            raise SystemExit("the smoke run failed")

    def _mixture(self, shares: dict[Domain, float] = TOKEN_SHARES) -> Mixture:
        return Mixture(load_tokenizer(self.pair / "target"), shares)

    def _note(self, phase: str, facts: dict[str, Any]) -> None:
        """Adds what a phase measured to ``training.json``."""
        path = self.pair / "training.json"
        notes = json.loads(path.read_text()) if path.exists() else {}
        notes[phase] = facts | {"plan": asdict(self.plan)}
        path.write_text(json.dumps(notes, indent=1) + "\n")


TEMPERATURES = (0.0, 1.0)
"""Temperatures of the answers from which the drafter learns."""
CORPUS_SHARE = 0.5
"""The corpus's share of what the drafter learns from; the rest are answers that the target itself gave."""


def blended(corpus: Source, recorded: Source) -> Source:
    """Draws from the corpus or from the recorded answers, by ``CORPUS_SHARE``."""

    def draw(rng: random.Random) -> Encoded:
        return corpus(rng) if rng.random() < CORPUS_SHARE else recorded(rng)

    return draw


def corpus_prompts(mixture: Mixture, guard: HeadlineGuard, count: int, seed: int) -> list[TrainingPrompt]:
    """Training prompts of the corpus that the drafter may see. Those of one domain follow one another: their answers
    have similar lengths, so they share batches."""
    rng = random.Random(f"answers/{seed}")
    prompts: list[TrainingPrompt] = []
    for _ in range(count):
        exchange = mixture.exchange(rng)
        conversation = mixture.conversation(rng, last=exchange)
        if all(map(guard.allows, conversation.turns)):
            prompts.append(TrainingPrompt(tuple(encode_prompt(mixture.tokenizer, conversation)), exchange.domain))
    return sorted(prompts, key=lambda prompt: prompt.domain)


def print_progress(phase: str) -> Callable[[int, int, float], None]:
    def told(done: int, total: int, figure: float) -> None:
        print(f"{phase} {done:6d} of {total}  {figure:.4g}", flush=True)

    return told


def beside_the_bundled(report: dict[str, Any]) -> str:
    """A line for each domain that compares a report with the bundled pair's: share of right answers, acceptance
    length."""
    bundled = json.loads((PAIR / "report.json").read_text())["figures"]["domains"]
    lines = [f"{'domain':10}{'right':>8}{'bundled':>9}{'tau':>8}{'bundled':>9}"]
    for domain, own in report["figures"]["domains"].items():
        other = bundled[domain]
        rights = f"{own['checks']['all']:8.0%}{other['checks']['all']:9.0%}"
        lines.append(f"{domain:10}{rights}{own['held_out']['tau']:8.2f}{other['held_out']['tau']:9.2f}")
    return "\n".join(lines)


def revision() -> str:
    """The commit of the scripts; DEMO_REVISION where there is no repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--verify", "--quiet", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return os.environ.get("DEMO_REVISION") or found.stdout.strip() or "unknown"


PHASES = ("tokenizer", "target", "answers", "drafter", "evaluate")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phases", nargs="+", choices=["all", *PHASES])
    parser.add_argument("--pair", type=Path, required=True, help="output folder")
    parser.add_argument("--smoke", action="store_true", help="toy sizes, for a CPU")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=NUMBER", help="change numbers of the plan")
    arguments = parser.parse_args()
    changes: dict[str, Any] = {
        name: int(value) for name, _, value in (change.partition("=") for change in arguments.set)
    }
    plan: BuildPlan = replace(SMOKE if arguments.smoke else FULL, **changes)
    build = Build(plan, arguments.pair)
    for phase in PHASES if "all" in arguments.phases else arguments.phases:
        started = time.perf_counter()
        getattr(build, phase)()
        print(f"{phase}: {time.perf_counter() - started:.1f} s", flush=True)
    if arguments.smoke and "all" in arguments.phases:
        build.check_smoke()


if __name__ == "__main__":
    main()
