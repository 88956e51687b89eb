"""Where implementations of DFlash for Gemma 4 disagree: what this engine decided, one test for each decision.

Each changes one input and looks at what must, and must not, change with it, so that a test stays true whatever the
code around it becomes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.decoding.decoder import Decoder
from engine.errors import WeightsFailure
from engine.events import EngineReady, TurnFinished
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_drafter
from engine.models.dflash.config import DFlashConfig
from engine.models.dflash.modules import DFlashDrafter
from engine.models.gemma4 import modules as gemma4
from engine.models.gemma4.modules import Gemma4
from support.checkpoints import DRAFT_WINDOW, FULL, SLIDING, VOCAB_SIZE, WINDOW, drafter_config, write_drafter
from tests.engine.conftest import CPU, TinyPair, no_progress
from tests.engine.small_decoders import oracle, prompt_ids, run_turn, scripted, settings
from tests.engine.test_service import BUNDLED, ask, running

BLOCK = torch.tensor([7] + [4] * 15)


def drafter_of(
    pair: TinyPair, folder: Path, kinds: list[str], scale: float | None = None, **keys: Any
) -> DFlashDrafter:
    """A random drafter beside the pair's target; ``scale`` is the knob, ``keys`` go to its config."""
    write_drafter(folder, drafter_config(kinds, [0, 2], 3, **keys), seed=3)
    return load_drafter(folder, pair.target, no_progress, noise_embed_scale=scale)


def target_cache(target: Gemma4) -> Cache:
    return Cache(target.config.layers, 256, 128, torch.float32, CPU)


def random_features(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, 2 * 64, generator=torch.Generator().manual_seed(seed))


@torch.inference_mode()
def hidden_rows(drafter: DFlashDrafter, features: Tensor, block: Tensor) -> Tensor:
    cache = Cache(drafter.config.layers, 256, 128, torch.float32, CPU)
    drafter.ingest(features, cache)
    return drafter.hidden(block, cache)


def changed_rows(before: Tensor, after: Tensor) -> list[int]:
    return (before != after).any(dim=-1).nonzero().flatten().tolist()


# --- 1: the scale of noise embeddings


def test_noise_embeddings_are_scaled_exactly_once_as_the_target_scales_its_own(
    dense_pair: TinyPair, tmp_path: Path
) -> None:
    target = dense_pair.target
    assert torch.equal(drafter_of(dense_pair, tmp_path, [FULL]).embed(target, BLOCK), target.embed(BLOCK))
    assert target.embedding_scale == 8.0


@pytest.mark.parametrize(("key", "knob", "effective"), [(2.5, None, 2.5), (None, 1.0, 1.0), (2.5, 3.0, 3.0)])
def test_config_and_knob_replace_the_noise_embedding_scale(
    key: float | None, knob: float | None, effective: float, dense_pair: TinyPair, tmp_path: Path
) -> None:
    target = dense_pair.target
    drafter = drafter_of(dense_pair, tmp_path, [FULL], knob, input_embedding_scale=key)
    assert torch.equal(drafter.embed(target, BLOCK), target.embed_tokens.weight[BLOCK] * effective)


def test_the_knob_reaches_the_engine_and_changes_drafts_but_no_text(bundled_pair: Path) -> None:
    texts, accepted = [], []
    for knob in (None, 1.0):
        with running(replace(BUNDLED, noise_embed_scale=knob)) as session:
            assert isinstance(session.events[-1], EngineReady)
            session.service.send(ask(1, "What is 23 + 48?", max_new_tokens=30))
            finished = session.wait_for(TurnFinished, 1)
            texts.append(finished.text)
            accepted.append(finished.statistics.mean_acceptance_length)
    assert texts[0] == texts[1] and accepted[0] > accepted[1]


# --- 2: causality inside the block


@pytest.mark.parametrize(
    ("kind", "is_causal", "first_changed"),
    [(SLIDING, None, 9), (FULL, None, 0), (SLIDING, False, 0), (FULL, True, 9)],
    ids=["sliding is causal", "full is not", "the key wins for sliding", "the key wins for full"],
)
def test_a_layer_is_causal_if_and_only_if_it_slides_unless_a_key_says_otherwise(
    kind: str, is_causal: bool | None, first_changed: int, dense_pair: TinyPair, tmp_path: Path
) -> None:
    drafter = drafter_of(dense_pair, tmp_path, [kind], is_causal=is_causal)
    block = dense_pair.target.embed(BLOCK)
    other = block.clone()
    other[9] *= -1
    features = random_features(8)
    before, after = (hidden_rows(drafter, features, each) for each in (block, other))
    assert changed_rows(before, after) == list(range(first_changed, 16))


