"""``python -m measure.engine.speed_up``: holds the number that the screen shows against answers without speculation, in
turns, at several starts of the program; ``--busy`` beside a process that never rests. Needs no GPU."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from statistics import geometric_mean, median

from dflash_tui.core.rounds.factor import Around, after, factor_of
from dflash_tui.core.rounds.history import StepHistory, history_of
from engine.commands import Ask, EngineOptions, GenerationSettings, Message
from engine.events import Step
from engine.runner import Runner
from measure.quick import parse

QUESTIONS = {
    "": ("Write a quicksort in Python", "create a single-file HTML animation of a drone swarm"),
    "smollm2": ("Why is the sky blue?", "Give me three tips for sleeping well"),
}


def main() -> None:
    parser = ArgumentParser(prog="python -m measure.engine.speed_up", description=main.__doc__)
    parser.add_argument("--target", choices=list(QUESTIONS), default="")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3, help="turns of each question at a start")
    parser.add_argument("--tokens", type=int, default=200, help="of an answer, at most")
    parser.add_argument("--busy", action="store_true")
    wanted = parse(parser, "--starts 1 --runs 1 --tokens 40")
    if wanted.starts == 1:
        _start(wanted.target, wanted.runs, wanted.tokens)
        return
    noise = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if wanted.busy else None
    try:
        for _ in range(wanted.starts):
            again = [sys.executable, "-m", "measure.engine.speed_up", "--starts", "1", "--runs", str(wanted.runs)]
            subprocess.run([*again, "--target", wanted.target, "--tokens", str(wanted.tokens)], check=True)
    finally:
        if noise is not None:
            noise.kill()


def _start(target: str, runs: int, tokens: int) -> None:
    """Print a line for each question of a start."""
    runner = Runner.load(EngineOptions(target=target or None), lambda _: None, lambda: False)
    assert runner is not None
    around = Around()
    for question in QUESTIONS[target]:
        shown, measured, least = [], [], 0.0
        for _ in range(runs):
            alone, drafted = _answer(runner, question, tokens, False), _answer(runner, question, tokens, True)
            found = factor_of(drafted, -1, around)
            around = Around(after(around, drafted))
            shown.append(found.as_text(2) if found is not None else "-")
            measured.append(_seconds(alone) / _seconds(drafted))
            counted = drafted.decoded(-1)
            least = counted.tokens / (counted.drafted + counted.plain)
        spread = ", ".join(f"{each:.2f}" for each in measured)
        print(
            f"{question[:28]:<28} shown {' | '.join(shown):<40} in turns {median(measured):.2f} "
            f"(mean {geometric_mean(measured):.2f}; {spread})  tokens a round {least:.2f}",
            flush=True,
        )


def _answer(runner: Runner, question: str, tokens: int, speculation: bool) -> StepHistory:
    settings = GenerationSettings(speculation=speculation, max_new_tokens=tokens)
    ask = Ask(1, (Message("user", question),), settings, compares=True)
    return history_of(event for event in runner.answer(ask, lambda: []) if isinstance(event, Step))


def _seconds(history: StepHistory) -> float:
    """Seconds from the first token to the last, passes that were taken to compare left out."""
    return (history.time[-1] - history.time[0]) / 1e6 - history.beside_ms / 1e3


if __name__ == "__main__":
    main()
