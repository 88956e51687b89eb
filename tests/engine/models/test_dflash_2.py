"""DFlash 2's config: what of it is refused, and what of its weights stays floats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.errors import WeightsFailure
from engine.kernels.weights.int8 import Int8Weight
from engine.loading.checkpoint import load_drafter
from engine.models.dflash.config import DFlashConfig
from engine.models.dflash.modules import DFlashDrafter
from engine.models.dflash.weights import hold_in_8_bits
from engine.models.packed import PackedLinear
from engine.models.registry import drafter_config_of
from support.checkpoints import second_config, write_drafter
from support.shapes import read_shape
from tests.engine.conftest import TinyPair, no_progress

REFUSED = {
    "taps": ({"conv_kernel_size": 3}, "convolutions see 3 rows"),
    "groups": ({"conv_group_size": 24}, "no whole groups of 24"),
    "candidates": ({"selector_top_k": 8}, "chooses among 8 tokens"),
    "rank": ({"selector_rank": 24}, "no power of two"),
    "no rank": ({"selector_rank": None}, "lacks selector_rank"),
    "anchor": ({"sample_from_anchor": True}, "first row drafts, too"),
    "multiplied": ({"output_multiplier": 0.196}, "multiplies its logits"),
    "block": ({"block_size": 1}, "block_size"),
}


@pytest.mark.parametrize(("changes", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(changes: dict[str, Any], said: str) -> None:
    config = second_config([0, 2], 3)
    config["dflash_config"] |= changes
    with pytest.raises(WeightsFailure, match=said) as refused:
        drafter_config_of(config)
    assert refused.value.hint


def test_tensors_that_do_not_fit(dense_pair: TinyPair, tmp_path: Path) -> None:
    """A selector for fewer tokens than the config says, and the tensors of a DFlash alone."""
    write_drafter(tmp_path / "other", second_config([0, 2], 3))
    config = (tmp_path / "other" / "config.json").read_text()
    (tmp_path / "other" / "config.json").write_text(config.replace('"selector_rank": 32', '"selector_rank": 64'))
    with pytest.raises(WeightsFailure, match=r"hidden_projection|codebook"):
        load_drafter(tmp_path / "other", dense_pair.target, no_progress)
    first = second_config([0, 2], 3)
    first["dflash_config"] = {"mask_token_id": 4, "target_layer_ids": [0, 2]}
    write_drafter(tmp_path / "first", first)
    (tmp_path / "first" / "config.json").write_text(config)
    with pytest.raises(WeightsFailure, match=r"lacks .* tensors"):
        load_drafter(tmp_path / "first", dense_pair.target, no_progress)


def test_the_published_one() -> None:
    """As many parameters as its file has."""
    drafter = read_shape("Qwen3.8-27B").drafter
    assert isinstance(drafter, DFlashConfig) and drafter.block_size == 8
    assert all(layer.window == 2048 and not layer.causal for layer in drafter.layers)
    with torch.device("meta"):
        assert sum(part.numel() for part in drafter.build().parameters()) == 1_924_404_480


@torch.inference_mode()
def test_in_8_bits_it_still_looks_tokens_up(dense_pair: TinyPair, tmp_path: Path) -> None:
    write_drafter(tmp_path, second_config([0, 2], 3))
    drafter = load_drafter(tmp_path, dense_pair.target, no_progress)
    assert isinstance(drafter, DFlashDrafter)
    hold_in_8_bits(drafter, Int8Weight)
    assert isinstance(drafter.candidate_selector.hidden_projection, PackedLinear)
    assert drafter.candidate_selector.predecessor_codebook.dtype is torch.float32
    cache = drafter.new_cache(dense_pair.target, 64, 16, torch.float32, torch.device("cpu"))  # type: ignore[arg-type]
    drafter.ingest(torch.randn(5, 128), cache)
    assert len(drafter.draft(dense_pair.target, 7, 8, cache).ids) == 7
