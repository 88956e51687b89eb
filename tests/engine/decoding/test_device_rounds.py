"""Rounds that run on the device by themselves, in Triton's interpreter: they say what the host's rounds say."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from engine.commands import GenerationSettings
from engine.decoding import pieces
from engine.decoding.decoder import Decoder, Prompt, Round
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.decode.tiles import DraftTiles, TargetTiles, Tiles
from engine.kernels.round.state import CURSOR, WIDTH
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kernels.weights.int8 import Int8Weight
from engine.lab.bench.policy import _device_decision
from engine.lab.bench.script import Script, ScriptedHostRounds, ScriptedLaunches
from engine.loading.checkpoint import load_drafter, load_target
from engine.measured import costs
from engine.models.dflash.modules import DFlashDrafter
from engine.models.gemma4.modules import Gemma4
from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable, RoundCosts
from tests.engine.checkpoints import FULL, SLIDING, VOCAB_SIZE, drafter_config, random_target, write_drafter
from tests.engine.conftest import CPU, no_progress
from tests.engine.small_decoders import (
    Answer,
    Proposal,
    assert_caches_equal_recomputation,
    prompt_ids,
    run_turn,
    scripted,
    set_stops,
    settings,
)
from tests.kernels.ordered_sums import sum_in_order

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

CONTEXT = 96
WIDE = Tiles(columns=128, depth=64)
TILES = TargetTiles(
    qkv=WIDE,
    output=replace(WIDE, columns=64, splits=2),
    gate_up=replace(WIDE, columns=64),
    down=replace(WIDE, columns=64, depth=32, splits=3),
    expert_gate_up=WIDE,
    expert_down=WIDE,
    head=replace(WIDE, columns=256),
)
DRAFT_TILES = DraftTiles(
    context=replace(WIDE, columns=64, splits=2),
    context_kv=WIDE,
    qkv=WIDE,
    output=replace(WIDE, columns=64, splits=2),
    gate_up=WIDE,
    down=replace(WIDE, columns=64, splits=2),
    head=replace(WIDE, columns=256),
)
"""Few programs: each costs the interpreter about a millisecond."""
PROMPT = prompt_ids(30)
"""Longer than the windows of 24 and 20, so that rings wrap."""


@dataclass(frozen=True)
class Pair:
    target: Gemma4
    drafter: DFlashDrafter


@pytest.fixture(scope="module", params=[False, True], ids=["dense", "experts"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A sliding and a full layer each, both tapped."""
    folder: Path = tmp_path_factory.mktemp("pair")
    random_target([SLIDING, FULL], request.param, seed=2).save_pretrained(folder / "target")
    write_drafter(folder / "drafter", drafter_config([SLIDING, FULL], [0, 1], 2, attention_bias=True), seed=2)
    target = load_target(folder / "target", CPU, no_progress)
    target.config = replace(target.config, stop_token_ids=())
    return Pair(target, load_drafter(folder / "drafter", target, no_progress))


DENSE = pytest.mark.parametrize("pair", [False], indirect=True, ids=["dense"])


def on_device(pair: Pair, proposal: Proposal | None = None, max_context: int = CONTEXT) -> Decoder:
    """A decoder whose device runs the rounds; with a proposal, what it drafts is scripted."""
    decoder = Decoder(pair.target, pair.drafter, max_context)
    launches = RoundLaunches(decoder, tiles=TILES, draft_tiles=DRAFT_TILES)
    decoder.use_rounds(DeviceRounds(launches))
    if proposal is not None:
        rows, state, tree = launches.drafter, launches.state, launches.tree
        assert rows is not None
        tokens, probability = rows.out.token, rows.out.probability

        def draft(count: int) -> None:
            if state.draft_width > 0:
                tokens[:15] = torch.tensor(proposal(int(state.cursor), int(state.anchor), 15))
            probability.fill_(0.5)
            if tree is not None:  # the only choice that is worth anything
                tree.choices.tokens[:, 0] = tokens
                tree.choices.probabilities[:] = torch.tensor([0.5, 0.0, 0.0, 0.0])

        rows.draft = draft  # type: ignore[method-assign]
    return decoder


def by_host(pair: Pair, proposal: Proposal | None = None, max_context: int = CONTEXT) -> Decoder:
    return Decoder(pair.target, scripted(pair.drafter, proposal) if proposal else pair.drafter, max_context)


def by_script(decoder: Decoder, accepted: Sequence[int], confidences: Sequence[Sequence[float]] = ()) -> Decoder:
    """The same decoder, with rounds that follow a script."""
    script = Script(CPU)
    if isinstance(decoder.rounds, DeviceRounds):
        decoder.use_rounds(DeviceRounds(ScriptedLaunches(script, decoder, None, TILES, DRAFT_TILES)))
    else:
        decoder.use_rounds(ScriptedHostRounds(script))
    script.play(accepted, confidences)
    return decoder


