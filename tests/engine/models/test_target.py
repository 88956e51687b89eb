"""The Gemma 4 target against ``transformers`` with refused rows in between; ``test_published.py`` has it in pieces."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import Gemma4ForConditionalGeneration

from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_target
from engine.models.gemma4.modules import Gemma4
from support.checkpoints import VOCAB_SIZE, WINDOW
from tests.engine.conftest import CPU, TinyPair, no_progress

LENGTH = 5 * WINDOW + 30
TAPS = (0, 1, 2)
SLACK = 16


@pytest.fixture(params=["moe_pair", "dense_pair"])
def pair(request: pytest.FixtureRequest) -> TinyPair:
    pair: TinyPair = request.getfixturevalue(request.param)
    return pair


def random_ids(length: int = LENGTH, seed: int = 0) -> Tensor:
    return torch.randint(0, VOCAB_SIZE, (length,), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def reference_outputs(model: Gemma4ForConditionalGeneration, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [n, vocab], and the outputs of the layers ``TAPS`` side by side."""
    output = model(input_ids=ids[None], output_hidden_states=True)
    return output.logits[0], torch.cat([output.hidden_states[tap + 1][0] for tap in TAPS], dim=-1)


def new_cache(target: Gemma4, slack: int = SLACK) -> Cache:
    return Cache(target.config.layers, 4096, slack, torch.float32, CPU)


# The last layer's entry of transformers' tuple is replaced by the final norm's output, so the dense pair, whose
# layer 2 is the last, compares the first two taps only.
def assert_same(pair: TinyPair, ours: tuple[Tensor, Tensor], ids: Tensor) -> None:
    logits, features = reference_outputs(pair.reference, ids)
    comparable = 64 * (len(TAPS) if len(pair.target.layers) > len(TAPS) else len(TAPS) - 1)
    torch.testing.assert_close(ours[0], logits, atol=1e-4, rtol=0)
    torch.testing.assert_close(ours[1][:, :comparable], features[:, :comparable], atol=1e-4, rtol=0)


@torch.inference_mode()
def test_equals_transformers_after_random_rejections(pair: TinyPair) -> None:
    """Blocks whose tail is wrong and refused, over several turns of the ring, leave no trace."""
    rng, target, ids = random.Random(0), pair.target, random_ids()
    cache, logits, features = new_cache(target), [], []
    while cache.length < LENGTH:
        start = cache.length
        accepted = min(rng.randint(1, SLACK), LENGTH - start)
        wrong = random_ids(rng.randint(0, SLACK - accepted), seed=start)
        output = target(torch.cat((ids[start : start + accepted], wrong)), start, cache, TAPS)
        cache.commit(start + accepted)
        assert output.features is not None
        logits.append(target.logits(output.hidden[:accepted]))
        features.append(output.features[:accepted])
    assert_same(pair, (torch.cat(logits), torch.cat(features)), ids)


def test_taps_come_in_the_order_asked_for(moe_pair: TinyPair) -> None:
    with torch.inference_mode():
        ids = random_ids(20)
        forward = moe_pair.target(ids, 0, new_cache(moe_pair.target, 32), (1, 4)).features
        backward = moe_pair.target(ids, 0, new_cache(moe_pair.target, 32), (4, 1)).features
    assert forward is not None and backward is not None
    torch.testing.assert_close(forward, torch.cat((backward[:, 64:], backward[:, :64]), dim=-1), atol=0, rtol=0)


@pytest.mark.parametrize(
    ("hidden_size", "scale"), [(1536, 39.25), (2560, 50.5), (2816, 53.0), (3840, 62.0), (5376, 73.5)]
)
def test_embedding_scale_is_rounded_to_bf16(moe_pair: TinyPair, hidden_size: int, scale: float) -> None:
    with torch.device("meta"):
        model = Gemma4(replace(moe_pair.target.config, hidden_size=hidden_size, layers=()))
    assert model.embedding_scale == scale


def test_bundled_target_equals_transformers(bundled_pair: Path) -> None:
    """fp32 on both sides; 1e-3 is the bound that the project promises."""
    folder = bundled_pair / "target"
    target = load_target(folder, CPU, no_progress)
    reference = Gemma4ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    reference.model.language_model.embed_tokens.embed_scale.fill_(target.embedding_scale)
    window = max(layer.window or 0 for layer in target.config.layers)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, target.config.vocab_size, (2 * window + 50,), generator=generator)
    with torch.inference_mode():
        expected = reference(input_ids=ids[None]).logits[0]
        cache = new_cache(target, 256)
        for start in range(0, len(ids), 256):
            output = target(ids[start : start + 256], start, cache)
            cache.commit(start + len(output.hidden))
            torch.testing.assert_close(target.logits(output.hidden), expected[start : cache.length], atol=1e-3, rtol=0)
