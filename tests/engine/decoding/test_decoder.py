"""The decoding loop by the host: the target's text under settings that change, and an end where it was asked for. Who
drafts changes no text: ``test_matrix.py``."""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from engine.commands import BlockSize, GenerationSettings
from engine.decoding import decoder as decoder_module
from engine.decoding.decoder import Decoder, Prompt, Round, Turn
from engine.decoding.host_rounds import HostRounds
from engine.errors import WeightsFailure
from engine.kv_cache.cache import Cache
from engine.models.dflash.modules import DFlashDrafter
from engine.rounds.step import Match
from engine.sampling.sampling import Samples, sample
from engine.speculation.auto import Auto
from engine.speculation.choice import LookupOutcome
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.trees import Node
from support.divergence import first_divergence
from tests.engine.conftest import TinyPair
from tests.engine.small_decoders import (
    MAX_CONTEXT,
    Proposal,
    assert_caches_equal_recomputation,
    faulty,
    oracle,
    prompt_ids,
    run_turn,
    scripted,
    set_stops,
    settings,
)

LOOSE = {"temperature": 0.8, "seed": 5}
SAMPLERS: dict[str, dict[str, float]] = {
    "greedy": {},
    "cool": {"temperature": 0.5, "seed": 8},
    "warm": LOOSE,
    "as trained": {"temperature": 1.0, "seed": 9},
    "hot": {"temperature": 1.5, "seed": 6},
    "top-p": {**LOOSE, "top_p": 0.9},
    "top-k": {**LOOSE, "top_k": 20},
    "top-k and top-p": {"temperature": 1.5, "seed": 7, "top_k": 40, "top_p": 0.8},
}


@pytest.fixture
def pair(unstopped_pair: TinyPair) -> TinyPair:
    return unstopped_pair


def new_decoder(pair: TinyPair, drafter: DFlashDrafter | None = None, max_context: int = MAX_CONTEXT) -> Decoder:
    return Decoder(pair.target, drafter or pair.drafter, max_context)


def plain_answer(pair: TinyPair, prompt: tuple[int, ...], wanted: GenerationSettings) -> list[int]:
    """What the target says without speculation."""
    return run_turn(Decoder(pair.target, None, MAX_CONTEXT), prompt, replace(wanted, speculation=False)).ids


def with_proposal(pair: TinyPair, proposal: Proposal, max_context: int = MAX_CONTEXT) -> Decoder:
    return new_decoder(pair, scripted(pair.drafter, proposal), max_context)


# --- the text does not depend on speculation


@pytest.mark.parametrize("sampler", SAMPLERS)
@torch.inference_mode()
def test_every_token_is_the_sample_of_its_position(sampler: str, pair: TinyPair) -> None:
    """One pass over prompt and answer samples the same tokens: row i speaks for position i + 1 of the whole text."""
    prompt, wanted = prompt_ids(30), settings(**SAMPLERS[sampler])
    text = [*prompt, *plain_answer(pair, prompt, wanted)]
    cache = Cache(pair.target.config.layers, 128, 128, torch.float32, torch.device("cpu"))
    logits = pair.target.logits(pair.target(torch.tensor(text), 0, cache).hidden)
    noise = {"temperature": wanted.temperature, "top_k": wanted.top_k, "top_p": wanted.top_p, "seed": wanted.seed}
    assert sample(logits[len(prompt) - 1 : -1], len(prompt), **noise).ids == text[len(prompt) :]


def test_block_size_may_change_between_rounds(pair: TinyPair) -> None:
    prompt, wanted = prompt_ids(33), settings(max_new_tokens=80, **LOOSE)
    expected = plain_answer(pair, prompt, wanted)
    decoder = with_proposal(pair, faulty(oracle((*prompt, *expected)), 0.15, 1))
    rng = random.Random(0)
    widths = []

    def poll() -> GenerationSettings:
        widths.append(rng.randint(2, 16))
        return replace(wanted, block_size=widths[-1])

    answer = run_turn(decoder, prompt, poll)
    assert answer.ids == expected
    assert len({done.verify_width for done in answer.rounds}) > 4
    assert all(done.verify_width <= done.settings.block_size for done in answer.rounds)
    assert_caches_equal_recomputation(decoder)