def mostly_right(text: Sequence[int], error_rate: float = 0.25) -> Proposal:
    """Proposes what follows in ``text``, wrong at positions that don't depend on when they are asked about."""
    rng = random.Random("errors")
    drafted = [(token + 1) % VOCAB_SIZE if rng.random() < error_rate else token for token in [*text, *[0] * 32]]
    return lambda position, _, count: drafted[position + 1 : position + 1 + count]


def spoken(pair: Pair, wanted: GenerationSettings) -> list[int]:
    """Prompt and answer, without a drafter."""
    return [*PROMPT, *run_turn(Decoder(pair.target, None, CONTEXT), PROMPT, wanted).ids]


def assert_same_rounds(actual: Answer, expected: Answer) -> None:
    assert actual.ids == expected.ids
    for ours, theirs in zip(actual.rounds, expected.rounds, strict=True):
        for field in ("draft_ids", "num_accepted", "emitted", "verify_width", "context_length", "finish", "verdicts"):
            assert getattr(ours, field) == getattr(theirs, field), field
        for field in ("draft_probabilities", "target_probabilities", "probabilities"):
            assert getattr(ours, field) == pytest.approx(getattr(theirs, field), abs=1e-4), field


def test_drafts_and_answers_are_those_of_the_host(pair: Pair) -> None:
    """The real drafter, whose drafts hardly ever hold with random weights; the last of them has no room to draft."""
    wanted = settings(max_new_tokens=3, block_size=7)
    device = on_device(pair)
    assert_same_rounds(run_turn(device, PROMPT, wanted), run_turn(by_host(pair), PROMPT, wanted))
    assert_caches_equal_recomputation(device)


@pytest.mark.parametrize(
    "values",
    [{"block_size": 16}, {"block_size": 5}, {"temperature": 0.8, "seed": 3, "top_k": 60, "top_p": 0.9}],
    ids=["16", "5", "sampled"],
)
@DENSE
def test_accepted_drafts_commit_what_the_host_would(values: dict[str, Any], pair: Pair) -> None:
    wanted = settings(max_new_tokens=12, **values)
    proposal = mostly_right(spoken(pair, wanted))
    device = on_device(pair, proposal)
    answer = run_turn(device, PROMPT, wanted)
    assert len({done.num_accepted for done in answer.rounds}) > 2
    assert_same_rounds(answer, run_turn(by_host(pair, proposal), PROMPT, wanted))
    assert_caches_equal_recomputation(device)


