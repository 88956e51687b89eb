"""Events from the wire are the rounds that produced them: generated rounds, written as each server writes them, merged
and cut into pieces, and read again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.attach.dialects import LlamaCpp, ServerFacts, Sglang, Vllm
from dflash_tui.attach.reading import EventReader
from dflash_tui.attach.rounds.steps import StepMaker, StreamRounds, TurnReport
from dflash_tui.attach.rounds.token_texts import carry, shared
from dflash_tui.attach.transport.framing import Framing
from engine.events import Step

from ..pace import examples

TEXTS = ["a", " b", "\n", "実", "grü", " 🛰️", "}", "  "]


@dataclass(frozen=True)
class Written:
    """A round: what was drafted, accepted, and how many of its tokens the answer kept. 0 drafted: alone."""

    drafted: int
    accepted: int
    tokens: int

    @property
    def verdicts(self) -> list[str]:
        last = "plain" if not self.drafted else "bonus" if self.accepted == self.drafted else "corrected"
        return [*["accepted"] * self.accepted, last][: self.tokens]


@st.composite
def answers(draw: st.DrawFn, alone: bool = True, width: int | None = None) -> list[Written]:
    """The rounds behind the first token. The last may be cut off."""
    rounds = []
    for _ in range(draw(st.integers(0, 12))):
        drafted = width or draw(st.integers(0 if alone else 1, 6))
        accepted = draw(st.integers(0, drafted))
        rounds.append(Written(drafted, accepted, accepted + 1))
    if rounds and rounds[-1].tokens > 1 and draw(st.booleans()):
        whole = rounds[-1]
        rounds[-1] = Written(whole.drafted, whole.accepted, draw(st.integers(1, whole.tokens)))
    return rounds


def texts(draw: Any, rounds: Sequence[Written]) -> list[str]:
    number = 1 + sum(each.tokens for each in rounds)
    return draw(st.lists(st.sampled_from(TEXTS), min_size=number, max_size=number))


def read(
    rounds: StreamRounds, events: Sequence[dict[str, Any]], pieces: Sequence[int] = ()
) -> tuple[list[Step], TurnReport]:
    """Through bytes, cut into pieces of these sizes in turn, and the parser of events."""
    reader = EventReader()
    for place, event in enumerate(through_bytes(events, pieces) if pieces else events):
        rounds.take(reader.read(event, place / 100))
    rounds.take(reader.rest(len(events) / 100, True))
    rounds.end()
    return rounds.steps.made, rounds.report()


def through_bytes(events: Sequence[dict[str, Any]], pieces: Sequence[int]) -> list[Any]:
    body = "".join(f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events).encode()
    framing, told = Framing(), list[Any]()
    place = turn = 0
    while place < len(body):
        size = pieces[turn % len(pieces)]
        told += framing.feed(body[place : place + size])
        place, turn = place + size, turn + 1
    return [*told, *framing.end()]


def chunk(text: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text} if text else {}, **more.pop("choice", {})}], **more}


def verdicts_of(steps: Sequence[Step]) -> list[str]:
    return [token.verdict for step in steps for token in step.emitted]


def drafted_of(steps: Sequence[Step]) -> list[tuple[int, int]]:
    return [(step.verify_width - 1, step.num_accepted) for step in steps if step.draft]


def truth_of(rounds: Sequence[Written]) -> list[str]:
    return ["plain", *(verdict for each in rounds for verdict in each.verdicts)]


def text_of(steps: Sequence[Step]) -> str:
    return "".join(token.text for step in steps for token in step.emitted)


def llama_events(rounds: Sequence[Written], said: Sequence[str], held: frozenset[int]) -> list[dict[str, Any]]:
    """An event per token, with counters; none for a token that is held back, whose text comes with the next."""
    events, drafted, accepted, milliseconds, number, waiting = [], 0, 0, 0.001, 0, ""
    for index, each in enumerate([Written(0, 0, 1), *rounds]):
        drafted, accepted = drafted + each.drafted, accepted + each.accepted
        milliseconds += 7.25 * (index > 0)
        for _ in range(each.tokens):
            waiting += said[number]
            number += 1
            timings = {"predicted_n": number, "predicted_ms": milliseconds, "prompt_n": 5, "cache_n": 2}
            if drafted:
                timings |= {"draft_n": drafted, "draft_n_accepted": accepted}
            if number not in held or number == len(said):
                events.append(chunk(waiting, timings=timings))
                waiting = ""
    return [*events, chunk("", choice={"finish_reason": "stop"}, timings=timings)]


@settings(max_examples=examples(60))
@given(st.data(), answers(), st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_llama_cpp_is_exact_live(data: st.DataObject, answer: list[Written], pieces: list[int]) -> None:
    said = texts(data.draw, answer)
    steps, _ = read(
        LlamaCpp(ServerFacts("llama.cpp", "")).rounds(StepMaker(1, 0.0)),
        llama_events(answer, said, frozenset()),
        pieces,
    )
    assert verdicts_of(steps) == truth_of(answer) and text_of(steps) == "".join(said)
    assert drafted_of(steps) == [(each.drafted, each.accepted) for each in answer if each.drafted]
    assert [len(step.emitted) for step in steps] == [1, *(each.tokens for each in answer)]
    assert [step.total_ms for step in steps[2:]] == [7.25] * len(answer[1:])


@settings(max_examples=examples(100))
@given(st.data(), answers())
def test_llama_cpp_is_never_wrong_about_tokens_held_back(data: st.DataObject, answer: list[Written]) -> None:
    said = texts(data.draw, answer)
    held = data.draw(st.frozensets(st.integers(1, len(said))))
    steps, report = read(
        LlamaCpp(ServerFacts("llama.cpp", "")).rounds(StepMaker(1, 0.0)), llama_events(answer, said, held)
    )
    truth, told = truth_of(answer), verdicts_of(steps)
    assert len(told) == len(truth) and all(a in ("unknown", b) for a, b in zip(told, truth, strict=True)), (told, truth)
    assert text_of(steps) == "".join(said)
    facts = report.statistics
    assert (facts.num_tokens, facts.num_draft_tokens) == (len(said), sum(each.drafted for each in answer))
    assert facts.num_accepted_draft_tokens == sum(each.accepted for each in answer)
    assert sum(step.num_accepted for step in steps) == facts.num_accepted_draft_tokens
    if not held:
        assert drafted_of(steps) == [(each.drafted, each.accepted) for each in answer if each.drafted]


def merged(draw: Any, sizes: Sequence[int]) -> list[int]:
    """Neighbours joined, as a server does that falls behind."""
    joined: list[int] = []
    for size in sizes:
        if joined and draw(st.booleans()):
            joined[-1] += size
        else:
            joined.append(size)
    return joined


def vllm_events(rounds: Sequence[Written], said: Sequence[str], sizes: Sequence[int]) -> list[dict[str, Any]]:
    events, place = [chunk("", prompt_token_ids=[1, 2, 3])], 0
    for size in [1, *sizes]:
        parts = said[place : place + size]
        logprobs = {"content": [{"token": part, "logprob": -0.5, "bytes": list(part.encode())} for part in parts]}
        events.append(chunk("".join(parts), choice={"token_ids": [7] * size, "logprobs": logprobs}))
        place += size
    order = [each for each in rounds if each.drafted]
    spec = {
        "num_spec_steps": len(order), "num_draft_tokens": sum(each.drafted for each in order),
        "num_accepted_draft_tokens": sum(each.accepted for each in order), "num_spec_tokens": 6,
        "acceptance_histogram": [sum(each.accepted == kept for each in order) for kept in range(7)],
        "per_step_accepted": [each.accepted for each in order], "per_step_drafted": [each.drafted for each in order],
    }  # fmt: skip
    usage = {"prompt_tokens": 3, "completion_tokens": len(said)}
    return [
        *events,
        chunk("", choice={"finish_reason": "stop"}),
        {"choices": [], "usage": usage, "metrics": {"speculative_decoding": spec}},
    ]


@settings(max_examples=examples(60))
@given(st.data(), answers(), st.lists(st.integers(1, 60), min_size=1, max_size=4))
def test_an_event_of_vllm_is_a_round(data: st.DataObject, answer: list[Written], pieces: list[int]) -> None:
    """Of a single token it isn't known whether it had a draft; nothing is wrong."""
    said = texts(data.draw, answer)
    events = vllm_events(answer, said, [each.tokens for each in answer])
    steps, _ = read(Vllm(ServerFacts("vllm", "")).rounds(StepMaker(1, 0.0)), events, pieces)
    truth, told = truth_of(answer), verdicts_of(steps)
    assert text_of(steps) == "".join(said) and len(told) == len(truth)
    assert all(a in ("unknown", b) for a, b in zip(told, truth, strict=True)), (told, truth)
    assert told.count("accepted") == sum(each.tokens - 1 for each in answer)