def test_temperature_may_change_between_rounds(pair: TinyPair) -> None:
    """Every round samples at the temperature that was in force when it began."""
    prompt, cold, hot = prompt_ids(33), settings(seed=4), settings(seed=4, temperature=1.5)
    text = plain_answer(pair, prompt, cold)
    turns_hot_at = 12

    def heated(emitted: list[int]) -> GenerationSettings:
        return hot if len(emitted) >= turns_hot_at else cold

    def run(decoder: Decoder, speculation: bool) -> tuple[list[int], list[float]]:
        emitted: list[int] = []
        temperatures = []
        for progress in decoder.decode(
            Prompt(prompt, len(prompt)), lambda: replace(heated(emitted), speculation=speculation)
        ):
            if isinstance(progress, Round):
                emitted.extend(progress.emitted)
                temperatures.append(progress.settings.temperature)
        return emitted, temperatures

    # Block size 2 with an adversarial drafter emits one token a round, as plain decoding does: same change point.
    adversary = with_proposal(pair, lambda position, _, count: [(text[0] + 1) % 107] * count)
    expected, _ = run(Decoder(pair.target, None, MAX_CONTEXT), speculation=False)
    actual, temperatures = run(adversary, speculation=True)
    assert actual == expected
    assert actual[:turns_hot_at] == text[:turns_hot_at] and actual != text
    assert temperatures == [0.0] * turns_hot_at + [1.5] * (len(actual) - turns_hot_at)


def test_divergence_is_found_where_it_is(pair: TinyPair) -> None:
    """By what the checks on a GPU compare answers with."""
    prompt = prompt_ids(20)
    plain = plain_answer(pair, prompt, settings(max_new_tokens=9))
    assert first_divergence(pair.target, prompt, plain, plain) is None
    other = [*plain[:5], (plain[5] + 1) % 512, *plain[6:]]
    divergence = first_divergence(pair.target, prompt, plain, other)
    assert divergence is not None and divergence.position == 5 and divergence.margin > divergence.allowed


# --- what the drafter is worth


def test_the_first_error_ends_the_draft(pair: TinyPair) -> None:
    prompt, wanted = prompt_ids(40), settings(block_size=16, max_new_tokens=17)
    text = [*prompt, *plain_answer(pair, prompt, wanted)]
    text[len(prompt) + 4] = (text[len(prompt) + 4] + 1) % 512
    _, done, *_ = run_turn(with_proposal(pair, oracle(text)), prompt, wanted).rounds
    assert done.num_accepted == 3 and done.verdicts == ("accepted",) * 3 + ("corrected",)


@pytest.mark.parametrize("block_size", [8, "auto"])
def test_a_drafter_that_computes_no_numbers_is_named(block_size: BlockSize, pair: TinyPair) -> None:
    drafter = deepcopy(pair.drafter)
    for parameter in drafter.parameters():
        parameter.data.fill_(float("nan"))
    decoder = new_decoder(pair, drafter)
    decoder.use_policy(Auto(CostTable((0,), (RoundCosts(0.5, tuple(2.0 + 0.1 * row for row in range(16)), step=0.1),))))
    with pytest.raises(WeightsFailure, match="The drafter computes values that are no numbers"):
        run_turn(decoder, prompt_ids(20), settings(block_size=block_size))


def test_drafter_caps_the_block_size(pair: TinyPair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair.drafter, "config", replace(pair.drafter.config, block_size=4))
    answer = run_turn(new_decoder(pair), prompt_ids(20), settings(block_size=16))
    assert max(done.verify_width for done in answer.rounds) == 4
    # Where nobody chooses, drafts are verified whole.
    rounds = run_turn(new_decoder(pair), prompt_ids(20), settings(block_size="auto")).rounds[1:]
    assert all(done.verify_width == len(done.draft_ids) + 1 and done.choice is None for done in rounds)


# --- where an answer ends


def test_the_first_token_may_be_a_stop_token(pair: TinyPair, monkeypatch: pytest.MonkeyPatch) -> None:
    first = plain_answer(pair, prompt_ids(10), settings(max_new_tokens=1))
    set_stops(monkeypatch, pair.target, *first)
    answer = run_turn(new_decoder(pair), prompt_ids(10), settings())
    assert answer.ids == first and answer.finish == "stop" and len(answer.rounds) == 1


