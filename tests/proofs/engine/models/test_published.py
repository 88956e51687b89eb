"""Tiny copies of the published targets: loaded from their shards, they compute what ``transformers`` computes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from engine.loading.checkpoint import load_target
from engine.models.gemma4.modules import Gemma4
from support.checkpoints import DRAFT_WINDOW, WINDOW
from support.published import PUBLISHED, Reference, write_published
from tests.engine.conftest import CPU, no_progress
from tests.engine.models.against_transformers import assert_same
from tests.engine.small_decoders import prompt_ids

LENGTH = 5 * max(WINDOW, DRAFT_WINDOW) + 7


@dataclass(frozen=True)
class Pair:
    """One target, twice."""

    folder: Path
    target: Gemma4
    reference: Reference


@pytest.fixture(scope="module", params=PUBLISHED)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp(request.param)
    reference = write_published(folder, request.param, seed=11)
    return Pair(folder, load_target(folder, CPU, no_progress), reference)


def test_the_checkpoints_are_like_the_published_ones(pair: Pair) -> None:
    weight_map = json.loads((pair.folder / "model.safetensors.index.json").read_text())["weight_map"]
    assert len(set(weight_map.values())) > 3
    assert any("vision" in name for name in weight_map) and "lm_head.weight" not in weight_map
    assert all(layer.value_is_key == (layer.window is None) for layer in pair.target.config.layers)


@pytest.mark.parametrize("size", [LENGTH, 37, 1], ids=["whole", "chunks", "one-by-one"])
def test_every_layer_and_the_logits_equal_transformers(size: int, pair: Pair) -> None:
    taps = range(len(pair.target.layers) - 1)  # the last layer's output is what the logits are of
    assert_same(pair.target, pair.reference, torch.tensor(prompt_ids(LENGTH)), [size], taps)