@settings(max_examples=examples(60))
@given(st.data(), answers(width=6), answers(width=6))
def test_where_all_rounds_draft_vllms_are_exact_from_the_second_answer_on(
    data: st.DataObject, before: list[Written], answer: list[Written]
) -> None:
    server = Vllm(ServerFacts("vllm", "", block_size=7, speculates=True))
    for rounds in ([*before, Written(6, 2, 3)], answer):
        said = texts(data.draw, rounds)
        steps, _ = read(server.rounds(StepMaker(1, 0.0)), vllm_events(rounds, said, [each.tokens for each in rounds]))
    told, truth = verdicts_of(steps), truth_of(answer)
    assert told[:-1] == truth[:-1], "the end may have cut the last round"
    assert drafted_of(steps)[:-1] == [(each.drafted, each.accepted) for each in answer][:-1]


@settings(max_examples=examples(60))
@given(st.data(), answers())
def test_whatever_vllm_merges_totals_and_text_are_right(data: st.DataObject, answer: list[Written]) -> None:
    said = texts(data.draw, answer)
    events = vllm_events(answer, said, merged(data.draw, [each.tokens for each in answer]))
    steps, report = read(Vllm(ServerFacts("vllm", "")).rounds(StepMaker(1, 0.0)), events)
    assert text_of(steps) == "".join(said) and sum(len(step.emitted) for step in steps) == len(said)
    facts = report.statistics
    assert facts.num_draft_tokens == sum(each.drafted for each in answer)
    assert facts.num_spec_steps == sum(each.drafted > 0 for each in answer)


