"""The bundled pair still says what it said, as fast as its report has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.hub.pairs import BUNDLED_PAIR
from tests.engine.small_decoders import Answer
from tests.pace import sampled

from .golden import GOLDEN, PROMPTS, GoldenPair, tau, torch_minor

golden = json.loads(GOLDEN.read_text())
report = json.loads((BUNDLED_PAIR / "report.json").read_text())


@pytest.fixture(scope="module")
def pair() -> GoldenPair:
    return GoldenPair()


@pytest.fixture(scope="module")
def drafted(pair: GoldenPair) -> dict[str, Answer]:
    """An answer to each prompt that is looked at, with drafts."""
    asked = [*PROMPTS[:2], *(entry["prompt"] for entry in sampled(golden["answers"], 2))]
    return {prompt: pair.answer(prompt, speculation=True) for prompt in dict.fromkeys(asked)}


@pytest.mark.parametrize("entry", sampled(golden["answers"], 2), ids=lambda entry: entry["prompt"])
def test_with_and_without_drafts_it_says_what_it_said(
    entry: dict[str, Any], pair: GoldenPair, drafted: dict[str, Answer]
) -> None:
    answer = drafted[entry["prompt"]]
    if entry in golden["answers"][::4]:
        assert answer.ids == pair.answer(entry["prompt"], speculation=False).ids
    if torch_minor() == golden["torch"]:
        assert pair.tokenizer.decode(answer.ids) == entry["text"]
        assert tau(answer) == pytest.approx(entry["tau"], abs=1e-3)


def test_the_golden_prompts_are_these() -> None:
    assert [entry["prompt"] for entry in golden["answers"]] == list(PROMPTS)


@pytest.mark.parametrize("headline", report["figures"]["headlines"], ids=lambda headline: headline["prompt"])
def test_headlines_are_accepted_as_the_report_has_it(headline: dict[str, Any], drafted: dict[str, Answer]) -> None:
    """Within 10 %: the report was written in bf16, on another machine."""
    assert tau(drafted[headline["prompt"]]) == pytest.approx(headline["tau"], rel=0.1)
