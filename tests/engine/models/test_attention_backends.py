"""Attention backends: which one runs, which one can't and why, and that both models compute the same with any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.commands import AttentionBackend, EngineOptions
from engine.kernels.reference.attention import reference_attention
from engine.kernels.toolchain.jit import HAS_TRITON
from engine.kv_cache.cache import Cache
from engine.layer_config import AttentionConfig, RopeConfig
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.attention_backends import (
    AUTO,
    SDPA,
    TRITON,
    Backend,
    choose_backends,
    describe,
    why_host_rounds,
)
from tests.engine.conftest import CPU, TinyPair, no_progress
from tests.engine.small_decoders import prompt_ids
from tests.engine.test_service import Session

CUDA = torch.device("cuda")
REFERENCE = Backend("reference", reference_attention, lambda head_dim, device, dtype: None)


def sized(pair: TinyPair, head_dim: int) -> list[AttentionConfig]:
    return [replace(layer, head_dim=head_dim) for layer in pair.target.config.layers]


@pytest.mark.parametrize("device", [CPU, CUDA])
@pytest.mark.parametrize("head_dim", [64, 128, 256, 512])
def test_auto_always_finds_one(head_dim: int, device: torch.device, dense_pair: TinyPair) -> None:
    chosen = choose_backends("auto", sized(dense_pair, head_dim), device, torch.bfloat16)
    fast = HAS_TRITON and device is CUDA
    assert describe(chosen) == ("triton" if fast else "sdpa") and AUTO[-1] is SDPA


@pytest.mark.parametrize(
    ("head_dim", "device", "dtype", "why"),
    [
        (48, CUDA, torch.bfloat16, "power of two"),
        (1024, CUDA, torch.bfloat16, "from 16 to 512"),
        (256, CUDA, torch.float32, "not for float32"),
        (256, CPU, torch.bfloat16, "this is cpu"),
    ],
)
@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
def test_auto_takes_what_triton_cannot_elsewhere(
    head_dim: int, device: torch.device, dtype: torch.dtype, why: str, dense_pair: TinyPair
) -> None:
    assert why in str(TRITON.why_not(head_dim, device, dtype))
    assert describe(choose_backends("auto", sized(dense_pair, head_dim), device, dtype)) == "sdpa"


def test_an_impossible_choice_ends_the_engine_before_it_loads(dense_pair: TinyPair) -> None:
    options = EngineOptions(str(dense_pair.folder / "target"), str(dense_pair.folder / "drafter"), "cpu")
    session = Session(replace(options, attention_backend="triton"))
    session.service.start()
    session.service.join(60)
    error = session.events[-1]
    assert getattr(error, "kind", None) == "usage" and "attention_backend='auto'" in getattr(error, "hint", "")


@torch.inference_mode()
def test_both_models_compute_with_the_backend_they_were_given(dense_pair: TinyPair) -> None:
    """Given the reference, both models call it in every layer, and nothing changes."""
    used: list[int] = []

    def counting(q: Tensor, k: Tensor, v: Tensor, *, causal: bool, window: int | None, scale: float) -> Tensor:
        used.append(q.shape[0])
        return reference_attention(q, k, v, causal=causal, window=window, scale=scale)

    def run(change: Callable[[int], list[Backend]] | None) -> tuple[Tensor, Tensor]:
        target = load_target(dense_pair.folder / "target", CPU, no_progress)
        drafter = load_drafter(dense_pair.folder / "drafter", target, no_progress)
        if change is not None:
            target.use_attention(change(len(target.layers)))
            drafter.use_attention(change(len(drafter.layers)))
        cache = Cache(target.config.layers, 128, 64, torch.float32, CPU)
        draft_cache = Cache(drafter.config.layers, 128, 64, torch.float32, CPU)
        output = target(torch.tensor(prompt_ids(60)), 0, cache, drafter.config.target_layer_ids)
        assert output.features is not None
        drafter.ingest(output.features, draft_cache)
        block = drafter.embed(target, torch.tensor([7] + [4] * 15))
        return target.logits(output.hidden), drafter.hidden(block, draft_cache)

    expected = run(None)
    actual = run(lambda count: [replace(REFERENCE, function=counting)] * count)
    assert used == [60] * 3 + [16] * 3
    for ours, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


# --- who runs the rounds


FITTING = AttentionConfig("full_attention", 16, 2, 512, RopeConfig(1e6, 512), 1.0, None)


@pytest.mark.parametrize(
    ("wanted", "layer", "device", "dtype", "reason"),
    [
        ("auto", FITTING, "cuda", torch.bfloat16, None),
        ("triton", FITTING, "cuda", torch.bfloat16, None),
        ("sdpa", FITTING, "cuda", torch.bfloat16, "sdpa was asked for"),
        ("auto", FITTING, "cpu", torch.float32, "it needs a CUDA device"),
        ("auto", FITTING, "cuda", torch.float32, "16 bits"),
        ("auto", replace(FITTING, head_dim=16), "cuda", torch.bfloat16, "at least 32 channels, some here have 16"),
        ("auto", replace(FITTING, head_dim=96), "cuda", torch.bfloat16, "a power of two from 16 to 512"),
        ("auto", replace(FITTING, num_heads=12, num_kv_heads=4), "cuda", torch.bfloat16, "here 3 do"),
        ("auto", replace(FITTING, num_heads=24, num_kv_heads=4), "cuda", torch.bfloat16, None),
        ("auto", replace(FITTING, num_heads=24, num_kv_heads=4, window=128), "cuda", torch.bfloat16, "here 6 do"),
        ("auto", replace(FITTING, sinks=True, biases=True), "cuda", torch.bfloat16, None),
    ],
)
def test_who_runs_the_rounds(
    wanted: AttentionBackend, layer: AttentionConfig, device: str, dtype: torch.dtype, reason: str | None
) -> None:
    pytest.importorskip("triton")
    why = why_host_rounds(wanted, [FITTING, layer], torch.device(device), dtype)
    assert why is None if reason is None else why is not None and reason in why
