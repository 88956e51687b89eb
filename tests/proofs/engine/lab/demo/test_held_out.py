"""The held-out questions: there for every purpose, and what they demand says when an answer is wrong."""

from __future__ import annotations

from engine.lab.demo.held_out import read_questions
from engine.lab.demo.judging.checks import verdicts

from .golden import PROMPTS


def test_every_purpose_has_its_questions() -> None:
    assert {len(part) for part in read_questions("evaluate").values()} == {100}
    assert {len(part) for part in read_questions("probe").values()} == {16}
    assert len(read_questions("edits")["edit"]) == 100
    headlines = read_questions("headline")
    assert [headlines[domain][0].prompt for domain in ("code", "html")] == list(PROMPTS[:2])


def test_a_reply_that_says_nothing_is_never_right() -> None:
    questions = [question for part in read_questions("evaluate").values() for question in part]
    assert all(question.right for question in questions)
    assert not any(all(verdicts("", question.right).values()) for question in questions if question.domain != "code")
