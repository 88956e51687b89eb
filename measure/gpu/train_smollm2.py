"""``python -m measure.gpu.train_smollm2 FOLDER``: trains the drafter that comes with the program, on one H200 in nine
minutes.

It goes on from a drafter (``--begun``, the shipped one or the folder of an earlier run, whose answers then count, too),
asks SmolLM2 general questions, a quarter of them behind an answer of its own, learns every answer once, and measures on
the hundred questions of ``measure.engine.acceptance``. Learning the same answers again and again brought the loss down
and the acceptance of new ones with it: so there are many, and the held-out loss is printed beside the other."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path

import torch

from engine.commands import Message
from engine.hub.fetching import Fetching
from engine.hub.own_drafters import own_drafter
from engine.hub.pairs import find_pair
from engine.lab.training.answers import SHARD, AnswerSettings, Recorded, load_answers, record_answers
from engine.lab.training.pipeline import Pipeline, TrainingPlan
from engine.lab.training.prompts import MARK, Prompt
from engine.lab.training.shape import DrafterShape
from engine.loading.checkpoint import load_drafter
from engine.models.dflash.modules import DFlashDrafter
from engine.tokenizer import ChatTokenizer

from ..engine.questions import held_out
from .general_questions import FOLLOW_UPS, general_questions

SHORT = 128
"""Tokens of an answer that most people would read; longer ones repeat themselves, which is easily guessed."""
FOLLOWED = 160
"""The most tokens of an answer that gets a follow-up."""
TEMPERATURES = (0.0, 0.0, 0.7)
"""Temperatures of the answers, in turn: what is measured is greedy."""
ASKED_BY, FOLLOWED_BY = 0.5, 0.65
"""The shares of the time by which first answers, and all answers, are there."""
EARLIER = 9000
"""The number at which an earlier run's files of answers begin."""


class Log:
    """Prints a line every few seconds."""

    def __init__(self) -> None:
        self.began = self.last = time.perf_counter()
        self.phase = ""

    def __call__(self, phase: str, done: int, total: int, remark: str) -> None:
        now = time.perf_counter()
        if phase != self.phase or now - self.last > 5 or done == total:
            self.phase, self.last = phase, now
            print(f"{now - self.began:7.1f} s  {phase} {done} of {total}  {remark}", flush=True)


def answer(pipeline: Pipeline, prompts: Sequence[Prompt], asking: AnswerSettings, log: Log) -> None:
    """Records the answers: three quarters of the prompts are asked at once, the rest behind some of those answers."""
    minutes, size = pipeline.plan.minutes or inf, asking.batch

    def told(done: int, total: int, tokens: int) -> None:
        log("answers", done, total, f"{tokens} tokens in the last batch")

    def ask(prompts: Sequence[Prompt], share: float) -> None:
        deadline = pipeline.began + 60 * minutes * share
        record_answers(
            pipeline.target, prompts, asking, pipeline.work, told, enough=lambda: time.perf_counter() > deadline
        )

    first = prompts[: max(len(prompts) * 3 // 4 // size, 1) * size]
    ask(first, ASKED_BY)
    batches = [path for n in range(len(first)) if (path := pipeline.work / SHARD.format(n)).exists()]
    said = [each for path in batches for each in load_answers(path) if len(each.answer) <= FOLLOWED]
    behind = [
        follow_up(pipeline.tokenizer, each, index) for index, each in enumerate(said[: len(prompts) - len(first)])
    ]
    ask([*first[: len(batches) * size], *behind], FOLLOWED_BY)


def follow_up(tokenizer: ChatTokenizer, said: Recorded, index: int) -> Prompt:
    """The prompt of a follow-up to an answer."""
    before, behind = tokenizer.around(MARK)
    question = tokenizer.decode(said.prompt[len(before) : len(said.prompt) - len(behind)])
    answer = tokenizer.decode([id for id in said.answer if id not in tokenizer.special_ids])
    talk = (
        Message("user", question),
        Message("assistant", answer),
        Message("user", FOLLOW_UPS[index % len(FOLLOW_UPS)]),
    )
    return Prompt(tokenizer.prompt(talk, thinking=False).ids, said.domain)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="smollm2")
    parser.add_argument("--begun", type=Path, default=own_drafter("SmolLM2-135M-Instruct-DFlash"))
    parser.add_argument("--from-nothing", action="store_true", help="begin with weights by chance")
    parser.add_argument("--rate", type=float, default=0.5, help="of the usual learning rates")
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--held-out", type=int, default=100)
    parser.add_argument("--measured-tokens", type=int, default=512, help="of a held-out answer")
    parser.add_argument("--minutes", type=float, default=8.6)
    parser.add_argument("--questions", type=int, default=98_304, help="in all; as many as there is time for")
    parser.add_argument("--tokens", type=int, default=384, help="of a new answer")
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--anchors", type=int, default=512)
    parser.add_argument("--decay", type=float, default=4.0)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--report-every", type=int, default=500)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    wanted = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    log = Log()
    wanted.folder.mkdir(parents=True, exist_ok=True)
    asked, measured = wanted.folder / "questions.txt", wanted.folder / "held_out.jsonl"
    asked.write_text("\n".join(general_questions(wanted.questions)))
    measured.write_text("\n".join(json.dumps({"prompt": q, "domain": form}) for form, q in held_out(wanted.held_out)))
    plan = TrainingPlan(
        shape=DrafterShape(layers=4, nbytes=23_900_000),
        prompts=wanted.questions,
        answer_tokens=wanted.measured_tokens,
        batch=wanted.batch,
        steps=wanted.steps,
        rows=wanted.rows,
        anchors=wanted.anchors,
        decay=wanted.decay,
        workers=wanted.workers,
        report_every=wanted.report_every,
        minutes=wanted.minutes,
        once=True,
        rate=wanted.rate,
        weight_decay=wanted.weight_decay,
    )
    folders = find_pair(wanted.target, "none", Fetching(offline=True))
    device = torch.device(wanted.device)
    begun: Path | None = None if wanted.from_nothing else wanted.begun
    pipeline = Pipeline(folders.target, folders.name, wanted.folder, plan, device, log, asked, measured, begun)
    log("loaded", 0, 1, "")
    earlier = [] if begun is None else sorted((begun / "work").glob(SHARD.replace("{:04d}", "*")))
    for number, path in enumerate(earlier):
        shutil.copy(path, pipeline.work / SHARD.format(EARLIER + number))
    prompts, apart = pipeline.split_prompts()
    answer(pipeline, prompts, AnswerSettings(plan.batch, wanted.tokens, plan.seed, TEMPERATURES), log)
    if device.type == "cuda":
        torch.cuda.empty_cache()  # answers took most of the memory, in other sizes
    pipeline.drafter(apart)
    drafter = load_drafter(wanted.folder, pipeline.target, lambda *_: None)
    assert isinstance(drafter, DFlashDrafter)
    short = {name: asdict(each) for name, each in pipeline.acceptance(drafter, apart, SHORT).items()}
    report = pipeline.report(apart)
    for tokens, figures in ((SHORT, short), (plan.answer_tokens, report["acceptance"])):
        for name, each in figures.items():
            print(f"{tokens} tokens  {name:42} {each['tau']:.3f} {each['by_position']}", flush=True)
    print(json.dumps(report["training"]["history"]), report["held_out"], flush=True)


if __name__ == "__main__":
    main()