# --- 3: which state a tapped layer gives


@torch.inference_mode()
def test_a_tap_is_the_output_of_that_layer(dense_pair: TinyPair) -> None:
    """Tuple index id + 1 in ``transformers``, whose entry 0 is the embedding."""
    ids = torch.tensor(prompt_ids(30))
    states = dense_pair.reference(input_ids=ids[None], output_hidden_states=True).hidden_states
    for tap in (0, 1):
        features = dense_pair.target(ids, 0, target_cache(dense_pair.target), [tap]).features
        assert features is not None
        torch.testing.assert_close(features, states[tap + 1][0], atol=1e-4, rtol=0)
        assert (features - states[tap][0]).abs().max() > 0.1


# --- 4: activation and scale


def test_the_drafter_keeps_its_own_conventions(dense_pair: TinyPair, tmp_path: Path) -> None:
    """SiLU and 1 / sqrt(head size), beside a target with GELU and scale 1."""
    drafter = drafter_of(dense_pair, tmp_path, [SLIDING, FULL])
    assert [layer.scale for layer in drafter.config.layers] == [0.25, 0.25]
    assert {layer.scale for layer in dense_pair.target.config.layers} == {1.0}
    with pytest.raises(WeightsFailure, match="hidden_act"):
        drafter_of(dense_pair, tmp_path / "gelu", [FULL], hidden_act="gelu")


# --- 5: the softcap on draft logits


@torch.inference_mode()
def test_the_softcap_changes_the_drafters_probabilities_and_none_of_its_drafts(
    dense_pair: TinyPair, tmp_path: Path
) -> None:
    drafts = []
    for cap in (2.0, None):
        drafter = drafter_of(dense_pair, tmp_path / str(cap), [SLIDING, FULL], final_logit_softcapping=cap)
        cache = Cache(drafter.config.layers, 256, 128, torch.float32, CPU)
        drafter.ingest(random_features(8), cache)
        drafts.append(drafter.draft(dense_pair.target, 7, 16, cache))
    assert drafts[0].ids.tolist() == drafts[1].ids.tolist()
    assert (drafts[0].probabilities < drafts[1].probabilities).all()


# --- 6: sliding layers of the drafter forget


def test_the_drafters_window_holds_in_its_context(dense_pair: TinyPair, tmp_path: Path) -> None:
    """Row j of the block sees the context of the last ``window - 1 - j`` positions."""
    drafter = drafter_of(dense_pair, tmp_path, [SLIDING])
    block, features = dense_pair.target.embed(BLOCK), random_features(50)
    before = hidden_rows(drafter, features, block)
    for distance in (DRAFT_WINDOW, DRAFT_WINDOW - 1, DRAFT_WINDOW - 4, 1):
        other = features.clone()
        other[50 - distance] *= -1
        expected = list(range(min(16, DRAFT_WINDOW - distance)))
        assert changed_rows(before, hidden_rows(drafter, other, block)) == expected


# --- 7: what the window counts


@torch.inference_mode()
def test_a_query_sees_window_keys_itself_included(dense_pair: TinyPair) -> None:
    """The first layer slides: its output moves with the token ``WINDOW - 1`` back and not with the one before."""
    ids = list(prompt_ids(WINDOW + 10))

    def last_row(changed: int | None) -> Tensor:
        text = [token + 1 if place == changed else token for place, token in enumerate(ids)]
        features = dense_pair.target(torch.tensor(text), 0, target_cache(dense_pair.target), [0]).features
        assert features is not None
        return features[-1]

    last = len(ids) - 1
    assert torch.equal(last_row(None), last_row(last - WINDOW))
    assert not torch.equal(last_row(None), last_row(last - WINDOW + 1))


# --- 8: rejected rows


def test_no_rejected_row_enters_the_drafters_context(unstopped_pair: TinyPair) -> None:
    """Before every draft the drafter knows exactly what was said before the anchor, however much was refused."""
    pair, prompt = unstopped_pair, prompt_ids(40)
    text = [*prompt, *run_turn(Decoder(pair.target, None, 512), prompt, settings(speculation=False)).ids]
    seen: list[tuple[int, int]] = []

    def half_right(position: int, anchor: int, count: int) -> Sequence[int]:
        seen.append((position, anchor))
        right = list(oracle(text)(position, anchor, count))
        return [*right[: position % 4], *((token + 1) % VOCAB_SIZE for token in right[position % 4 :])]

    answer = run_turn(Decoder(pair.target, scripted(pair.drafter, half_right), 512), prompt, settings())
    assert answer.ids == text[len(prompt) :] and len(seen) > 10
    assert seen == [(position, text[position]) for position, _ in seen]


