"""The shape of one entry of the catalogue: a task, the ways to write it, and the facts that its answer must satisfy."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

Arguments = Callable[[random.Random], tuple[str, ...]]
"""Draws the arguments of the example call, as Python literals."""

DEFAULT_USAGE = "print(f({args}))"
ITEMS_USAGE = "items = {0}\nprint(f(items))"
NUMBERS_USAGE = "numbers = {0}\nprint(f(numbers))"

HOW: dict[str, tuple[str, ...]] = {
    "bits": ("with bit operations", "using bit tricks"),
    "builtin": ("with the standard library", "using built-in tools"),
    "class": ("as a class", "with a class"),
    "closure": ("with a closure", "using a closure"),
    "comprehension": ("with a comprehension", "using a comprehension"),
    "counter": ("with collections.Counter", "using Counter"),
    "defaultdict": ("with defaultdict", "using collections.defaultdict"),
    "deque": ("with collections.deque", "using a deque"),
    "dict": ("with a dictionary", "using a plain dict"),
    "generator": ("as a generator", "with a generator", "using yield"),
    "heap": ("with heapq", "using the heapq module"),
    "in_place": ("in place", "that works in place", "without making a new list"),
    "linked": ("with linked nodes", "using linked nodes"),
    "list": ("with a plain list", "backed by a list"),
    "loop": ("with a loop", "using a loop", "with a plain loop"),
    "memo": ("with memoization", "using a cache", "with caching"),
    "one_line": ("in one line", "as a one-liner"),
    "recursive": ("using recursion", "with recursion", "recursively"),
    "reduce": ("with functools.reduce", "using reduce"),
    "set": ("with a set", "using sets"),
    "slicing": ("with slicing", "using slices"),
    "sorted": ("with sorted", "using the built-in sorted"),
    "while": ("with a while loop", "using while"),
}
"""How a prompt asks for a way of writing, for the ways that several programs share."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to write a program. The source is complete: annotations, docstrings and all; rendering strips what a
    prompt does not ask for."""

    label: str
    source: str
    notes: tuple[str, ...]
    """Sentences of which one may follow the code."""
    how: tuple[str, ...] = ()
    """Phrases that ask for this variant; by default those of its label in `HOW`."""
    usage: str = ""
    """Replaces the program's usage where this variant is called in another way; so do `setup` and `facts`."""
    setup: str = ""
    facts: tuple[str, ...] = ()

    @property
    def phrases(self) -> tuple[str, ...]:
        return self.how or HOW[self.label]


@dataclass(frozen=True, slots=True)
class Program:
    """One task of the catalogue. `f` stands for the requested name in `usage`, `setup` and `facts`."""

    name: str
    """The function or class that the sources define, and its name unless the prompt gives another."""
    nouns: tuple[str, ...]
    """Noun phrases with their article ("a quicksort"); the first names the program in short prompts."""
    tasks: tuple[str, ...]
    """What it does, as an infinitive without "to" ("sort a list with quicksort")."""
    variants: tuple[Variant, ...]
    """The first is the answer when the prompt does not say how."""
    facts: tuple[str, ...] = ()
    """Expressions that are true after `setup`; the unit test is all of them, an answer with a test shows some."""
    arguments: Arguments = field(default=lambda rng: ())
    usage: str = DEFAULT_USAGE
    """The example at the end: `{args}` is every argument, `{0}` the first."""
    setup: str = ""
    kind: str = "function"
    parameter: str = ""
    """The plural name of the list parameter. It takes the name of what the list holds when a prompt says so ("a list
    of prices"), and the variable for one element, its singular, follows."""

    def usage_of(self, variant: Variant) -> str:
        return variant.usage or self.usage

    def setup_of(self, variant: Variant) -> str:
        return variant.setup or self.setup

    def facts_of(self, variant: Variant) -> tuple[str, ...]:
        return variant.facts or self.facts
