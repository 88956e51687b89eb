"""The fair line, how long it takes, and the search for stop texts, whatever comes in whatever order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dflash_tui.serve import scheduler
from dflash_tui.serve.failures import ApiFailure
from dflash_tui.serve.fair_queue import FairQueue
from dflash_tui.serve.requests import CompletionRequest
from dflash_tui.serve.stop_texts import StopTextFilter
from engine.commands import GenerationSettings
from engine.events import EngineReady, TurnFinished


def test_clients_take_turns_and_keep_their_own_order() -> None:
    line: FairQueue[str] = FairQueue()
    for item in ("a1", "a2", "a3", "b1", "c1", "b2"):
        line.join(item[0], item)
    assert line.leave("a", "a2") and not line.leave("a", "a2") and not line.leave("z", "z1")
    assert [line.next() for _ in range(6)] == ["a1", "b1", "c1", "a3", "b2", None]


def test_who_has_most_gives_way_to_who_has_less() -> None:
    line: FairQueue[str] = FairQueue()
    for item in ("a1", "a2", "b1"):
        line.join(item[0], item)
    assert line.give_way("b") is None and line.give_way("a") is None
    assert line.give_way("c") == "a2" and line.give_way("c") is None
    assert line.clear() == ["a1", "b1"] and len(line) == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=30))
def test_nobody_waits_for_more_than_one_of_each_other(joined: list[tuple[str, int]]) -> None:
    line: FairQueue[tuple[str, int]] = FairQueue()
    for client, number in joined:
        line.join(client, (client, number))
    out = list(iter(line.next, None))
    assert sorted(out) == sorted(joined)
    for client in "abc":
        assert [item for item in out if item[0] == client] == [item for item in joined if item[0] == client]
        places = [place for place, item in enumerate(out) if item[0] == client]
        assert all(after - before <= 3 for before, after in pairwise(places))


def passed(pieces: list[str], stops: list[str]) -> tuple[str, str | None]:
    watch = StopTextFilter(stops)
    shown = ""
    for piece in pieces:
        shown += watch.push(piece)
        if watch.stop_text is not None:
            return shown, watch.stop_text
    return shown + watch.rest(), None


@example(["aab", "b"], ["aabb", "ab"])
@given(st.lists(st.text("abx", max_size=4), max_size=8), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3))
def test_a_stop_text_cuts_at_the_same_place_however_the_answer_comes(pieces: list[str], stops: list[str]) -> None:
    text = "".join(pieces)
    shown, found = passed(pieces, stops)
    assert (shown, found) == passed([text], stops)
    assert text.startswith(shown)
    if found is None:
        assert shown == text and not any(stop in text for stop in stops)
    else:
        assert text[len(shown) :].startswith(found) and not any(stop in shown for stop in stops)


@pytest.mark.parametrize(("piece", "shown"), [("ab", "a"), ("b", ""), ("bc", "bc"), ("xyz", "xyz")])
def test_only_what_may_become_a_stop_text_is_held_back(piece: str, shown: str) -> None:
    assert StopTextFilter(["bd"]).push(piece) == shown


def test_a_full_queue_says_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(scheduler, "monotonic", lambda: now[0])
    line = scheduler.Scheduler(lambda _: None, 2, lambda *_: None)
    line.apply(EngineReady("t", None, "cpu", "float32", 1, 4096, 1.0))
    wanted = CompletionRequest("chat", GenerationSettings())

    def told() -> int | None:
        with pytest.raises(ApiFailure) as caught:
            line.submit("a", wanted)
        return caught.value.retry_after

    for _ in range(3):
        line.submit("a", wanted)
    assert told() == 1
    now[0] = 10.0
    assert told() == 20  # as long as the first took so far, for each that waits
    now[0] = 300.0
    line.apply(TurnFinished(1, "stop", ""))
    line.submit("a", wanted)
    assert told() == 900
    now[0] = 400.0
    assert told() == 800
