"""The code domain: every program in every way runs, prompts control the answer, and bad answers are found out."""

from __future__ import annotations

import ast
import random
import re

import pytest

from engine.lab.demo.corpus.code import PROGRAMS, check, check_many, generate, sample_of
from engine.lab.demo.corpus.code.catalogue import BY_NAME
from engine.lab.demo.corpus.code.program import HOW, Program, Variant
from engine.lab.demo.corpus.code.request import LIST_NAMES, Request
from engine.lab.demo.corpus.code.source import rendered
from engine.lab.demo.corpus.sample import Sample

QUICKSORT = BY_NAME["quicksort"]
PAIRS = [(program, variant) for program in PROGRAMS for variant in program.variants]


def request(program: Program, variant: Variant, rng: random.Random, *, controlled: bool) -> Request:
    """A plain request, or one with every control set."""
    arguments = program.arguments(rng)
    if not controlled:
        return Request(program, variant, arguments, program.name, program.parameter)
    return Request(
        program,
        variant,
        arguments,
        name="ZetaThing" if program.kind == "class" else "zeta_thing",
        parameter="votes" if program.parameter else "",
        says_how=True,
        typed=True,
        documented=True,
        tested=True,
        commented=True,
        guarded=program.kind != "decorator",
        gives_arguments=True,
    )


def quicksort(seed: int = 0, **changes: object) -> Sample:
    facts = {
        "program": QUICKSORT,
        "variant": QUICKSORT.variants[0],
        "arguments": ("[5, 2, 9, 1]",),
        "name": "quicksort",
        "parameter": "items",
    }
    return sample_of(Request(**{**facts, **changes}), random.Random(seed))  # type: ignore[arg-type]


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def test_every_program_and_variant_passes_its_own_check_plain_and_with_every_control() -> None:
    rng = random.Random(1)
    drawn = [
        sample_of(request(program, variant, rng, controlled=controlled), rng)
        for program, variant in PAIRS
        for controlled in (False, True)
    ]
    verdicts = check_many([sample.response for sample in drawn], [sample.check for sample in drawn])
    assert [s.combination for s, v in zip(drawn, verdicts, strict=True) if not all(v.values())] == []


def test_drawn_samples_pass_their_own_check() -> None:
    rng = random.Random(2)
    some = [generate(rng) for _ in range(400)]
    verdicts = check_many([sample.response for sample in some], [sample.check for sample in some])
    assert [s.prompt for s, v in zip(some, verdicts, strict=True) if not all(v.values())] == []


def test_each_control_changes_the_answer() -> None:
    plain = quicksort().response
    assert "def my_sort(items)" in quicksort(name="my_sort").response
    assert "quicksort(" not in quicksort(name="my_sort").response
    assert "def quicksort(items: list[int]) -> list[int]:" in quicksort(typed=True).response
    assert '"""Return a sorted copy of items."""' in quicksort(documented=True).response
    assert "\nassert quicksort(" in quicksort(tested=True).response
    assert "# Example\nitems = " in quicksort(commented=True).response
    assert 'if __name__ == "__main__":\n    items = ' in quicksort(guarded=True).response
    assert "prices = [5, 2, 9, 1]\nprint(quicksort(prices))" in quicksort(parameter="prices").response
    assert "[8, 3]" in quicksort(arguments=("[8, 3]",), gives_arguments=True).response
    for mark in ("->", "#", "__main__", '"""', "assert", "prices", "my_sort"):
        assert mark not in plain


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        (("return items\n", "return items +\n"), "parses"),
        (("def quicksort(", "def slowsort("), "defines"),
        (("if x < pivot", "if x > pivot"), "passes"),
        (("quicksort(smaller)", "quicksort(items)"), "passes"),
        (("if len(items) <= 1:", "while True: pass\n    if True:"), "passes"),
        (("print(quicksort(items))", "raise SystemExit"), "passes"),
        (("[5, 2, 9, 1]", "[5, 2, 9]"), "follows"),
        (("def quicksort", "import os\ndef quicksort"), "passes"),
    ],
)
def test_broken_answers_are_found_out(change: tuple[str, str], fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.lab.demo.corpus.code.checking.SECONDS_PER_ANSWER", 1)
    sample = quicksort(gives_arguments=True)
    broken = sample.response.replace(*change)
    assert broken != sample.response
    assert not check(broken, sample.check)[fails]


def test_a_control_that_the_answer_ignores_is_found_out() -> None:
    plain = quicksort().response
    for control in ("typed", "documented", "tested", "commented", "guarded"):
        asked = quicksort(**{control: True})
        assert check(asked.response, asked.check)["follows"]
        assert not check(plain, asked.check)["follows"]


@pytest.mark.parametrize("response", ["", "no code", "```python\n", fenced("\0"), fenced("(" * 5000)])
def test_check_never_raises(response: str) -> None:
    assert not any(check(response, quicksort().check).values())


def test_a_batch_gives_each_answer_its_own_verdict() -> None:
    good, bad = quicksort(), quicksort().response.replace("< pivot", "> pivot")
    verdicts = check_many([good.response, bad, good.response], [good.check] * 3)
    assert [verdict["passes"] for verdict in verdicts] == [True, False, True]


def test_sources_keep_their_layout_when_stripped() -> None:
    source = (
        'from a import B, C\n\n\ndef f(x: B, y: int = 3) -> list[int]:\n    """Doc."""\n    z: int = C(x)\n    return z'
    )
    stripped = "from a import C\n\n\ndef f(x, y=3):\n    z = C(x)\n    return z"
    assert rendered(source, typed=False, documented=False) == stripped
    assert rendered(source, typed=True, documented=True) == source


@pytest.mark.parametrize(("program", "variant"), PAIRS, ids=lambda value: getattr(value, "name", "") or value.label)
def test_catalogue_entry_is_well_formed(program: Program, variant: Variant) -> None:
    tree = ast.parse(variant.source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    taken = {*LIST_NAMES, *LIST_NAMES.values()} if program.parameter else set()
    assert not names & taken, "a list that takes another name would clash with a local variable"
    definition = next(node for node in tree.body if getattr(node, "name", "") == program.name)
    assert isinstance(definition, ast.ClassDef | ast.FunctionDef)
    docstring = ast.get_docstring(definition)
    assert docstring
    for sentence in (docstring, *variant.notes):
        assert program.name not in re.findall(r"\w+", sentence), "renaming must not touch the sentence"
    assert docstring.endswith(".") and all(note.endswith(".") for note in variant.notes)
    assert variant.how or variant.label in HOW
    assert len(program.facts_of(variant)) >= 2
    labels = [other.label for other in program.variants]
    assert len(labels) == len(set(labels))
