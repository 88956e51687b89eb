"""``python -m measure.gpu.train_smollm2 FOLDER``: the drafter that comes with the program, on one H200 in nine minutes.

It goes on from a drafter and its target's answers (``--begun``, the folder of an earlier run), asks SmolLM2 general
questions, trains on all answers, and measures on the hundred questions of ``measure.engine.acceptance``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from dataclasses import asdict
from pathlib import Path

import torch

from engine.hub.fetching import Fetching
from engine.hub.pairs import find_pair
from engine.loading.checkpoint import load_drafter
from engine.models.dflash.modules import DFlashDrafter
from engine.training.answers import SHARD, Asking, record_answers
from engine.training.pipeline import Pipeline, Plan
from engine.training.shape import DrafterShape

from ..engine.questions import held_out
from .general_questions import general_questions

SHORT = 128
"""Tokens of an answer that most people would read; longer ones repeat themselves, which is easily guessed."""
EARLIER = 9000
"""Numbers of an earlier run's files of answers begin here."""


class Log:
    """A line every few seconds."""

    def __init__(self) -> None:
        self.began = self.last = time.perf_counter()
        self.phase = ""

    def __call__(self, phase: str, done: int, total: int, remark: str) -> None:
        now = time.perf_counter()
        if phase != self.phase or now - self.last > 5 or done == total:
            self.phase, self.last = phase, now
            print(f"{now - self.began:7.1f} s  {phase} {done} of {total}  {remark}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="smollm2")
    parser.add_argument("--begun", type=Path)
    parser.add_argument("--held-out", type=int, default=100)
    parser.add_argument("--measured-tokens", type=int, default=512, help="of a held-out answer")
    parser.add_argument("--minutes", type=float, default=8.6)
    parser.add_argument("--questions", type=int, default=20_480)
    parser.add_argument("--tokens", type=int, default=384, help="of a new answer")
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--anchors", type=int, default=512)
    parser.add_argument("--decay", type=float, default=4.0)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    wanted = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    log = Log()
    wanted.folder.mkdir(parents=True, exist_ok=True)
    asked, measured = wanted.folder / "questions.txt", wanted.folder / "held_out.jsonl"
    asked.write_text("\n".join(general_questions(wanted.questions)))
    measured.write_text("\n".join(json.dumps({"prompt": q, "domain": form}) for form, q in held_out(wanted.held_out)))
    plan = Plan(
        shape=DrafterShape(layers=4, nbytes=23_900_000),
        prompts=wanted.questions,
        answer_tokens=wanted.measured_tokens,
        batch=wanted.batch,
        steps=wanted.steps,
        rows=wanted.rows,
        anchors=wanted.anchors,
        decay=wanted.decay,
        workers=wanted.workers,
        report_every=1500,
        minutes=wanted.minutes,
    )
    folders = find_pair(wanted.target, "none", Fetching(offline=True))
    device = torch.device(wanted.device)
    pipeline = Pipeline(folders.target, folders.name, wanted.folder, plan, device, log, asked, measured, wanted.begun)
    log("loaded", 0, 1, "")
    if wanted.begun is not None:
        for number, path in enumerate(sorted((wanted.begun / "work").glob(SHARD.replace("{:04d}", "*")))):
            shutil.copy(path, pipeline.work / SHARD.format(EARLIER + number))
    prompts, apart = pipeline.split_prompts()
    greedy = Asking(plan.batch, wanted.tokens, plan.seed, (0.0,))
    record_answers(
        pipeline.target,
        prompts,
        greedy,
        pipeline.work,
        lambda done, total, tokens: log("answers", done, total, f"{tokens} tokens in the last batch"),
    )
    if device.type == "cuda":
        torch.cuda.empty_cache()  # answers took most of it, in other sizes
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
