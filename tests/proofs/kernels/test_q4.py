"""Products with weights of 4 bits on a CPU, as Q4_1 of GGUF files holds them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.kernels.weights.q4 import GROUP, PANEL, Q4Weight, multiplies_nibbles

ROWS, DEPTH = 2 * PANEL, 6 * GROUP
pytestmark = pytest.mark.skipif(not multiplies_nibbles(), reason="PyTorch has no product of 4 bits for this CPU")


def _levels(rows: int = ROWS) -> Tensor:
    """Numbers as a file restores them: levels 0 to 15 times a step, and what is added, both in fp16."""
    torch.manual_seed(rows)
    numbers = torch.randint(0, 16, (rows, DEPTH // GROUP, GROUP))
    numbers[..., 0], numbers[..., 1] = 0, 15
    step, least = (torch.randn(2, rows, DEPTH // GROUP, 1).abs() * 0.01).half().float()
    return (numbers * step - 8 * least).view(rows, DEPTH)


def _packed(weight: Tensor) -> Q4Weight:
    packed = Q4Weight.of(weight)
    assert packed is not None and packed.shape == weight.shape
    return packed


def test_a_group_of_equals_is_a_level() -> None:
    weight = _levels()
    weight[:, :GROUP] = 0.25
    x = torch.zeros(1, DEPTH)
    x[0, :GROUP] = 1
    assert torch.equal(_packed(weight).linear(x), torch.full((1, ROWS), 0.25 * GROUP))


def test_other_numbers_are_refused() -> None:
    assert Q4Weight.of(torch.randn(ROWS, DEPTH)) is None
    assert Q4Weight.of(_levels()[: PANEL + 8]) is None
    off = _levels()
    off[-1, -1] += 0.3 * (off[-1, -GROUP:].amax() - off[-1, -GROUP:].amin()) / 15
    assert Q4Weight.of(off) is None


def test_weights_below_one_another_are_one() -> None:
    first, second = _packed(_levels()), _packed(_levels(PANEL))
    whole, x = Q4Weight.below_one_another([first, second]), torch.randn(2, DEPTH)
    assert torch.equal(whole.linear(x), torch.cat((first.linear(x), second.linear(x)), dim=-1))
    assert torch.equal(whole.rows(ROWS, ROWS + PANEL).linear(x), second.linear(x))