def sglang_events(rounds: Sequence[Written], said: Sequence[str], sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Without ids and probabilities: the running count tells how many tokens an event has."""
    events, place = [chunk("")], 0
    for size in [1, *sizes]:
        usage = {"prompt_tokens": 4, "completion_tokens": place + size}
        events.append(chunk("".join(said[place : place + size]), usage=usage))
        place += size
    details = {
        "spec_verify_ct": len(rounds), "spec_num_correct_drafts": sum(each.accepted for each in rounds),
        "spec_num_proposed_drafts": 5 * len(rounds),
        "spec_correct_drafts_histogram": [sum(each.accepted == kept for each in rounds) for kept in range(6)],
    }  # fmt: skip
    return [
        *events,
        chunk("", choice={"finish_reason": "length"}),
        {"choices": [], "sglext": {"spec_tokens_details": details}},
        {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": len(said)}},
    ]


@settings(max_examples=examples(100))
@given(st.data(), answers(width=5))
def test_sglang_tells_totals(data: st.DataObject, answer: list[Written]) -> None:
    said = texts(data.draw, answer)
    server = Sglang(ServerFacts("sglang", "", speculates=True))
    steps, report = read(
        server.rounds(StepMaker(1, 0.0)), sglang_events(answer, said, [each.tokens for each in answer])
    )
    assert text_of(steps) == "".join(said) and sum(len(step.emitted) for step in steps) == len(said)
    assert set(verdicts_of(steps)) == {"unknown"}
    facts = report.statistics
    assert (facts.num_spec_steps, facts.num_draft_tokens) == (len(answer), 5 * len(answer))
    assert facts.num_accepted_draft_tokens == sum(each.accepted for each in answer)


def test_names_that_sglang_gave_its_counts_before() -> None:
    answer = [Written(5, 2, 3), Written(5, 0, 1)]
    for names in (
        ("spec_accepted_drafts", "spec_proposed_drafts", "spec_accept_histogram"),
        ("spec_accept_token_num", "spec_draft_token_num", "spec_accept_histogram"),
    ):
        events = sglang_events(answer, list("abcde"), [3, 1])
        details = events[-2]["sglext"]["spec_tokens_details"]
        now = ("spec_num_correct_drafts", "spec_num_proposed_drafts", "spec_correct_drafts_histogram")
        for old, name in zip(names, now, strict=True):
            details[old] = details.pop(name)
        _, report = read(Sglang(ServerFacts("sglang", "", speculates=True)).rounds(StepMaker(1, 0.0)), events)
        assert report.statistics.num_accepted_draft_tokens == 2


def test_a_token_s_text_is_found_where_it_can_be() -> None:
    assert shared("one two three", ["one", " two", " three"]) == ["one", " two", " three"]
    assert shared("one two three", ["one", None, " three"]) == ["one", " two", " three"]
    assert shared("one two three", [None, None]) == ["one two three", ""]
    assert shared("Hi", ["Hi", "<eos>"]) == ["Hi", ""]
    assert shared(" 実", ["", " 実"]) == ["", " 実"]
    carried, left = carry([("thought", "so"), ("answer", "yes no")], ["so", "</think>", "yes", " no"])
    assert carried == [("thought", "so"), ("control", ""), ("answer", "yes"), ("answer", " no")] and left == []
    carried, left = carry([("thought", "so"), ("answer", "yes")], [None])
    assert carried == [("thought", "so")] and left == [("answer", "yes")]
