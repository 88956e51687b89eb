"""Prompts in pieces: as long as a GPU likes them, longer than the rings, or short. The caches end up the same."""

from __future__ import annotations

import pytest

from engine.decoding import decoder as decoder_module
from engine.decoding.decoder import Decoder
from engine.kernels.toolchain.jit import INTERPRETED
from engine.models.gemma4.prefill_pass import Gemma4PrefillPass
from support.checkpoints import DRAFT_WINDOW, WINDOW
from tests.engine.conftest import TinyPair
from tests.engine.small_decoders import MAX_CONTEXT, assert_caches_equal_recomputation, prompt_ids, run_turn, settings

SLACK = 16
"""Of the rings, in these tests."""


@pytest.fixture(autouse=True)
def _small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_module, "PREFILL_CHUNK", SLACK)


@pytest.mark.parametrize(
    ("name", "chunk"), [("dense_pair", 7), ("dense_pair", SLACK + 1), ("dense_pair", 1000), ("moe_pair", 45)]
)
def test_an_answer_does_not_depend_on_how_its_prompt_was_cut(
    name: str, chunk: int, request: pytest.FixtureRequest
) -> None:
    assert max(WINDOW, DRAFT_WINDOW) + SLACK < 45, "some pieces are to be longer than the rings"
    pair: TinyPair = request.getfixturevalue(name)
    prompt, wanted = prompt_ids(150), settings(max_new_tokens=30)
    expected = run_turn(Decoder(pair.target, pair.drafter, MAX_CONTEXT), prompt, wanted)
    decoder = Decoder(pair.target, pair.drafter, MAX_CONTEXT)
    decoder.prefill_chunk = chunk
    assert run_turn(decoder, prompt, wanted).ids == expected.ids
    assert_caches_equal_recomputation(decoder)


def test_a_stable_prefix_inside_a_long_piece_is_remembered(moe_pair: TinyPair) -> None:
    prompt, wanted = prompt_ids(150), settings(max_new_tokens=60)
    decoder = Decoder(moe_pair.target, moe_pair.drafter, MAX_CONTEXT)
    decoder.prefill_chunk = 1000
    run_turn(decoder, prompt, wanted, stable_length=120)
    other = (*prompt[:120], *prompt_ids(40, seed=1))
    assert run_turn(decoder, other, wanted, stable_length=140).num_reused == 120
    assert_caches_equal_recomputation(decoder)


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")
def test_kernels_read_a_prompt_where_triton_attends(dense_pair: TinyPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: a piece longer than the rings and one that isn't, a snapshot within, features for the drafter."""
    prompt, wanted = prompt_ids(60), settings(max_new_tokens=12)
    expected = run_turn(Decoder(dense_pair.target, dense_pair.drafter, MAX_CONTEXT), prompt, wanted)
    monkeypatch.setattr(dense_pair.target, "attention_backend", "triton")
    decoder = Decoder(dense_pair.target, dense_pair.drafter, MAX_CONTEXT)
    assert isinstance(decoder.read, Gemma4PrefillPass)
    decoder.prefill_chunk = 45
    assert run_turn(decoder, prompt, wanted, stable_length=50).ids == expected.ids
    assert_caches_equal_recomputation(decoder)
    assert run_turn(decoder, (*prompt[:50], *prompt_ids(5, seed=1)), wanted).num_reused == 50
    assert_caches_equal_recomputation(decoder)
