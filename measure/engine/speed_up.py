"""``python -m measure.engine.speed_up``: a table of the number that the screen shows beside what answers with and
without speculation took, in turns: five starts of the program on a quiet machine and five beside a process that never
rests, one after the other. What they took is told in processor time, which other programs hardly change: clocks of a
busy machine differ by a third from one turn to the next. Needs no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from statistics import geometric_mean, median
from time import process_time

from dflash_tui.core.rounds.factor import Around, after, factor_of
from engine.commands import Ask, EngineOptions, GenerationSettings, Message
from engine.events import Step
from engine.rounds.store import RoundStore
from engine.runner import Runner
from measure.quick import parse

QUESTIONS = {
    "": ("Write a quicksort in Python", "create a single-file HTML animation of a drone swarm"),
    "smollm2": ("Why is the sky blue?", "Give me three tips for sleeping well"),
}


GOOD = 0.1
"""How far a number may be off that isn't said to be about right."""


def main() -> None:
    parser = ArgumentParser(prog="python -m measure.engine.speed_up", description=main.__doc__)
    parser.add_argument("--target", choices=list(QUESTIONS), default="")
    parser.add_argument("--starts", type=int, default=5, help="of the program, under each load")
    parser.add_argument("--runs", type=int, default=3, help="turns of each question at a start, a row each")
    parser.add_argument("--tokens", type=int, default=200, help="of an answer, at most")
    parser.add_argument("--one", action="store_true", help="a single start, its rows as JSON")
    wanted = parse(parser, "--starts 1 --runs 1 --tokens 40")
    if wanted.one:
        _start(wanted.target, wanted.runs, wanted.tokens)
        return
    heads = f"{'shown':>12}{'measured':>10}{'shown/measured':>16}  tokens a round"
    print(f"{'machine':<8}{'load':>6}  {'question':<30}{heads}")
    told: dict[str, list[tuple[float, bool]]] = {"quiet": [], "busy": []}
    for _ in range(wanted.starts):
        for machine, ratios in told.items():
            ratios += _rows(machine, wanted.target, wanted.runs, wanted.tokens)
    for machine, ratios in told.items():
        good = [ratio for ratio, about in ratios if not about]
        near = sum(abs(ratio - 1) <= GOOD for ratio in good)
        mean = geometric_mean(ratio for ratio, _ in ratios) if ratios else 0.0
        print(
            f"{machine}: shown/measured {mean:.3f} on average; of {len(good)} not said to be about, {near} within 10 %"
        )


def _rows(machine: str, target: str, runs: int, tokens: int) -> list[tuple[float, bool]]:
    """Print the rows of a start; returns shown beside measured of each, and whether it was said to be about right."""
    again = [sys.executable, "-m", "measure.engine.speed_up", "--one", "--target", target]
    again += ["--runs", str(runs), "--tokens", str(tokens)]
    noise = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if machine == "busy" else None
    try:
        rows = subprocess.run(again, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    finally:
        if noise is not None:
            noise.kill()
            noise.wait()
    found = []
    for question, shown, about, measured, most in map(json.loads, rows):
        number = f"{'about ' * about}{shown:.2f}"
        beside = f"{number:>12}{measured:>10.2f}{shown / measured:>16.3f}  {most:.2f}"
        print(f"{machine:<8}{os.getloadavg()[0]:>6.1f}  {question[:28]:<30}{beside}", flush=True)
        found.append((shown / measured, about))
    return found


def _start(target: str, runs: int, tokens: int) -> None:
    """Print a line for each answer with speculation of a start: the question, the number that was shown for it, whether
    it was said to be about right, what was measured, and the tokens of a round."""
    runner = Runner.load(EngineOptions(target=target or None), lambda _: None, lambda: False)
    assert runner is not None
    around = Around()
    for question in QUESTIONS[target]:
        alone, drafted = [], []
        for _ in range(runs):
            alone.append(_answer(runner, question, tokens, False)[1])
            drafted.append(_answer(runner, question, tokens, True))
        for history, seconds in drafted:
            found, counted = factor_of(history, -1, around), history.decoded(-1)
            around = Around(after(around, history))
            if found is not None:
                most = counted.tokens / (counted.drafted + counted.plain)
                print(json.dumps([question, found.times, found.about, median(alone) / seconds, most]), flush=True)


def _answer(runner: Runner, question: str, tokens: int, speculation: bool) -> tuple[RoundStore, float]:
    """The rounds of an answer, and the processor's seconds from its first token to its last, without the share of the
    passes that were taken to compare."""
    settings = GenerationSettings(speculation=speculation, max_new_tokens=tokens)
    ask = Ask(1, (Message("user", question),), settings, compares=True)
    steps, seconds = [], []
    for event in runner.answer(ask, lambda: []):
        if isinstance(event, Step):
            steps.append(event)
            seconds.append(process_time())
    history = RoundStore(steps)
    own = 1 - 1e3 * history.beside_ms / (history.time[-1] - history.time[0])
    return history, own * (seconds[-1] - seconds[0])


if __name__ == "__main__":
    main()
