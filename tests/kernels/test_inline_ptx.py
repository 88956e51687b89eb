"""How a GPU unpacks weights, instruction by instruction, against what their bits stand for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.kernels.toolchain.jit import HAS_TRITON
from engine.kernels.weights.int4 import Int4Weight, _scaled_words
from engine.kernels.weights.mxfp4 import HIGHEST, Mxfp4Weight, mxfp4_pairs, mxfp4_scaled
from tests.kernels.inline_ptx import Words, carried_out, instructions_of

pytestmark = pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")


class Unpacked:
    """Random numbers with every scale, and what instructions read of them: words [rows, 4], and steps [rows]."""

    def __init__(self) -> None:
        codes = torch.randint(0, 16, (144, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
        scales = torch.arange(144).clamp(max=HIGHEST).to(torch.uint8)
        weight = Mxfp4Weight.packed(codes, scales[:, None])
        words = weight.values.view(torch.int32).transpose(1, 2).reshape(144, 4)
        self.words = words.numpy().view(np.uint32)
        # As ``mxfp4_steps``.
        self.steps = scales.numpy().astype(np.uint32) * np.uint32(0x00800080) + np.uint32(0x3C803C80)
        self.expected = (weight.restored() / 32).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)

    def assert_neighbours(self, low: Words, high: Words, first: int) -> None:
        """Numbers ``first`` and the next of all rows, as bits of bf16."""
        assert np.array_equal(low, self.expected[:, first]) and np.array_equal(high, self.expected[:, first + 1])


def test_mxfp4_for_few_rows() -> None:
    """Two words at a time: eight registers of two numbers, four of the first 16 numbers and four of the others."""
    those = Unpacked()
    for word in (0, 2):
        inputs = [those.words[:, word], those.words[:, word + 1], *[those.steps] * 8]
        for number, pair in enumerate(carried_out(instructions_of(mxfp4_scaled), inputs, 8)):
            first = number // 4 * 16 + 4 * word + number % 4 * 2
            those.assert_neighbours(pair & 0xFFFF, pair >> 16, first)


def test_mxfp4_for_many_rows() -> None:
    """A pair at a time, by shifts and masks as in ``mxfp4_pairs``."""
    those = Unpacked()
    for word in range(4):
        for pair in range(4):
            turn, aside = 30 + pair // 2 * 6 - pair % 2 * 4, 0x00400040 if pair == 3 else 0
            constants = [np.uint32(each) for each in (turn, 0x81C081C0 ^ aside, aside)]
            inputs = [those.words[:, word], *(np.full(144, each) for each in constants), those.steps]
            low, high = carried_out(instructions_of(mxfp4_pairs), inputs, 2)
            those.assert_neighbours(low, high, pair // 2 * 16 + 4 * word + pair % 2 * 2)


@pytest.mark.parametrize("scales", ["other", "alike"])
def test_int4_for_few_rows(scales: str) -> None:
    """Two words at a time, as MXFP4's. 2^31 is what numbers have whose scales aren't bf16."""
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randint(0, 16, (144, 32), generator=generator, dtype=torch.uint8)
    scale = (
        torch.randn(144, 1, generator=generator) if scales == "other" else torch.full((144, 1), 2.0**31)
    ).bfloat16()
    words = Int4Weight.packed(numbers, scale).values.view(torch.int32).transpose(1, 2).reshape(144, 4)
    expected = ((numbers.float() - 8) * scale.float() * 2.0**-33).bfloat16()
    doubled = scale.view(torch.int16).flatten().numpy().view(np.uint16) * np.uint32(0x00010001)
    for word in (0, 2):
        inputs = [each.numpy().view(np.uint32) for each in (words[:, word], words[:, word + 1])]
        for number, pair in enumerate(carried_out(instructions_of(_scaled_words), [*inputs, *[doubled] * 4], 8)):
            first = number // 4 * 16 + 4 * word + number % 4 * 2
            for half, shift in enumerate((0, 16)):
                found = torch.from_numpy((pair >> shift & 0xFFFF).astype(np.uint16).view(np.int16)).view(torch.bfloat16)
                assert torch.equal(found, expected[:, first + half])
