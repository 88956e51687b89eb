"""The shipped models in the engine: the promise that speculation changes no token, on questions people might ask."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from engine.commands import GenerationSettings, Message
from engine.decoding.decoder import Decoder
from engine.loading.checkpoint import load_drafter, load_target
from engine.tokenizer import ChatTokenizer
from tests.engine.conftest import CPU, no_progress
from tests.engine.small_decoders import assert_caches_equal_recomputation, run_turn

BLOCK_SIZES = (4, 8, 16)

_REQUESTS = (
    "Write a Python function that {}.",
    "Please write Python code that {}, with an example.",
    "In Python: {}. Only the code.",
    "Explain how one {}.",
    "Make an HTML page with an animation that {}.",
)
_TASKS = """
sorts a list of numbers, reverses a string, counts the words of a text, finds the largest number,
checks whether a number is prime, adds up the even numbers, merges two sorted lists, removes duplicates,
computes a factorial, searches a sorted list, draws a swarm of drones, shows falling snow,
moves a ball along a circle, plots a wave, counts down from ten, shares 24 apples among 6 children,
multiplies 17 by 6, translates a poem into French, measures the temperature of the sea, builds a bridge,
knows the capital of Peru, says hello to everybody, drafts a block of tokens, verifies a draft in one pass,
plays a tune, rolls two dice, reads a file line by line, transposes a matrix, converts Celsius to Fahrenheit,
finds the shortest path, squares every number, splits a bill, makes small talk, stores names and ages,
blinks a light, spins a square, orders a pizza, flips a coin a hundred times, groups words by length,
prints a triangle of stars
"""
PROMPTS = tuple(request.format(task) for task, request in product(re.split(r",\s", _TASKS.strip()), _REQUESTS))


class Pair:
    """The shipped pair with one decoder per mode, each answering one question after the other."""

    def __init__(self, folder: Path):
        self.tokenizer = ChatTokenizer(folder / "target")
        target = load_target(folder / "target", CPU, no_progress)
        self.plain = Decoder(target, None, 4096)
        self.speculative = Decoder(target, load_drafter(folder / "drafter", target, no_progress), 4096)

    def diverging(self, prompts: Sequence[str], count: int, **sampling: float) -> list[tuple[str, int]]:
        """(prompt, block size) wherever the first ``count`` tokens differ from those without speculation."""
        found = []
        for text in prompts:
            ids = self.tokenizer.prompt([Message("user", text)], thinking=False).ids
            wanted = GenerationSettings(max_new_tokens=count, speculation=False, **sampling)  # type: ignore[arg-type]
            expected = run_turn(self.plain, ids, wanted).ids
            for block_size in BLOCK_SIZES:
                wanted = GenerationSettings(block_size, max_new_tokens=count, **sampling)  # type: ignore[arg-type]
                if run_turn(self.speculative, ids, wanted).ids != expected:
                    found.append((text, block_size))
        return found


@pytest.fixture(scope="module")
def pair(bundled_pair: Path) -> Pair:
    return Pair(bundled_pair)


@pytest.mark.parametrize(
    "sampling",
    [{}, {"temperature": 1.2, "seed": 2, "top_p": 0.9, "top_k": 40}],
    ids=["greedy", "hot"],
)
def test_speculation_changes_no_token(sampling: dict[str, float], pair: Pair) -> None:
    """A sample of the prompts: all 200 at full length take minutes."""
    assert pair.diverging(PROMPTS[::81], 32, **sampling) == []
    assert_caches_equal_recomputation(pair.speculative)


def test_there_are_two_hundred_prompts() -> None:
    assert len(set(PROMPTS)) == 200


def test_the_drafter_is_the_targets_own(pair: Pair) -> None:
    """Drafts of a drafter that is wired wrongly are hardly ever accepted; nothing else would show it."""
    ids = pair.tokenizer.prompt([Message("user", PROMPTS[0])], thinking=False).ids
    rounds = [
        done for done in run_turn(pair.speculative, ids, GenerationSettings(max_new_tokens=96)).rounds if done.draft_ids
    ]
    assert sum(len(done.emitted) for done in rounds) / len(rounds) > 2
