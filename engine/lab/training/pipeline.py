"""Goes from a target to its drafter: prompts, the target's answers, training, a report. Every phase keeps what it has
made in the folder, so that a stopped run goes on from there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Literal, cast

import torch
from safetensors.torch import save_file
from torch import nn

from ...errors import UsageFailure
from ...loading.checkpoint import load_drafter, load_target
from ...models.dflash.config import DFlashConfig
from ...models.dflash.modules import DFlashDrafter
from ...models.target import TargetModel
from ...tokenization.tokenizer import ChatTokenizer
from .answers import AnswerSettings, RecordedAnswer, drawn, load_all, record_answers
from .blocks import DECAY
from .generation import GeneratedAnswer, Sampler, generate, speculate
from .measures import Speculation, speculation
from .prompts import MARK, Inventor, TrainingPrompt, asked, invent, read_prompts, split, write_text
from .shape import DrafterShape, drafter_json, mask_token
from .trainer import Schedule, Trainer, initialise

PhaseName = Literal["prompts", "answers", "drafter", "report"]
ALL = "all"
TEMPERATURES = (0.0, 0.0, 0.8)
"""Temperatures of the answers, in turn: two of three are greedy."""
PROBED, PROBED_TOKENS = 24, 128
"""How many held-out prompts are asked while training runs, and tokens of their answers."""
INVENTED_BY, ANSWERED_BY = 0.08, 0.25
"""The shares of a limited time by which prompts are invented, and answered."""
LEAST_PROMPTS = 2
"""The fewest prompts: one to train on, and one held out."""
TOGETHER = 256
"""Held-out prompts that are answered together."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """Everything that decides the result, except the target and the device."""

    shape: DrafterShape = field(default_factory=DrafterShape)
    prompts: int = 40_000
    """How many prompts to invent, where no file gives any."""
    held_out: int = 100
    """Prompts that are never trained on; the report is about them."""
    answer_tokens: int = 512
    """The most tokens of an answer."""
    batch: int = 2048
    """How many texts the target writes together."""
    steps: int = 2000
    rows: int = 32
    row_length: int = 2048
    anchors: int = 128
    decay: float = DECAY
    seed: int = 1
    report_every: int = 250
    minutes: float | None = None
    """Minutes of all work except the report; prompts and steps are then as many as there is time for. None: no
    limit."""


Announce = Callable[[PhaseName, int, int, str], None]
"""Called now and then with (phase, done, in all, a remark)."""


class Pipeline:
    """Makes a drafter for one target in one output folder. ``target`` is a checkpoint's folder."""

    def __init__(
        self,
        target: Path,
        name: str,
        folder: Path,
        plan: TrainingPlan,
        device: torch.device,
        report: Announce,
        prompts: Path | None = None,
        held_out: Path | None = None,
        begun: Path | None = None,
    ) -> None:
        """``begun``: the folder of a drafter of the same shape, from whose weights training starts."""
        self.target_folder, self.name, self.folder, self.plan, self.announce = target, name, folder, plan, report
        self.work = folder / "work"
        """What phases leave for one another. It may be deleted once the drafter is done."""
        self.work.mkdir(parents=True, exist_ok=True)
        self.prompts_file, self.held_out_file, self.begun = prompts, held_out, begun
        self._same_plan()
        self.began = time.perf_counter()
        self.tokenizer = ChatTokenizer(target)
        self.target = load_target(target, device, lambda *_: None)
        self._answered: dict[TrainingPrompt, GeneratedAnswer] = {}

    def run(self) -> dict[str, Any]:
        """Runs all phases; returns the report."""
        train_on, held_out = self.split_prompts()
        self.answers(train_on)
        self.drafter(held_out)
        return self.report(held_out)

    def _left(self, share: float = 1.0) -> float:
        """Seconds until this share of the time is over."""
        minutes = self.plan.minutes
        return inf if minutes is None else self.began + 60 * minutes * share - time.perf_counter()

    def _same_plan(self) -> None:
        """Raises ``UsageFailure`` where the folder holds the beginnings of another drafter."""
        mine = json.loads(json.dumps({"target": self.name, **asdict(self.plan)}))
        path = self.work / "plan.json"
        if path.exists() and (stored := json.loads(path.read_text("utf-8"))) != mine:
            other = ", ".join(name for name in mine if stored.get(name) != mine[name])
            raise UsageFailure(
                f"{self.folder} holds a drafter that was begun with another plan: {other}.",
                "Name another folder, or delete this one.",
            )
        write_text(path, json.dumps(mine, indent=1))

    def split_prompts(self) -> tuple[list[TrainingPrompt], list[TrainingPrompt]]:
        """The prompts to train on, and those held out; from files, or invented."""
        plan = self.plan
        if self.prompts_file is not None:
            prompts = read_prompts(self.prompts_file, self.tokenizer)
        else:
            texts = invent(
                Inventor(self.target, self.tokenizer, plan.seed),
                plan.prompts,
                plan.batch,
                self.work,
                lambda done, total: self.announce("prompts", done, total, ""),
                lambda: self._left(INVENTED_BY) < 0,
            )
            prompts = asked(texts, self.tokenizer)
        room = self.target.config.max_context - plan.answer_tokens
        longest = min(room, plan.row_length // 2)
        prompts = [prompt for prompt in prompts if len(prompt.ids) <= longest]
        if len(prompts) < LEAST_PROMPTS:
            raise UsageFailure(
                f"Only {len(prompts)} prompts have at most {longest} tokens, half a row of text.",
                f"Give it {LEAST_PROMPTS} or more, shorter ones, or make rows longer.",
            )
        if self.held_out_file is None:
            return split(prompts, plan.held_out, plan.seed)
        apart = read_prompts(self.held_out_file, self.tokenizer)
        known = {prompt.ids for prompt in apart}
        return split([prompt for prompt in prompts if prompt.ids not in known], 0, plan.seed)[0], apart

    def answers(self, prompts: Sequence[TrainingPrompt]) -> None:
        def report(done: int, total: int, tokens: int) -> None:
            self.announce("answers", done, total, f"{tokens} tokens in the last batch")

        asking = AnswerSettings(self.plan.batch, self.plan.answer_tokens, self.plan.seed, TEMPERATURES)
        record_answers(self.target, prompts, asking, self.work, report, enough=lambda: self._left(ANSWERED_BY) < 0)

    def drafter(self, held_out: Sequence[TrainingPrompt]) -> None:
        """Trains the drafter and writes it to the folder."""
        plan = self.plan
        before, behind = self.tokenizer.around(MARK)
        mask = mask_token(self.target.config, self.tokenizer, {*before, *behind})
        written = drafter_json(plan.shape, self.target.config, self.target.embedding_scale, mask)
        schedule = Schedule(
            plan.steps,
            plan.rows,
            plan.row_length,
            plan.anchors,
            plan.seed,
            plan.report_every,
            None if plan.minutes is None else max(self._left(), 1.0),
            plan.decay,
        )
        self._train(written, schedule, held_out)

    def _train(self, written: dict[str, Any], schedule: Schedule, held_out: Sequence[TrainingPrompt]) -> None:
        config = DFlashConfig.from_json(written)
        drafter = new_drafter(config, self.target, schedule.seed)
        if self.begun is not None:
            self._go_on(drafter, self.begun)
        recorded = load_all(self.work)
        if not recorded:
            raise UsageFailure("No answer has been recorded.", "Allow longer answers, or give it other prompts.")

        def probe(trained: DFlashDrafter) -> dict[str, float]:
            save_drafter(trained, written, self.folder)
            figures = self.acceptance(trained, held_out[:PROBED], PROBED_TOKENS)
            return {domain: round(each.tau, 2) for domain, each in figures.items()}

        def report(step: int, steps: int, loss: float) -> None:
            lengths = ""
            if learner.history:
                last = learner.history[-1]
                lengths = (
                    f"; at {last.step} {last.held_out_loss:.3f} held out, acceptance length {last.acceptance[ALL]}"
                )
            self.announce("drafter", step, steps, f"loss {loss:.3f}{lengths}")

        plain = zip(held_out, self._plain(held_out), strict=True)
        apart = [RecordedAnswer(prompt.domain, list(prompt.ids), answer.ids).encoded() for prompt, answer in plain]
        learner = Trainer(self.target, drafter, schedule)
        learner.run(drawn(recorded), report, self.work / "training.pt", probe, apart)
        history = {
            "tokens": sum(len(each.answer) for each in recorded),
            "history": [asdict(p) for p in learner.history],
        }
        write_text(self.work / "history.json", json.dumps(history, indent=1))

    def _go_on(self, drafter: DFlashDrafter, folder: Path) -> None:
        """Takes over the weights of a drafter; raises ``UsageFailure`` where it has another shape."""
        before = cast(DFlashDrafter, load_drafter(folder, self.target, lambda *_: None))
        if before.config != drafter.config:
            raise UsageFailure(f"The drafter in {folder} has another shape.", "Ask for the same layers and size.")
        drafter.load_state_dict(before.state_dict())

    def report(self, held_out: Sequence[TrainingPrompt]) -> dict[str, Any]:
        """Measures the drafter as it is stored, on prompts it has never seen, and writes ``report.json``."""
        started = time.perf_counter()
        self.announce("report", 0, len(held_out), "")
        drafter = cast(DFlashDrafter, load_drafter(self.folder, self.target, lambda *_: None))
        answers = self._drafted(drafter, held_out, self.plan.answer_tokens)
        plain = self._plain(held_out)
        same = sum(one.ids == other.ids for one, other in zip(answers, plain, strict=True))
        device = self.target.device
        report = {
            "target": self.name,
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
            "dtype": str(self.target.dtype).removeprefix("torch."),
            "torch": torch.__version__,
            "plan": asdict(self.plan),
            "parameters": sum(parameter.numel() for parameter in drafter.parameters()),
            "held_out": {"prompts": len(held_out), "same_text": same},
            "acceptance": {name: asdict(each) for name, each in self._figures(drafter, held_out, answers).items()},
            "training": json.loads((self.work / "history.json").read_text("utf-8")),
            "report_seconds": round(time.perf_counter() - started, 1),
        }
        write_text(self.folder / "report.json", json.dumps(report, indent=1) + "\n")
        self.announce("report", len(held_out), len(held_out), "")
        return report

    def acceptance(
        self, drafter: DFlashDrafter, prompts: Sequence[TrainingPrompt], tokens: int
    ) -> dict[str, Speculation]:
        """Greedy acceptance by domain and over all, on the first ``tokens`` tokens of each answer."""
        return self._figures(drafter, prompts, self._drafted(drafter, prompts, tokens))

    def _figures(
        self, drafter: DFlashDrafter, prompts: Sequence[TrainingPrompt], answers: Sequence[GeneratedAnswer]
    ) -> dict[str, Speculation]:
        block = drafter.config.block_size
        by_domain: dict[str, list[GeneratedAnswer]] = {ALL: list(answers)}
        for prompt, answer in zip(prompts, answers, strict=True):
            by_domain.setdefault(prompt.domain, []).append(answer)
        return {domain: speculation(answers, block) for domain, answers in by_domain.items()}

    def _drafted(self, drafter: DFlashDrafter, prompts: Sequence[TrainingPrompt], limit: int) -> list[GeneratedAnswer]:
        block = drafter.config.block_size
        return [
            answer
            for batch in _parts(prompts)
            for answer in speculate(self.target, drafter, [p.ids for p in batch], limit, self._greedy(), block)
        ]

    def _plain(self, prompts: Sequence[TrainingPrompt]) -> list[GeneratedAnswer]:
        """The target's own greedy answers; they are kept, since training and the report need the same ones."""
        known, limit = self._answered, self.plan.answer_tokens
        for batch in _parts([prompt for prompt in prompts if prompt not in known]):
            answers = generate(self.target, [p.ids for p in batch], limit, self._greedy())
            known.update(zip(batch, answers, strict=True))
        return [known[prompt] for prompt in prompts]

    def _greedy(self) -> Sampler:
        return Sampler(0, 0, self.target.device)


def _parts(prompts: Sequence[TrainingPrompt]) -> list[Sequence[TrainingPrompt]]:
    return [prompts[begin : begin + TOGETHER] for begin in range(0, len(prompts), TOGETHER)]


def new_drafter(config: DFlashConfig, target: TargetModel, seed: int) -> DFlashDrafter:
    drafter = config.build()
    initialise(drafter, seed)
    drafter = drafter.to(target.device)
    drafter.prepare()
    return drafter


def save_weights(model: nn.Module, folder: Path) -> None:
    """Writes a model's weights in bf16 to ``model.safetensors``."""
    tensors = {
        name: tensor.detach().to("cpu", torch.bfloat16).contiguous()
        for name, tensor in sorted(model.state_dict().items())
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def save_drafter(drafter: DFlashDrafter, written: dict[str, Any], folder: Path) -> None:
    """Writes a drafter in the published layout: ``config.json`` and bf16 weights under the published names."""
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(drafter, folder)
    write_text(folder / "config.json", json.dumps(written, indent=2) + "\n")
