"""The weighted sum over each row's experts, against its definition and the one that prompts on a CPU use."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.prefill.experts import combine, reference_combine
from engine.kernels.reference.moe import experts
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kernels.weights.plain import PlainWeight


def sorted_pairs(n: int, top_k: int, hidden: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(n)
    out = torch.randn(n * top_k, hidden, generator=generator).to(dtype)
    return out, torch.randperm(n * top_k, generator=generator), torch.rand(n, top_k, generator=generator)


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("n", "top_k", "hidden"), [(1, 1, 16), (3, 8, 40), (20, 4, 1100)])
def test_equals_the_reference(n: int, top_k: int, hidden: int, dtype: torch.dtype) -> None:
    """Sums in one order: nothing may round differently but a multiplication fused with its addition."""
    out, by_expert, weights = sorted_pairs(n, top_k, hidden, dtype)
    torch.testing.assert_close(
        combine(out, by_expert, weights), reference_combine(out, by_expert, weights), rtol=1e-6, atol=1e-6
    )


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter")
def test_experts_can_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole operation, with the CPU's last step and with this one."""
    from engine.kernels.reference import moe

    generator = torch.Generator().manual_seed(1)
    x = torch.randn(12, 32, generator=generator)
    weights, ids = torch.rand(12, 3, generator=generator), torch.stack([torch.randperm(6)[:3] for _ in range(12)])
    gate_up, down = torch.randn(6, 32, 32, generator=generator), torch.randn(6, 32, 16, generator=generator)
    expected = experts(x, weights, ids, PlainWeight(gate_up), PlainWeight(down))
    monkeypatch.setattr(moe, "combines_on", lambda device: True)
    found = experts(x, weights, ids, PlainWeight(gate_up), PlainWeight(down))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
