"""Attention backends: which one runs, which one can't and why, and that both models compute the same with any."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest
import torch
from torch import Tensor

from engine.commands import AttentionBackend, EngineOptions
from engine.errors import Option, UsageFailure
from engine.kernels.reference.attention import flash_attention, reference_attention
from engine.kernels.toolchain.jit import HAS_TRITON
from engine.kv_cache.cache import Cache
from engine.layer_config import AttentionConfig, RopeConfig
from engine.loading.checkpoint import load_drafter, load_target
from engine.models import attention_backends as backends
from engine.models.attention_backends import (
    AUTO,
    FLASH,
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


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """``flash_attn`` seems to be there."""
    monkeypatch.setattr(backends, "find_spec", lambda name: object())


def sized(pair: TinyPair, head_dim: int) -> list[AttentionConfig]:
    return [replace(layer, head_dim=head_dim) for layer in pair.target.config.layers]


def refusal(layers: list[AttentionConfig], device: torch.device, dtype: torch.dtype) -> str:
    with pytest.raises(UsageFailure) as caught:
        choose_backends("flash_attn", layers, device, dtype)
    assert caught.value.advice == (Option("attention_backend", "auto"),)
    return str(caught.value)


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


def test_an_impossible_choice_says_why(dense_pair: TinyPair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    assert "isn't installed" in refusal(sized(dense_pair, 128), CUDA, torch.bfloat16)


@pytest.mark.usefixtures("installed")
def test_an_impossible_choice_says_what_the_package_cannot_do(dense_pair: TinyPair) -> None:
    assert "CUDA device, and this is cpu" in refusal(sized(dense_pair, 128), CPU, torch.bfloat16)
    assert "not in float32" in refusal(sized(dense_pair, 128), CUDA, torch.float32)
    assert "at most 256 channels, some here have 512" in refusal(sized(dense_pair, 512), CUDA, torch.bfloat16)
    assert choose_backends("flash_attn", sized(dense_pair, 256), CUDA, torch.bfloat16) == [FLASH] * 3


def test_an_impossible_choice_ends_the_engine_before_it_loads(dense_pair: TinyPair) -> None:
    options = EngineOptions(str(dense_pair.folder / "target"), str(dense_pair.folder / "drafter"), "cpu")
    session = Session(replace(options, attention_backend="flash_attn"))
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


@pytest.mark.parametrize(("causal", "window"), [(True, None), (True, 5), (False, None), (False, 5)])
def test_flash_attention_is_asked_for_the_same(
    causal: bool, window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package's function as its documentation describes it, in plain PyTorch: layout, alignment, window."""

    def flash_attn_func(
        q: Tensor, k: Tensor, v: Tensor, *, softmax_scale: float, causal: bool, window_size: tuple[int, int]
    ) -> Tensor:
        group = q.shape[2] // k.shape[2]
        k, v = k.repeat_interleave(group, dim=2), v.repeat_interleave(group, dim=2)
        ahead = torch.arange(k.shape[1]) - (torch.arange(q.shape[1]) + k.shape[1] - q.shape[1])[:, None]
        left, right = window_size
        seen = torch.ones_like(ahead, dtype=torch.bool)
        seen &= (ahead <= 0) if causal else seen
        seen &= (ahead >= -left) if left >= 0 else seen
        seen &= (ahead <= right) if right >= 0 else seen
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * softmax_scale
        return torch.einsum("bhqk,bkhd->bqhd", scores.masked_fill(~seen, -torch.inf).softmax(dim=-1), v)

    package = ModuleType("flash_attn")
    package.flash_attn_func = flash_attn_func  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flash_attn", package)
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(shape, generator=generator) for shape in ((6, 8, 16), (2, 20, 16), (2, 20, 16)))
    how = {"causal": causal, "window": window, "scale": 0.3}
    torch.testing.assert_close(flash_attention(q, k, v, **how), reference_attention(q, k, v, **how), atol=1e-5, rtol=0)


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