@DENSE
def test_the_text_does_not_depend_on_speculation(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """In bf16, where sums in another order would soon say something else."""
    sum_in_order(monkeypatch)
    same = Pair(deepcopy(pair.target).bfloat16(), deepcopy(pair.drafter).bfloat16())
    same.target.prepare()
    same.drafter.prepare()
    wanted = settings(max_new_tokens=7, temperature=0.9, seed=1, block_size=6)
    alone = run_turn(on_device(same), PROMPT, replace(wanted, speculation=False))
    assert {done.verify_width for done in alone.rounds[1:]} == {1}
    drafted = run_turn(on_device(same, mostly_right([*PROMPT, *alone.ids])), PROMPT, wanted)
    assert drafted.ids == alone.ids and len(drafted.rounds) < len(alone.rounds)


# --- where an answer ends


@DENSE
def test_a_stop_token_ends_the_answer_inside_a_block(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = settings(max_new_tokens=20)
    text = spoken(pair, wanted)
    stop = text[len(PROMPT) + 6]
    set_stops(monkeypatch, pair.target, 1, stop)
    proposal = mostly_right(text, 0.0)
    device = on_device(pair, proposal)
    answer = run_turn(device, PROMPT, wanted)
    assert answer.finish == "stop" and answer.ids == text[len(PROMPT) : text.index(stop, len(PROMPT)) + 1]
    assert_same_rounds(answer, run_turn(by_host(pair, proposal), PROMPT, wanted))
    assert_caches_equal_recomputation(device)


@DENSE
@pytest.mark.parametrize(
    ("count", "max_context", "speculation"),
    [(2, CONTEXT, True), (3, CONTEXT, True), (8, CONTEXT, True), (3, CONTEXT, False), (40, 34, True), (40, 33, False)],
)
def test_limits_are_exact(count: int, max_context: int, speculation: bool, pair: Pair) -> None:
    wanted = settings(max_new_tokens=count, block_size=4, speculation=speculation)
    proposal = mostly_right(spoken(pair, settings(max_new_tokens=12)), 0.0)
    answer = run_turn(on_device(pair, proposal, max_context), PROMPT, wanted)
    assert len(answer.ids) == min(count, max_context - len(PROMPT))
    assert answer.finish == ("length" if count < 40 else "context")
    assert_same_rounds(answer, run_turn(by_host(pair, proposal, max_context), PROMPT, wanted))


@DENSE
def test_a_round_after_the_end_changes_nothing(pair: Pair) -> None:
    device = on_device(pair)
    run_turn(device, PROMPT, settings(max_new_tokens=2, block_size=4))
    launches = cast(DeviceRounds, device.rounds).launches
    assert device.draft_cache is not None
    kept = [
        store for cache in (device.cache, device.draft_cache) for layer in cache.layers for store in (layer.k, layer.v)
    ]
    before = [store.clone() for store in kept]
    cursor = int(launches.state.cursor)
    for piece in (pieces.Proposal(pieces.BLOCK), pieces.Verification(), pieces.Verification(1)):
        launches.of(piece)()
        assert int(launches.state.record[int(WIDTH)]) == 0 or isinstance(piece, pieces.Proposal)
    assert int(launches.state.cursor) == cursor == device.cache.length == int(launches.state.record[int(CURSOR)])
    assert all(torch.equal(now, then) for now, then in zip(kept, before, strict=True))


# --- between rounds


def told(
    device: Decoder, prompt: GenerationSettings, rounds: Iterable[GenerationSettings | None]
) -> Callable[[], GenerationSettings | None]:
    """A poll that says one thing while the prompt runs, and then these, one for each round."""
    coming = iter(rounds)
    return lambda: prompt if device.cache.length < len(PROMPT) else next(coming)


@DENSE
def test_settings_change_between_rounds(pair: Pair) -> None:
    """Block sizes and temperatures take effect at the next round that is enqueued, and no text is lost."""
    wanted = settings(max_new_tokens=14)
    proposal = mostly_right(spoken(pair, wanted), 0.0)
    sizes = iter([16, 2, 2, 3, 5, 2, 4] + [3] * 20)
    used: list[int] = []

    def poll() -> GenerationSettings:
        used.append(next(sizes))
        return replace(wanted, block_size=used[-1])

    answer = run_turn(on_device(pair, proposal), PROMPT, poll)
    assert answer.ids == spoken(pair, wanted)[len(PROMPT) :]
    widths = [(done.verify_width, done.settings.block_size) for done in answer.rounds[1:-1]]
    assert len(set(widths)) > 2 and all(width == size for width, size in widths)

    hot = replace(wanted, temperature=1.5, seed=9, speculation=False, max_new_tokens=6)
    cool, device = replace(hot, temperature=0.0), on_device(pair)
    answer = run_turn(device, PROMPT, told(device, cool, [cool] + [hot] * 20))
    assert [done.settings.temperature for done in answer.rounds] == [0.0] * 2 + [1.5] * 4
    cold = spoken(pair, cool)[len(PROMPT) :]
    assert answer.ids[:2] == cold[:2] and answer.ids[2:] != cold[2:]


@DENSE
def test_stopping_keeps_what_is_under_way(pair: Pair) -> None:
    """Told to stop, or left by its reader: every round that was enqueued is in the books, and a turn carries on."""
    wanted = settings(max_new_tokens=14, block_size=4)
    text = spoken(pair, wanted)
    proposal = mostly_right(text)
    device = on_device(pair, proposal)
    stopped = run_turn(device, PROMPT, told(device, wanted, [wanted, wanted, None]))
    assert stopped.finish is None and len(stopped.rounds) == 3
    assert stopped.ids == text[len(PROMPT) :][: len(stopped.ids)]
    assert_caches_equal_recomputation(device)
    decoding = device.decode(Prompt(PROMPT, len(PROMPT)), lambda: wanted)
    left = [progress for progress in islice(decoding, 4) if isinstance(progress, Round)]
    decoding.close()  # type: ignore[attr-defined]
    assert len(left) == 2 and device.prefix.tokens == text[: len(device.prefix.tokens)]
    assert_caches_equal_recomputation(device)
    again = run_turn(device, PROMPT, wanted)
    assert again.num_reused == len(PROMPT) - 1 and again.ids == text[len(PROMPT) :]


@DENSE
def test_turns_with_and_without_the_drafter_share_the_caches(pair: Pair) -> None:
    wanted = settings(max_new_tokens=4, block_size=3)
    proposal = mostly_right(spoken(pair, wanted), 0.0)
    device, host = on_device(pair, proposal), by_host(pair, proposal)
    ids = list(PROMPT)
    for number, speculation in enumerate((True, False, True)):
        now = replace(wanted, speculation=speculation)
        ours, theirs = run_turn(device, ids, now), run_turn(host, ids, now)
        assert ours.ids == theirs.ids
        assert_caches_equal_recomputation(device)
        ids += [*ours.ids, *prompt_ids(5, number)]
    assert device.prefix.tokens == host.prefix.tokens


# --- for measuring


@DENSE
def test_acceptance_can_be_scripted(pair: Pair) -> None:
    device, host = (by_script(decoder, [3, 0, 2]) for decoder in (on_device(pair), by_host(pair)))
    wanted = settings(max_new_tokens=9, block_size=6)
    actual = run_turn(device, PROMPT, wanted)
    assert [done.num_accepted for done in actual.rounds[1:4]] == [3, 0, 2]
    assert_same_rounds(actual, run_turn(host, PROMPT, wanted))


@DENSE
def test_drafting_in_8_bits_says_the_same(pair: Pair) -> None:
    wanted = settings(max_new_tokens=3, block_size=4)
    decoder = Decoder(pair.target, pair.drafter, CONTEXT)
    eighth = Int8Weight.of(pair.target.head)
    decoder.use_rounds(DeviceRounds(RoundLaunches(decoder, eighth, TILES, DRAFT_TILES)))
    answer = run_turn(decoder, PROMPT, wanted)
    assert answer.ids == spoken(pair, wanted)[len(PROMPT) :]


@DENSE
@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.8, "seed": 4}], ids=["greedy", "warm"])
def test_a_chosen_width_changes_no_text_and_is_in_the_books(pair: Pair, sampling: dict[str, float]) -> None:
    """Half-sure drafts at costs that grow: some verified, some not, some rounds without any."""
    wanted = settings(max_new_tokens=18, block_size=8, **sampling)
    text = spoken(pair, wanted)
    device = on_device(pair, mostly_right(text, error_rate=0.6))
    policy = Auto(CostTable((0,), (RoundCosts(4.0, tuple(2.0 + 0.8 * row for row in range(16))),)))
    device.use_policy(policy)
    answer = run_turn(device, PROMPT, replace(wanted, block_size="auto"))
    assert answer.ids == text[len(PROMPT) :]
    drafted = [done for done in answer.rounds if done.draft_ids]
    assert 0 < len(drafted) < len(answer.rounds) - 1
    assert any(done.verify_width < len(done.draft_ids) + 1 for done in drafted)
    for done in drafted:
        assert done.choice is not None and done.choice.num_verified == done.verify_width - 1
        assert len(done.target_probabilities) == min(done.num_accepted + 1, done.verify_width - 1)
        whole = "bonus" if done.verify_width > 1 else "plain"
        assert done.verdicts[-1] == ("corrected" if done.num_accepted < done.verify_width - 1 else whole)
    assert sum(policy.worth.first.confidence) > 0
    assert_caches_equal_recomputation(device)


