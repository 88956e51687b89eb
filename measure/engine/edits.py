"""``python -m measure.engine.edits``: what speculation is worth where a file in the prompt is edited.

Asks for ten tasks of the bundled pair in each way, in turns, at every temperature. Prints for each task: answers that
are right to the character, texts that differ from the target's own, tokens per round, and tokens per second. At the end
a table for each temperature."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from statistics import geometric_mean
from time import perf_counter

import torch

from engine.commands import EngineOptions, Message, Settings
from engine.events import EngineReady, Event, Step
from engine.lab.demo.held_out import HeldOutQuestion, read_questions
from engine.lab.demo.judging.checks import verdicts
from engine.library import Pair
from engine.service import load_runner
from engine.speculation.auto import Auto
from measure.engine.recorded_costs import recorded_tables
from measure.quick import parse

TASKS = (
    "rename_function", "set_constant", "add_docstring", "reverse_imports", "replace_line", "fix_typo",
    "quote_paragraph", "continue_list", "translate_header", "extract_lines",
)  # fmt: skip
WAYS: dict[str, Settings] = {
    "none": {"speculation": False},
    "drafter": {"draft_by": "drafter"},
    "lookup": {"draft_by": "lookup"},
    "both": {},
}
"""Ways to speculate, as settings. The first one is the baseline of the others."""
Figures = dict[str, dict[str, dict[str, float]]]
"""By task and way: the figures of ``Tally.row``."""


@dataclass(frozen=True, slots=True)
class Run:
    ids: tuple[int, ...]
    text: str
    rounds: int
    seconds: float
    """Seconds after the first token."""

    @property
    def tokens_per_second(self) -> float:
        return (len(self.ids) - 1) / self.seconds


@dataclass(slots=True)
class Tally:
    """The totals of one way at one task."""

    right: int = 0
    differing: int = 0
    tokens: int = 0
    rounds: int = 0
    speeds: list[float] = field(default_factory=list)

    def add(self, run: Run, own: Run, right: bool) -> None:
        self.right += right
        self.differing += run.ids != own.ids
        self.tokens += len(run.ids)
        self.rounds += run.rounds
        self.speeds.append(run.tokens_per_second)

    def row(self) -> dict[str, float]:
        return {
            "answers": len(self.speeds),
            "right": self.right,
            "differing": self.differing,
            "tokens_per_round": round(self.tokens / self.rounds, 2),
            "tok_s": round(geometric_mean(self.speeds), 1),
        }


def edits(task: str, count: int) -> list[HeldOutQuestion]:
    """Held-out edits of one task, preferring files that are worth copying; ten of each are kept."""
    return [each for each in read_questions("edits")["edit"] if each.right["task"] == task][:count]


def run(pair: Pair, prompt: str, temperature: float, settings: Settings) -> Run:
    messages = (Message("user", prompt),)
    ids: list[int] = []
    text: list[str] = []
    rounds, started = 0, 0.0
    whole: Settings = {"temperature": temperature, "seed": 1, **settings}
    for event in pair.generate(messages, **whole):
        if isinstance(event, Step):
            ids += [token.id for token in event.emitted if token.id is not None]
            text += [token.text for token in event.emitted if token.channel == "answer"]
            rounds += bool(started)
            started = started or perf_counter()
    return Run(tuple(ids), "".join(text), max(rounds, 1), perf_counter() - started)


def _load(costs: str | None) -> Pair:
    """Loads the bundled pair. With recorded costs its rounds are the same on any machine, however busy."""
    told: list[Event] = []
    runner = load_runner(EngineOptions(time_rounds=True), told.append)
    assert runner is not None, "nothing cancels this"
    if costs is not None:
        runner.decoder.use_policy(Auto(recorded_tables()[costs], fuses=runner.decoder.rounds.fuses))
    return Pair(runner, next(event for event in told if isinstance(event, EngineReady)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=10, help="of each task, at most ten")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.0, 0.8])
    parser.add_argument("--draft", nargs="+", choices=tuple(WAYS), default=list(WAYS))
    parser.add_argument(
        "--costs", choices=sorted(recorded_tables()), help="guess by what rounds take there, not on this machine"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parse(parser, "--answers 1 --tasks continue_list --temperatures 0 --draft none both")
    torch.set_num_threads(arguments.threads)
    figures: dict[str, Figures] = {}
    with _load(arguments.costs) as pair:
        for temperature in arguments.temperatures:
            by_task = figures[f"{temperature:g}"] = {}
            for task in arguments.tasks:
                tallies = {way: Tally() for way in arguments.draft}
                for question in edits(task, arguments.answers):
                    runs = {way: run(pair, question.prompt, temperature, WAYS[way]) for way in tallies}
                    for way, one in runs.items():
                        right = verdicts(one.text, question.right)["exact"]
                        tallies[way].add(one, runs[arguments.draft[0]], right)
                by_task[task] = {way: tally.row() for way, tally in tallies.items()}
                if not arguments.json:
                    _show(f"T={temperature:g} {task}", tallies)
    if arguments.json:
        print(json.dumps(figures, indent=1))
        return
    for temperature in arguments.temperatures:
        print(f"\nT={temperature:g}\n\n{table(figures[f'{temperature:g}'])}", flush=True)


def table(figures: Figures) -> str:
    """A table in Markdown with a row for each task: tokens per round of every way that speculates, and tokens per
    second of all."""
    ways = list(next(iter(figures.values())))
    guessing = [way for way in ways if WAYS[way] != WAYS["none"]]
    heads = [
        "task",
        "right",
        "differ",
        *(f"tokens a round, {way}" for way in guessing),
        *(f"tok/s, {way}" for way in ways),
    ]
    lines = [f"| {' | '.join(heads)} |", "|--" * len(heads) + "|"]
    for task, rows in figures.items():
        first = rows[ways[0]]
        cells = [task, f"{first['right']} of {first['answers']}", str(sum(row["differing"] for row in rows.values()))]
        cells += [f"{rows[way]['tokens_per_round']:.2f}" for way in guessing]
        cells += [f"{rows[way]['tok_s']:.0f}" for way in ways]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _show(name: str, tallies: dict[str, Tally]) -> None:
    for way, tally in tallies.items():
        row = tally.row()
        print(
            f"{name:26}{way:10}{row['right']:4}/{row['answers']} right{row['differing']:4} differ"
            f"{row['tokens_per_round']:8} tokens a round{row['tok_s']:8} tok/s",
            flush=True,
        )


if __name__ == "__main__":
    main()