@pytest.mark.parametrize("speculation", [True, False])
@pytest.mark.parametrize(("room", "most"), [(1, 40), (2, 40), (40, 1), (40, 17)])
def test_limits_are_exact(room: int, most: int, speculation: bool, pair: TinyPair) -> None:
    """Prompt and answer fill the context to the last token, or the answer has as many tokens as were asked for."""
    prompt = prompt_ids(40)
    expected = plain_answer(pair, prompt, settings())[: min(room, most)]
    decoder = with_proposal(pair, oracle((*prompt, *expected)), len(prompt) + room)
    answer = run_turn(decoder, prompt, settings(max_new_tokens=most, speculation=speculation))
    assert (answer.ids, answer.finish) == (expected, "context" if room < most else "length")


# --- stopping


def stop_after(polls: int, wanted: GenerationSettings) -> decoder_module.Poll:
    remaining = iter(range(polls))
    return lambda: wanted if next(remaining, None) is not None else None


def test_stopping_at_every_point_keeps_what_was_said(pair: TinyPair) -> None:
    """Before the prompt, between its pieces, between rounds: a prefix of the answer, and caches that carry on."""
    prompt, wanted = prompt_ids(50), settings(block_size=6, max_new_tokens=24)
    text = plain_answer(pair, prompt, wanted)
    proposal = oracle((*prompt, *text))
    lengths = []
    for polls in range(10):
        decoder = with_proposal(pair, proposal)
        answer = run_turn(decoder, prompt, stop_after(polls, wanted), stable_length=40)
        lengths.append(len(answer.ids))
        assert answer.ids == text[: len(answer.ids)]
        assert_caches_equal_recomputation(decoder)
        again = run_turn(decoder, prompt, wanted, stable_length=40)
        assert again.ids == text
        assert_caches_equal_recomputation(decoder)
    assert lengths[:6] == [0] * 5 + [1], "a poll to begin, four pieces of the prompt, then rounds"
    assert lengths[-1] == 24 and sorted(lengths) == lengths


def test_less_is_drafted_where_rows_of_a_block_cost_and_fall(pair: TinyPair) -> None:
    """As on a CPU. The text is the target's all the same."""
    table = CostTable((0,), (RoundCosts(0.5, tuple(2.0 + 0.1 * row for row in range(16)), step=0.1),))
    prompt, wanted = prompt_ids(20), settings(block_size="auto", max_new_tokens=60, draft_by="drafter")
    text = plain_answer(pair, prompt, wanted)
    drafted = []
    for wrong in (0.0, 0.5):
        decoder = with_proposal(pair, faulty(oracle((*prompt, *text)), wrong, 1))
        decoder.use_policy(Auto(table))
        answer = run_turn(decoder, prompt, wanted)
        assert answer.ids == text
        assert_caches_equal_recomputation(decoder)
        drafted.append([len(done.draft_ids) for done in answer.rounds if done.draft_ids])
    good, bad = drafted
    assert max(good) > 12 and max(bad[2:]) < 10


def test_the_same_question_again_has_the_same_answer(dense_pair: TinyPair) -> None:
    """Of a prompt that the caches hold whole, the last token runs once more: the answer begins behind it."""
    decoder, wanted = Decoder(dense_pair.target, dense_pair.drafter, 128), settings(max_new_tokens=4)
    first, again = (run_turn(decoder, prompt_ids(9), wanted).ids for _ in range(2))
    assert first == again and len(first) > 0


@pytest.mark.parametrize("right", [1, 2, 3])
def test_the_caches_hold_the_best_of_three_branches(right: int) -> None:
    """Each is a pass over the rows of the one before, so the best is run last, wherever it stood."""
    ran: list[list[int]] = []

    def run(_target: object, ids: list[int]) -> SimpleNamespace:
        ran.append(ids)
        return SimpleNamespace(hidden=ids)

    turn = SimpleNamespace(target=None, run=run, sample=lambda ids, asked: Samples([right] * len(ids), [], []))
    tree = [Node(0, 1, choice, 0.3) for choice in range(3)]
    best = HostRounds(3)._verify(cast(Turn, turn), tree, [9, 1, 2, 3], [])
    assert best.ids == ran[-1] == [9, right] and best.accepted == 1


@pytest.mark.parametrize(
    ("emitted", "right", "failed"), [((1, 2), 2, False), ((1, 2, 3, 4), 3, False), ((1, 9), 1, True)]
)
def test_a_match_fails_only_where_the_text_goes_on_differently(
    emitted: tuple[int, ...], right: int, failed: bool
) -> None:
    turn = SimpleNamespace(match=Match(5, 4), guess=lambda count: [1, 2, 3][:count])
    outcome = Turn.lookup_outcome(cast(Turn, turn), emitted, taken=True)
    assert outcome == LookupOutcome(5, right, failed, taken=True)