@DENSE
def test_scripted_confidences_decide_the_width(pair: Pair) -> None:
    """Sure and hopeless drafts in turn: all or nothing of them is looked at, and the script goes on either way."""
    device, host = on_device(pair), by_host(pair)
    table = CostTable((0,), (RoundCosts(0.1, tuple(2.0 + 0.2 * row for row in range(16))),))
    for decoder in (device, host):
        by_script(decoder, [3, 2], [[1.0] * 15, [0.0] * 15])
        decoder.use_policy(Auto(table))
        rounds = run_turn(decoder, PROMPT, settings(max_new_tokens=12, block_size="auto")).rounds[1:5]
        assert [done.draft_probabilities[0] for done in rounds] == [1, 0, 1, 0]
        assert [done.num_accepted for done in rounds] == [3, 0, 3, 0]
        assert [done.verify_width > 1 for done in rounds] == [True, False, True, False]


@DENSE
def test_costs_are_timed_on_the_device_and_leave_nothing_behind(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "CONTEXTS", (20,))
    monkeypatch.setattr(costs, "WIDTHS", (1, 16))
    monkeypatch.setattr(costs, "REPEATS", 1)
    wanted = settings(max_new_tokens=3, block_size=4)
    device = on_device(pair)
    table = costs.time_rounds(device, PROMPT)
    assert table is not None and len(table.costs[0].verify) == 16 and table.costs[0].draft > 0
    assert cast(DeviceRounds, device.rounds).launches.drafting().tree
    choice_ms = _device_decision(device, table, PROMPT, 20)
    assert choice_ms is not None and choice_ms > 0
    assert run_turn(device, PROMPT, wanted).ids == run_turn(by_host(pair), PROMPT, wanted).ids
    assert_caches_equal_recomputation(device)
