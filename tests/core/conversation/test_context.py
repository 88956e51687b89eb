"""How full a context is: what fits, what would have to go, and what the model reads afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dflash_tui.core.attachments.attachment import Attachment
from dflash_tui.core.conversation.context import MARKUP, Ruler, fit
from dflash_tui.core.conversation.folds import before_question, behind_question, folds, words_of
from dflash_tui.core.conversation.question_context import Carried, QuestionContext, messages_of, pastes_in
from dflash_tui.core.conversation.turn import Turn
from engine.commands import Ask, GenerationSettings, Message

from ..answers_for_tests import answered

LONG = "word " * 200


def words(messages: Sequence[Message]) -> int:
    """A token is a word."""
    return sum(len(message.content.split()) for message in messages)


def talk(count: int, answer: str = LONG) -> list[Turn]:
    return [answered(number, f"question {number}", answer, parent=number - 1) for number in range(1, count + 1)]


def test_what_fits_is_not_measured() -> None:
    def never(_messages: Sequence[Message]) -> int:
        raise AssertionError("a short conversation needs no counting")

    assert fit(talk(3), None, "and?", 100_000, never).left_out == ()
    assert fit(talk(300), None, "and?", 0, never).left_out == (), "nobody knows how much there is room for"


@pytest.mark.parametrize("limit", [500, 700, 1000, 1500])
def test_the_oldest_go_until_the_rest_is_light(limit: int) -> None:
    said = talk(10)
    found = fit(said, "Be brief.", "and?", limit, words)
    assert found.tokens == words(messages_of(said, "Be brief.", "and?")) and found.left_out
    assert list(found.left_out) == list(range(1, len(found.left_out) + 1)), "the oldest, in a row"
    left = words(messages_of(said, "Be brief.", "and?", QuestionContext(left_out=found.left_out)))
    assert left <= 0.6 * limit
    one_more = words(messages_of(said, "Be brief.", "and?", QuestionContext(left_out=found.left_out[:-1])))
    assert one_more > 0.6 * limit, "and not more of them than that takes"


def test_what_was_left_out_stays_so_further_on() -> None:
    said = talk(5)
    said[3].attached = QuestionContext(left_out=(1, 2), carried=Carried("summary", "We spoke of cats."))
    head, first, *_ = messages_of(said, "Be brief.", "and?")
    assert head.role == "system" and head.content.startswith("Be brief.") and "cats" in head.content
    assert first.content == "question 3"
    assert messages_of(said[:3], None, "and?")[0].content == "question 1", "another branch reads them"


def test_a_question_that_never_fits() -> None:
    assert fit(talk(2), None, LONG, 150, words).left_out is None
    file = QuestionContext((Attachment("a.txt", LONG),))
    assert fit([], None, "short", 150, words, file).left_out is None


def test_without_a_tokenizer_the_last_prompt_is_the_measure() -> None:
    ruler = Ruler(lambda ask: None, GenerationSettings)
    messages = [Message("user", "x" * 1000)]
    assert ruler.prompt(messages) == 250 + MARKUP
    ruler.learn(messages, 500 + MARKUP)
    assert ruler.prompt(messages) == 500 + MARKUP and ruler.text("x") is None
    ruler.learn(messages, 0)
    assert ruler.prompt(messages) == 500 + MARKUP, "a server that tells nothing teaches nothing"


def test_a_source_that_counts_is_believed() -> None:
    asked: list[Ask] = []

    def count(ask: Ask) -> int:
        asked.append(ask)
        return 77

    ruler = Ruler(count, GenerationSettings)
    assert ruler.prompt([Message("user", "hi")]) == 77 and ruler.text("hi") == 77
    assert asked[0].messages and asked[1].prompt == "hi"
    assert ruler.text("") == 0


def test_folded_lines_and_their_texts_are_in_the_same_order() -> None:
    first, second = talk(2, "Fine.")
    first.attached = QuestionContext((Attachment("a.txt", "aaa", 3), Attachment("b.txt", "bbb")))
    second.question = "See ppp\n, ppp and ppp"
    pastes = pastes_in(second.question, ("ppp\n", "ppp", "gone"))
    second.attached = QuestionContext((Attachment("c.txt", "ccc"),), (1,), Carried("summary", "In short."), pastes)
    assert (
        QuestionContext.from_line(second.attached.to_line(), {second.attached.files[0].digest: "ccc"}).pastes == pastes
    )
    spans = []
    for each in (first, second):
        spans += [*before_question(each.attached), *words_of(each.question, each.attached)]
        spans += behind_question(each.attached)
    heads = [span.text.strip() for span in spans if span.style == "fold"]
    found = folds([first, second])
    assert heads == [fold.head for fold in found]
    assert [fold.text[:3] for fold in found] == ["aaa", "bbb", "In ", "ppp", "ppp", "ccc"]
