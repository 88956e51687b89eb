"""An answer is the same wherever its rounds end: bytes that wait for the next token's, and answers that are ended
because they go round in circles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from engine.commands import Ask, GenerationSettings, Message
from engine.decoding.decoder import Decoder
from engine.decoding.rounds import Round
from engine.events import Event, FinishReason, Step, TurnFinished, TurnStarted
from engine.limits import CIRCLE, LONGEST_PIECE, ONCE_MORE, goes_in_circles
from engine.rounds.step import Match
from engine.runner import Runner
from engine.speculation.trees import WIDE_ROWS
from engine.tokenization.tokenizer import ChatTokenizer
from tests.engine.conftest import TinyPair
from tests.engine.test_service import BUNDLED, ask, running

TEXT = "é日🎉"
"""Characters of two, three and four bytes, which the small tokenizer spells in parts."""


def events_of(
    pair: TinyPair, decode: Callable[..., Iterator[TurnStarted | Round]], monkeypatch: pytest.MonkeyPatch
) -> list[Event]:
    decoder = Decoder(pair.target, None, 512)
    monkeypatch.setattr(decoder, "decode", decode)
    runner = Runner(decoder, ChatTokenizer(pair.folder / "target"))
    return list(runner.answer(Ask(1, (Message("user", "hi"),), GenerationSettings(block_size=2)), lambda: []))


def told(
    pair: TinyPair, ids: list[int], cuts: list[int], monkeypatch: pytest.MonkeyPatch, why: FinishReason = "stop"
) -> tuple[str, str]:
    """An answer whose rounds end at ``cuts``: as its rounds tell it, and as its end does."""

    def decode(*_: object) -> Iterator[TurnStarted | Round]:
        yield TurnStarted(1, 9, 0, {})
        for start, end in pairwise((0, *cuts, len(ids))):
            finish = why if end == len(ids) else None
            size = end - start
            yield Round(tuple(ids[start:end]), (0.5,) * size, size, 1.0, 9 + end, GenerationSettings(), finish)

    events = events_of(pair, decode, monkeypatch)
    finished = events[-1]
    assert isinstance(finished, TurnFinished)
    steps = [event for event in events if isinstance(event, Step)]
    return "".join(token.text for step in steps for token in step.emitted), finished.text


@pytest.mark.parametrize("text", [TEXT, f"{TEXT}."])
def test_a_character_waits_for_its_last_byte_in_whatever_round_that_comes(
    dense_pair: TinyPair, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    ids = list(ChatTokenizer(dense_pair.folder / "target").raw_prompt(text).ids)
    assert len(ids) > len(text) + 2
    cuts = [[], [*range(1, len(ids))], *([end] for end in range(1, len(ids)))]
    for cut in cuts:
        assert told(dense_pair, ids, cut, monkeypatch) == (text, text), cut


def test_bytes_that_nothing_follows_are_told_at_the_end(dense_pair: TinyPair, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = list(ChatTokenizer(dense_pair.folder / "target").raw_prompt(TEXT).ids)[:-1]
    whole = told(dense_pair, ids, [], monkeypatch)
    assert whole[0] == whole[1] and whole[0].startswith("é日\N{REPLACEMENT CHARACTER}")
    assert all(told(dense_pair, ids, [end], monkeypatch) == whole for end in range(1, len(ids)))
    reasons: tuple[FinishReason, ...] = ("length", "context")
    assert all(told(dense_pair, ids, [], monkeypatch, why) == whole for why in reasons)


def test_what_the_drafter_guessed_too_is_its_own(dense_pair: TinyPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is looked up behind it is not."""

    def decode(*_: object) -> Iterator[TurnStarted | Round]:
        yield TurnStarted(1, 9, 0, {})
        more = {"draft_ids": (5, 6, 7), "draft_probabilities": (0.5,) * 3, "match": Match(3, 4), "num_agreed": 1}
        yield Round((5, 6), (0.5, 0.5), 4, 1.0, 11, GenerationSettings(), "stop", num_accepted=1, **more)  # type: ignore[arg-type]

    steps = [event for event in events_of(dense_pair, decode, monkeypatch) if isinstance(event, Step)]
    assert [token.source for token in steps[0].draft] == [None, "lookup", "lookup"]


def test_a_circle_is_seen_with_its_last_token_and_no_sooner() -> None:
    for length, seen in ((1, True), (LONGEST_PIECE, True), (LONGEST_PIECE + 1, False)):
        ids = [place % length for place in range(CIRCLE)]
        assert goes_in_circles([99, *ids]) is seen and not goes_in_circles(ids[1:])
        assert not goes_in_circles([*ids[:-1], 99])


def test_an_answer_in_circles_ends_at_the_same_token_whoever_guesses() -> None:
    """No round is longer than what is still said once a circle was seen. Texts alone would not tell: what a circle
    repeats may be no text."""
    assert WIDE_ROWS[-1] <= ONCE_MORE
    said = []
    with running(BUNDLED) as session:
        for turn, wanted in enumerate(({"speculation": False}, {"draft_by": "lookup"}), 1):
            question = ask(turn, "{}[]()<>!@#$%^&*", max_new_tokens=200, **wanted)
            session.service.send(question)
            finished = session.wait_for(TurnFinished, turn)
            said.append([token.id for step in session.steps(turn) for token in step.emitted])
            assert finished.statistics.num_tokens == len(said[-1])
    assert said[0] == said[1] and ONCE_MORE < len(said[0]) < 150
