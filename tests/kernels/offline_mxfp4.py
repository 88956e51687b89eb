"""What gpt-oss-20b's experts launch in MXFP4, of passes of few rows and of prompts, at the published shape."""

from __future__ import annotations

import torch

from engine.bench.shapes import read_shape
from engine.kernels.decode.experts import expert_down_rows, expert_gate_up_rows
from engine.kernels.decode.router import Assignment
from engine.kernels.decode.tiles import target_tiles
from engine.kernels.prefill.gate import gated_product
from engine.kernels.prefill.products import product
from engine.kernels.toolchain.card import Card
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.kernels.weights.mxfp4 import Mxfp4Weight
from tests.kernels.offline import Launch, distinct, record

META = torch.device("meta")
PROMPTS = (64, 4096)
"""Rows."""


def launches(card: Card) -> list[Launch]:
    """Once per piece of machine code."""
    config = read_shape("gpt-oss-20b").target
    assert config.moe is not None
    experts, top_k = config.moe.num_experts, config.moe.top_k
    hidden, inter = config.hidden_size, config.moe.intermediate_size
    tiles, found = target_tiles(config.moe, card, "mxfp4"), Assignment.allocate(experts, top_k, META)
    gate_up = Mxfp4Weight.allocate(experts, 2 * inter, hidden, device=META)
    down = Mxfp4Weight.allocate(experts, hidden, inter, device=META)
    x, act, out = rows(MAX_ROWS, hidden), rows(MAX_ROWS * top_k, inter), rows(MAX_ROWS, top_k, hidden)
    up_bias, down_bias = rows(experts, 2 * inter), rows(experts, hidden)
    with record(card) as launched:
        for max_rows, up_tiles in ((1, tiles.expert_gate_up_alone), (MAX_ROWS, tiles.expert_gate_up)):
            expert_gate_up_rows(x, gate_up, found, act, up_tiles, None, max_rows, "clamped_silu", up_bias)
            expert_down_rows(act, down, found, out, tiles.expert_down, max_rows, down_bias)
        for count in PROMPTS:
            ends = torch.empty(experts, dtype=torch.int32, device=META)
            gated = gated_product(rows(count * top_k, hidden), gate_up, ends, "clamped_silu", up_bias)
            product(gated, down, ends, down_bias)
    return distinct(launched)


def rows(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.bfloat16, device=META)
