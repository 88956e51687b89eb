"""While the target writes alone its tokens wait for the drafter, which then knows all that it would have known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
import torch

from engine.decoding import device_rounds
from engine.decoding.decoder import Decoder, Prompt
from engine.kernels.toolchain.jit import INTERPRETED, MAX_ROWS
from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable, RoundCosts
from support.ordered_sums import sum_in_order
from tests.engine.decoding.pairs import (
    PROMPT,
    Pair,
    assert_same_rounds,
    by_host,
    mostly_right,
    of,
    on_device,
    pair,
    spoken,
)
from tests.engine.small_decoders import (
    Answer,
    assert_caches_equal_recomputation,
    prompt_ids,
    run_turn,
    set_stops,
    settings,
)
from tests.pace import IN_CI

__all__ = ["pair"]

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

TABLE = CostTable((0,), (RoundCosts(0.1, tuple(2.0 + 0.1 * row for row in range(16))),))
AUTO = settings(block_size="auto", max_new_tokens=14, draft_by="drafter")
PLACES = 4


@pytest.fixture
def four_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rests are over sooner: four tokens wait at most."""
    monkeypatch.setattr(device_rounds, "INGEST_BATCH", PLACES)


class Scheduled(Auto):
    """Drafts in the rounds it is told to, and in no others."""

    rounds: Iterable[int] = ()
    asked = 0

    def begin(self, drafts: bool = True) -> None:
        super().begin(drafts)
        self.asked = 0

    def wants_draft(self, context: int) -> bool:
        self.asked += 1
        return self.has_drafter and self.asked - 1 in self.rounds


def drafting(decoder: Decoder, *rounds: int) -> Decoder:
    policy = Scheduled(TABLE)
    policy.rounds = rounds
    decoder.use_policy(policy)
    return decoder


def continued(answer: Answer, number: int = 1) -> list[int]:
    return [*PROMPT, *answer.ids, *prompt_ids(4, number)]


@of("dense")
def test_a_draft_after_a_rest_has_the_bits_it_would_have_had(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a rest of one round, and of one that fills all the places that there are: in CI as many as on a GPU."""
    places = device_rounds.INGEST_BATCH if IN_CI else PLACES
    sum_in_order(monkeypatch)
    monkeypatch.setattr(device_rounds, "INGEST_BATCH", places)
    at_once, one_by_one = (drafting(on_device(pair), 0, 2, places + 3) for _ in range(2))
    wanted = replace(AUTO, max_new_tokens=places + 7)
    ours = run_turn(at_once, PROMPT, wanted)
    monkeypatch.setattr(device_rounds, "INGEST_BATCH", 1)
    theirs = run_turn(one_by_one, PROMPT, wanted)
    assert [bool(done.draft_ids) for done in ours.rounds].count(True) == 3
    for done, expected in zip(ours.rounds, theirs.rounds, strict=True):
        assert (done.draft_ids, done.draft_probabilities) == (expected.draft_ids, expected.draft_probabilities)
        assert (done.emitted, done.context_length) == (expected.emitted, expected.context_length)
    caches = at_once.draft_cache, one_by_one.draft_cache
    assert caches[0] is not None and caches[1] is not None and caches[0].length < caches[1].length
    # Behind the last draft both hold more, of which only as much can be compared as both were told.
    for kept, other in zip(caches[0].layers, caches[1].layers, strict=True):
        assert torch.equal(kept.k[:, : caches[0].length], other.k[:, : caches[0].length])
        assert torch.equal(kept.v[:, : caches[0].length], other.v[:, : caches[0].length])


@of("dense")
@pytest.mark.usefixtures("four_together")
def test_the_host_rests_alike(pair: Pair) -> None:
    """Drafts that are kept before and after rests; all of it as the host says, and nothing missing in the caches."""
    wanted = replace(AUTO, temperature=0.8, seed=4)
    proposal = mostly_right(spoken(pair, wanted))
    device, host = (drafting(decoder(pair, proposal), 0, 2, 9) for decoder in (on_device, by_host))
    ours, theirs = run_turn(device, PROMPT, wanted), run_turn(host, PROMPT, wanted)
    assert ours.ids == theirs.ids == spoken(pair, wanted)[len(PROMPT) :]
    assert max(done.num_accepted for done in ours.rounds) > 1
    assert [done.draft_ids for done in ours.rounds] == [done.draft_ids for done in theirs.rounds]
    for answer in (ours, theirs):
        pauses = [done.choice for done in answer.rounds[1:] if not done.draft_ids]
        assert len(pauses) > 5 and all(
            pause and (pause.chance, pause.cost_ms) == (0.0, pytest.approx(0.2)) for pause in pauses
        )
    for decoder in (device, host):
        assert_caches_equal_recomputation(decoder)
        assert decoder.draft_cache is not None and decoder.cache.length - decoder.draft_cache.length <= MAX_ROWS


@of("dense")
@pytest.mark.usefixtures("four_together")
def test_a_turn_after_one_that_ended_in_a_rest(pair: Pair) -> None:
    """What the drafter was not told of is read again, no more; then it drafts what it would draft anyway."""
    device = drafting(on_device(pair), 0)
    first = run_turn(device, PROMPT, replace(AUTO, max_new_tokens=4))
    assert first.finish == "length" and device.draft_cache is not None
    told = device.draft_cache.length
    assert 0 < device.cache.length - told <= MAX_ROWS
    assert_caches_equal_recomputation(device)
    wanted = settings(max_new_tokens=3, block_size=3)
    second = run_turn(device, continued(first), wanted)
    assert second.num_reused == told
    assert_same_rounds(second, run_turn(by_host(pair), continued(first), wanted))
    assert_caches_equal_recomputation(device)


@of("dense")
@pytest.mark.usefixtures("four_together")
def test_a_rest_ends_with_the_answer(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a stop token, told to stop and left by its reader."""
    text = spoken(pair, AUTO)
    stop = text[len(PROMPT) + 12]
    end = text.index(stop, len(PROMPT)) + 1
    with monkeypatch.context() as patch:
        set_stops(patch, pair.target, 1, stop)
        device = drafting(on_device(pair, mostly_right(text)), 0, 1)
        answer = run_turn(device, PROMPT, AUTO)
        assert answer.finish == "stop" and answer.ids == text[len(PROMPT) : end]
        assert_caches_equal_recomputation(device)

    device = drafting(on_device(pair, mostly_right(text)), 0, 5)
    coming = iter([AUTO] * 4 + [None])
    poll = lambda: AUTO if device.cache.length < len(PROMPT) else next(coming)  # noqa: E731
    stopped = run_turn(device, PROMPT, poll)
    assert stopped.finish is None and len(stopped.rounds) == 5
    assert_caches_equal_recomputation(device)
    decoding = device.decode(Prompt(PROMPT, len(PROMPT)), lambda: AUTO)
    for _ in range(6):
        next(decoding)
    decoding.close()  # type: ignore[attr-defined]
    assert_caches_equal_recomputation(device)
    again = run_turn(device, PROMPT, AUTO)
    assert again.num_reused == len(PROMPT) - 1 and again.ids == text[len(PROMPT) :]
