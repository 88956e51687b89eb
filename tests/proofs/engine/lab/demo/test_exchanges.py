"""The data that the pair was trained on and is asked: whole, apart from each other, and small."""

from __future__ import annotations

import pytest

from engine.lab.demo.judging.checks import verdicts
from engine.lab.demo.texts.conversation import TextTurn
from engine.lab.demo.texts.exchanges import DATA, DOMAINS, Domain, read_exchanges, read_questions
from engine.lab.demo.texts.headlines import HEADLINE_PROMPTS

SAME_PROMPTS = 6
"""Of a hundred, at most: a short prompt may ask for what was trained on and for what was held out."""


@pytest.mark.parametrize("domain", DOMAINS)
def test_hardly_a_held_out_prompt_was_trained_on(domain: Domain) -> None:
    exchanges = read_exchanges(domain)
    assert len(exchanges) >= 5000
    assert all(each.prompt and each.response for each in exchanges)
    questions = read_questions("evaluate")[domain]
    assert len(questions) == 100 and all(question.right for question in questions)
    trained = {(*each.before, TextTurn(each.prompt, "")) for each in exchanges}
    assert sum(question.conversation.turns in trained for question in questions) <= SAME_PROMPTS


def test_every_purpose_has_its_questions() -> None:
    assert {len(part) for part in read_questions("probe").values()} == {16}
    assert len(read_questions("edits")["edit"]) == 100
    headlines = read_questions("headline")
    assert [headlines[domain][0].prompt for domain in ("code", "html")] == list(HEADLINE_PROMPTS)


def test_a_reply_that_says_nothing_is_never_right() -> None:
    questions = [question for part in read_questions("evaluate").values() for question in part]
    assert not any(all(verdicts("", question.right).values()) for question in questions if question.domain != "code")


def test_it_takes_no_more_than_ten_megabytes() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) <= 10_000_000
