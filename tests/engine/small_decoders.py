"""Helpers for tests of the decoding loop: run a turn, script a drafter, recompute the caches."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import pytest
import torch
from torch import Tensor

from engine.commands import GenerationSettings
from engine.decoding.decoder import Decoder, Poll, Prompt, Round
from engine.events import PrefillDone, TurnStarted
from engine.kv_cache.cache import Cache
from engine.kv_cache.delta_state import DeltaState
from engine.kv_cache.last_rows import LastRowsState
from engine.kv_cache.layer_cache import LayerCache
from engine.kv_cache.layer_state import LayerState
from engine.models.dflash.modules import DFlashDrafter, Draft
from engine.models.gemma4.modules import Gemma4
from engine.models.target import TargetModel
from support.checkpoints import VOCAB_SIZE

MAX_CONTEXT = 2048

Proposal = Callable[[int, int, int], Sequence[int]]
"""(position of the anchor, anchor, how many) -> drafted ids."""


GENERATION_PROMPT = (105, 108, 107, 100, 101)
"""Stands at the end of a prompt, and isn't repeated in the next turn's."""


class Pair(Protocol):
    target: TargetModel
    drafter: DFlashDrafter


def settings(**values: object) -> GenerationSettings:
    return GenerationSettings(**({"max_new_tokens": 40} | values))  # type: ignore[arg-type]


def prompt_ids(length: int, seed: int = 0) -> tuple[int, ...]:
    rng = random.Random(f"prompt {seed}")
    return tuple(rng.randrange(107, VOCAB_SIZE) for _ in range(length))


def set_stops(monkeypatch: pytest.MonkeyPatch, target: Gemma4, *ids: int) -> None:
    """These tokens end an answer, and no others."""
    monkeypatch.setattr(target, "config", replace(target.config, stop_token_ids=ids))


@dataclass(frozen=True)
class Answer:
    """What one turn of a decoder yielded."""

    num_reused: int
    rounds: tuple[Round, ...]

    @property
    def ids(self) -> list[int]:
        return [token for done in self.rounds for token in done.emitted]

    @property
    def finish(self) -> str | None:
        return self.rounds[-1].finish if self.rounds else None


def run_turn(
    decoder: Decoder, ids: Sequence[int], wanted: GenerationSettings | Poll, stable_length: int | None = None
) -> Answer:
    """Decodes to the end, with fixed settings or those that a poll gives."""
    poll = (lambda: wanted) if isinstance(wanted, GenerationSettings) else wanted
    stable = len(ids) if stable_length is None else stable_length
    reused, rounds = -1, []
    for progress in decoder.decode(Prompt(tuple(ids), stable), poll, compares=True):
        match progress:
            case TurnStarted():
                reused = progress.num_reused_tokens
            case Round():
                rounds.append(progress)
            case PrefillDone():
                assert reused >= 0 and not rounds
    return Answer(reused, tuple(rounds))


class ScriptedDrafter:
    """Takes in context as the real drafter does, but proposes what a test tells it to."""

    def __init__(self, real: DFlashDrafter, proposal: Proposal):
        self.config, self.sequential, self.conditioned = real.config, real.sequential, False
        self.proposal = proposal
        self._real = real

    def new_cache(self, *where: Any) -> Cache:
        return self._real.new_cache(*where)

    def tokens(self, places: Tensor) -> Tensor:
        return places

    def ingest(self, features: Tensor, cache: Cache) -> None:
        self._real.ingest(features, cache)

    def draft(self, target: Gemma4, anchor: int, block_size: int, cache: Cache) -> Draft:
        self._real.draft(target, anchor, block_size, cache)
        ids = list(self.proposal(cache.length, anchor, block_size - 1))
        return Draft(torch.tensor(ids), torch.full((block_size - 1,), 0.5))


def scripted(real: DFlashDrafter, proposal: Proposal) -> DFlashDrafter:
    return cast(DFlashDrafter, ScriptedDrafter(real, proposal))


def oracle(text: Sequence[int]) -> Proposal:
    """Proposes what follows in ``text``, prompt and answer together; past its end, anything."""
    padded = [*text, *[0] * 32]
    return lambda position, _, count: padded[position + 1 : position + 1 + count]


def faulty(proposal: Proposal, error_rate: float, seed: int) -> Proposal:
    """Gets each token wrong with a probability."""
    rng = random.Random(seed)

    def propose(position: int, anchor: int, count: int) -> list[int]:
        right = proposal(position, anchor, count)
        return [(token + 1) % VOCAB_SIZE if rng.random() < error_rate else token for token in right]

    return propose


@torch.inference_mode()
def assert_caches_equal_recomputation(decoder: Decoder) -> None:
    """What the next query would read from every layer equals what a fresh pass over the same tokens writes."""
    target, drafter, tokens = decoder.target, decoder.drafter, decoder.prefix.tokens
    assert decoder.cache.length == len(tokens)
    if not tokens:
        return
    taps = drafter.config.target_layer_ids if drafter is not None else ()
    fresh = _whole(target.config.layers, target.dtype)
    features = target(torch.tensor(tokens), 0, fresh, taps).features
    fresh.commit(len(tokens))
    _assert_same_view(decoder.cache, fresh, len(tokens))
    if drafter is None or drafter.config.borrows or decoder.draft_cache is None:  # one that borrows keys keeps none
        return
    if decoder.draft_cache.length > 0:
        length = decoder.draft_cache.length
        fresh_draft = _whole(drafter.config.states, target.dtype)
        drafter.ingest(features[:length], fresh_draft)
        known = length - 1 if drafter.sequential else length  # the newest row's pair waits for the token behind it
        _assert_same_view(decoder.draft_cache, fresh_draft, known)


def _whole(layers: Sequence[object], dtype: torch.dtype) -> Cache:
    return Cache(layers, MAX_CONTEXT, MAX_CONTEXT, dtype, torch.device("cpu"))  # type: ignore[arg-type]


def _assert_same_view(ours: Cache, fresh: Cache, length: int) -> None:
    for layer, recomputed in zip(ours.layers, fresh.layers, strict=True):
        for actual, expected in zip(_seen(layer, length), _seen(recomputed, length), strict=True):
            torch.testing.assert_close(actual, expected, atol=1e-4, rtol=0)


def _seen(layer: LayerState, position: int) -> tuple[Tensor, ...]:
    """What a query at ``position`` finds: keys and values, or the state that recurs."""
    if isinstance(layer, LayerCache):
        return layer.read(layer.first_visible(position), position)
    if isinstance(layer, LastRowsState):
        return (layer.at(position),)
    assert isinstance(layer, DeltaState)
    return layer.moment(position)


class Conversation:
    """One decoder over several turns; every turn is checked against a decoder that starts from nothing."""

    def __init__(self, pair: Pair):
        self.pair = pair
        self.decoder = Decoder(pair.target, pair.drafter, MAX_CONTEXT)

    def ask(self, history: tuple[int, ...], wanted: GenerationSettings, all_stable: bool = False) -> Answer:
        """Asks with the generation prompt behind the history. ``all_stable``: later prompts will repeat that as well
        (with thinking on they do), so that no snapshot is taken."""
        prompt = (*history, *GENERATION_PROMPT)
        fresh = Decoder(self.pair.target, None, MAX_CONTEXT)
        expected = run_turn(fresh, prompt, replace(wanted, speculation=False)).ids
        self.decoder.drafter = scripted(self.pair.drafter, faulty(oracle((*prompt, *expected)), 0.2, len(history)))
        answer = run_turn(self.decoder, prompt, wanted, None if all_stable else len(history))
        assert answer.ids == expected
        assert_caches_equal_recomputation(self.decoder)
        return answer

    @property
    def draft_length(self) -> int:
        assert self.decoder.draft_cache is not None
        return self.decoder.draft_cache.length


def converse(talk: Conversation, speculative: GenerationSettings, seed: int, turns: int, longest: int) -> None:
    """Any order of plain and speculative turns, short and long, of going on, going back and starting over."""
    rng = random.Random(seed)
    history: tuple[int, ...] = ()
    for turn in range(turns):
        match rng.choice(["on", "on", "on", "back", "new"]):
            case "back":
                history = history[: rng.randint(0, len(history))]
            case "new":
                history = ()
        history += prompt_ids(rng.randint(1, 40), 100 * seed + turn)
        wanted = replace(speculative, speculation=rng.random() < 0.5, temperature=rng.choice([0, 0.9]))
        wanted = replace(wanted, max_new_tokens=rng.choice([1, 2, 5, longest]))
        history += tuple(talk.ask(history, wanted, all_stable=rng.random() < 0.3).ids)


def reuse_and_go_on(talk: Conversation, wanted: GenerationSettings) -> None:
    """A continuation reuses what both caches hold: a drafter hasn't read the last round."""
    first = prompt_ids(40)
    said = (*first, *GENERATION_PROMPT, *talk.ask(first, wanted).ids)
    held = talk.draft_length if wanted.speculation else len(said) - 1
    assert len(first) < held <= talk.decoder.cache.length
    assert talk.ask((*said, *prompt_ids(9, 1)), wanted).num_reused == held


def stop_and_go_on(talk: Conversation, speculative: GenerationSettings, polls: int) -> None:
    """A turn that is told to stop when it has asked so often: the caches hold what was said, and the next goes on."""
    first, left = prompt_ids(50), iter(range(polls))
    poll = lambda: speculative if next(left, None) is not None else None  # noqa: E731
    stopped = run_turn(talk.decoder, (*first, *GENERATION_PROMPT), poll, stable_length=len(first))
    assert_caches_equal_recomputation(talk.decoder)
    talk.ask((*first, *stopped.ids, *prompt_ids(7, 1)), speculative)