# --- 9: what is proposed at a temperature


@torch.inference_mode()
def test_drafts_are_the_argmax_at_every_temperature(unstopped_pair: TinyPair) -> None:
    pair, prompt = unstopped_pair, prompt_ids(40)
    answer = run_turn(Decoder(pair.target, pair.drafter, 512), prompt, settings(temperature=1.5, max_new_tokens=12))
    text, position = [*prompt, *answer.ids], len(prompt)
    for done in answer.rounds[1:6]:
        output = pair.target(
            torch.tensor(text[:position]), 0, target_cache(pair.target), pair.drafter.config.target_layer_ids
        )
        assert output.features is not None
        cache = Cache(pair.drafter.config.layers, 256, 128, torch.float32, CPU)
        pair.drafter.ingest(output.features, cache)
        draft = pair.drafter.draft(pair.target, text[position], len(done.draft_ids) + 1, cache)
        assert list(done.draft_ids) == draft.ids.tolist()
        position += len(done.emitted)


# --- 10: where a config says it


@pytest.mark.parametrize(
    ("key", "inner", "outer", "read"),
    [
        ("input_embedding_scale", 2.0, 3.0, lambda config: config.embedding_scale),
        ("final_logit_softcapping", 20.0, 30.0, lambda config: config.logit_softcap),
        ("block_size", 8, 16, lambda config: config.block_size),
        ("mask_token_id", 9, 4, lambda config: config.mask_token_id),
        ("target_layer_ids", [1, 2], [0, 2], lambda config: list(config.target_layer_ids)),
        ("sliding_window", 10, 20, lambda config: config.layers[0].window),
        ("is_causal", False, True, lambda config: config.layers[0].causal),
    ],
)
def test_a_key_inside_dflash_config_wins_over_the_top_level(key: str, inner: Any, outer: Any, read: Any) -> None:
    config = drafter_config([SLIDING, FULL], [0, 1], 3, **{"mask_token_id": 4, key: outer})
    nested = {name: value for name, value in config["dflash_config"].items() if name != key}
    assert read(DFlashConfig.from_json(config | {"dflash_config": nested})) == outer
    assert read(DFlashConfig.from_json(config | {"dflash_config": nested | {key: inner}})) == inner


# --- 11: whose embedding


@torch.inference_mode()
def test_embedding_and_head_are_the_targets(dense_pair: TinyPair, moe_pair: TinyPair, tmp_path: Path) -> None:
    drafter = drafter_of(dense_pair, tmp_path, [SLIDING, FULL])
    assert not [name for name, _ in drafter.named_parameters() if "embed" in name or "head" in name]
    cache = Cache(drafter.config.layers, 256, 128, torch.float32, CPU)
    drafter.ingest(random_features(8), cache)
    for target in (dense_pair.target, moe_pair.target):
        table = target.embed_tokens.weight
        logits = drafter.hidden(table[BLOCK] * target.embedding_scale, cache)[1:] @ table.T
        draft, likely = drafter.draft(target, 7, 16, cache), (30 * torch.tanh(logits / 30)).softmax(dim=-1).max(dim=-1)
        assert torch.equal(draft.ids, likely.indices)
        torch.testing.assert_close(draft.probabilities, likely.values, atol=1e-4, rtol=0)


# --- 12: the router's arithmetic


@pytest.mark.parametrize("rows", [1, 16])
@torch.inference_mode()
def test_router_scores_are_fp32_also_in_a_bf16_model(
    rows: int, moe_pair: TinyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = moe_pair.target.layers[0]
    assert isinstance(layer, gemma4.Gemma4DecoderLayer)
    router = gemma4.Gemma4Router(64, moe_pair.target.config.moe, 1e-6).to(torch.bfloat16)  # type: ignore[arg-type]
    router.load_state_dict(layer.router.state_dict())
    scores: list[Tensor] = []
    real = gemma4.route
    monkeypatch.setattr(gemma4, "route", lambda each, *rest: (scores.append(each), real(each, *rest))[1])
    x = torch.randn(rows, 64, generator=torch.Generator().manual_seed(1)).bfloat16()
    router(x)
    assert scores[0].dtype is torch.float32
    assert not torch.equal(scores[0], scores[0].bfloat16().float())
