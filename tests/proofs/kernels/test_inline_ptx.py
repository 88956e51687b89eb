"""How a GPU unpacks weights, instruction by instruction, against what their bits stand for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.kernels.toolchain.jit import HAS_TRITON
from engine.kernels.weights.fp8 import Fp8Weight, fp8_words
from engine.kernels.weights.int4 import Int4Weight, int4_steps, int4_words
from engine.kernels.weights.mxfp4 import HIGHEST, Mxfp4Weight, mxfp4_pairs, mxfp4_words
from tests.proofs.kernels.inline_ptx import Words, carried_out, instructions_of

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
    """A word at a time: four of the first 16 numbers, and four of the others."""
    those = Unpacked()
    for word in range(4):
        numbers = carried_out(instructions_of(mxfp4_words), [those.words[:, word], those.steps], 8)
        for half, four in enumerate((numbers[:4], numbers[4:])):
            for pair in (0, 2):
                those.assert_neighbours(four[pair], four[pair + 1], 16 * half + 4 * word + pair)


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
    """A word at a time, as MXFP4's, every number at every place. 2^31 is what numbers have whose scales aren't bf16."""
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randint(0, 16, (144, 32), generator=generator, dtype=torch.uint8)
    scale = (
        torch.randn(144, 1, generator=generator) if scales == "other" else torch.full((144, 1), 2.0**31)
    ).bfloat16()
    words = Int4Weight.packed(numbers, scale).values.view(torch.int32).transpose(1, 2).reshape(144, 4)
    expected = ((numbers.float() - 8) * scale.float() * 2.0**-37).bfloat16()
    bits = scale.view(torch.int16).flatten().numpy().view(np.uint16).astype(np.uint32)
    steps = carried_out(instructions_of(int4_steps), [bits], 3)
    for word in range(4):
        inputs = [words[:, word].numpy().view(np.uint32), *steps]
        for place, number in enumerate(carried_out(instructions_of(int4_words), inputs, 8)):
            assert torch.equal(as_bf16(number), expected[:, place // 4 * 16 + 4 * word + place % 4])


def test_fp8_for_few_rows() -> None:
    """Every number there is, a word of four at a time."""
    codes = torch.arange(256).repeat(16, 2)[:, :512].to(torch.uint8)
    codes[codes & 127 == 127] = 0  # what is no number
    weight = Fp8Weight.packed(codes, torch.ones(16))
    words = weight.values.view(torch.int32).permute(0, 2, 1, 3).reshape(16, 128)
    expected = weight.restored().bfloat16()
    for word in range(128):
        numbers = carried_out(instructions_of(fp8_words), [words[:, word].numpy().view(np.uint32)], 4)
        for place, number in enumerate(numbers):
            at = word // 4 * 16 + word % 4 * 2 + place // 2 * 8 + place % 2
            assert torch.equal(as_bf16(number), expected[:, at])


def as_bf16(bits: Words) -> torch.Tensor:
    return torch.from_numpy(bits.astype(np.uint16).view(np.int16)).view(torch.bfloat16)
