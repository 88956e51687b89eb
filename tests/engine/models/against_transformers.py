"""What every family of targets is held against ``transformers`` for: logits, taps, positions far out, answers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from engine.decoding.decoder import Decoder
from engine.kv_cache.cache import Cache
from engine.models.dflash.modules import DFlashDrafter
from engine.models.target import TargetModel
from tests.engine.conftest import CPU
from tests.engine.small_decoders import (
    assert_caches_equal_recomputation,
    faulty,
    oracle,
    prompt_ids,
    run_turn,
    scripted,
    settings,
)

FAR = 6000
"""Where pairs that turn slowly have turned."""


@torch.inference_mode()
def in_pieces(target: TargetModel, ids: Tensor, sizes: Sequence[int], taps: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Logits and features, in pieces of these sizes, of which the last one is repeated."""
    slack = max(*sizes, 16)
    cache = Cache(target.config.layers, len(ids) + slack, slack, torch.float32, CPU)
    features, logits, coming = [], [], chain(sizes, repeat(sizes[-1]))
    while cache.length < len(ids):
        piece = ids[cache.length :][: next(coming)]
        output = target(piece, cache.length, cache, taps)
        cache.commit(cache.length + len(piece))
        assert output.features is not None
        features.append(output.features)
        logits.append(target.logits(output.hidden))
    return torch.cat(logits), torch.cat(features)


@torch.inference_mode()
def assert_same(
    target: TargetModel, reference: PreTrainedModel, ids: Tensor, sizes: Sequence[int], taps: Sequence[int] = (0, 1)
) -> None:
    """``taps`` without the last layer, whose output ``transformers`` norms."""
    expected = reference(ids[None], output_hidden_states=True)
    logits, features = in_pieces(target, ids, sizes, taps)
    torch.testing.assert_close(logits, expected.logits[0], atol=1e-4, rtol=0)
    states = torch.cat([expected.hidden_states[1 + tap][0] for tap in taps], dim=-1)
    torch.testing.assert_close(features, states, atol=1e-4, rtol=0)


@torch.inference_mode()
def assert_same_far_out(target: TargetModel, reference: PreTrainedModel) -> None:
    """Of rows that see only one another, as if nothing stood before."""
    ids, places = torch.tensor(prompt_ids(24)), torch.arange(FAR, FAR + 24)
    expected = reference(ids[None], position_ids=places[None]).logits[0]
    cache = Cache(target.config.layers, FAR + len(ids), 32, torch.float32, CPU)
    cache.set_length_for_timing(FAR)
    for kept in cache.attention:
        extend = kept.extend
        kept.extend = lambda at, k, v, extend=extend: tuple(each[:, -24:] for each in extend(at, k, v))  # type: ignore[method-assign,misc]
    torch.testing.assert_close(target.logits(target(ids, FAR, cache).hidden), expected, atol=1e-4, rtol=0)


def their_answer(reference: PreTrainedModel, prompt: Sequence[int], tokens: int, **more: Any) -> list[int]:
    """Greedily."""
    said: Any = reference.generate(torch.tensor([prompt]), max_new_tokens=tokens, do_sample=False, **more)  # type: ignore[operator]
    return list(said[0, len(prompt) :].tolist())


def assert_same_answers(
    target: TargetModel, drafter: DFlashDrafter, prompt: Sequence[int], expected: Sequence[int], block_size: int
) -> None:
    """Plain, with the drafter, and with one that is mostly right."""
    right = scripted(drafter, faulty(oracle([*prompt, *expected]), 0.2, seed=0))
    for drafts in (None, drafter, right):
        decoder = Decoder(target, drafts, 512)
        answer = run_turn(decoder, prompt, settings(max_new_tokens=len(expected), block_size=block_size))
        assert answer.ids == expected
        assert (len(answer.rounds) < 0.6 * len(expected)) == (drafts is right)
        assert_caches_equal_recomputation(decoder)
