"""Tiny copies of the published targets: loaded from their shards, they compute what ``transformers`` computes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_target
from engine.models.gemma4.modules import Gemma4
from support.checkpoints import DRAFT_WINDOW, VOCAB_SIZE, WINDOW
from support.published import PUBLISHED, Reference, write_published
from tests.engine.conftest import CPU, no_progress

LENGTH = 5 * max(WINDOW, DRAFT_WINDOW) + 7
IDS = torch.randint(0, VOCAB_SIZE, (LENGTH,), generator=torch.Generator().manual_seed(7))


@dataclass(frozen=True)
class Pair:
    """One target, twice; ``states`` and ``logits`` are what ``transformers`` computes for ``IDS``."""

    folder: Path
    target: Gemma4
    states: list[Tensor]
    logits: Tensor


@torch.no_grad()
def reference_outputs(model: Reference) -> tuple[list[Tensor], Tensor]:
    """The output of every layer, caught by hooks (the library's own list hides the last one), and the logits."""
    states: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: object, output: Tensor | tuple[Tensor, ...]) -> None:
        states.append((output if isinstance(output, Tensor) else output[0])[0])

    hooks = [layer.register_forward_hook(keep) for layer in model.model.language_model.layers]
    logits = model(input_ids=IDS[None]).logits[0]
    for hook in hooks:
        hook.remove()
    return states, logits


@pytest.fixture(scope="module", params=PUBLISHED)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp(request.param)
    states, logits = reference_outputs(write_published(folder, request.param, seed=11))
    return Pair(folder, load_target(folder, CPU, no_progress), states, logits)


def test_the_checkpoints_are_like_the_published_ones(pair: Pair) -> None:
    weight_map = json.loads((pair.folder / "model.safetensors.index.json").read_text())["weight_map"]
    assert len(set(weight_map.values())) > 3
    assert any("vision" in name for name in weight_map) and "lm_head.weight" not in weight_map
    assert all(layer.value_is_key == (layer.window is None) for layer in pair.target.config.layers)


@pytest.mark.parametrize("size", [LENGTH, 37, 1], ids=["whole", "chunks", "one-by-one"])
@torch.inference_mode()
def test_every_layer_and_the_logits_equal_transformers(size: int, pair: Pair) -> None:
    target, taps = pair.target, range(len(pair.target.layers))
    cache = Cache(target.config.layers, 256, size, torch.float32, CPU)
    features, logits = [], []
    for start in range(0, LENGTH, size):
        output = target(IDS[start : start + size], start, cache, taps)
        cache.commit(start + len(output.hidden))
        assert output.features is not None
        features.append(output.features)
        logits.append(target.logits(output.hidden))
    torch.testing.assert_close(torch.cat(features), torch.cat(pair.states, dim=-1), atol=1e-4, rtol=0)
    torch.testing.assert_close(torch.cat(logits), pair.logits, atol=1e-4, rtol=0)
