"""Every kernel of a pass and of a round compiles for a Hopper GPU at the published shapes, here without one."""

from __future__ import annotations

import re

import pytest

from engine.kernels.toolchain.jit import HAS_TRITON
from tests.kernels.early_reads import waits_in_time
from tests.kernels.test_ahead import python

ROW = re.compile(r"\| (_\w+) \| \S+ \| \d+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| \d+ \| (.+) \|")
STREAMS = (
    *("_project", "_gate_up", "_gate_up_and_route", "_expert_gate_up", "_expert_down", "_head"),
    *("_attend_window", "_attend_one_row", "_attend_full"),
)
"""Kernels that read weights, keys or values: their speed is that of 16-byte loads."""

PROMPTS = (
    *("_norm_rope_split", "_attend_chunk", "_join_attention", "_join_feed_forward"),
    *("_gated", "_choose", "_place", "_spread", "_combine"),
)
"""Kernels that only prompts launch: they follow each other without haste."""


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
@pytest.mark.parametrize("name", ["26B-A4B", "31B"])
def test_kernels_compile_for_hopper(name: str) -> None:
    rows = ROW.findall(python("tests.kernels.offline_target", name))
    found = {row[0] for row in rows}
    assert found >= {"_embed_rows", "_project", "_after_attention", "_after_feed_forward", "_head", "_pick"}
    assert found >= {"_attend_window", "_attend_one_row", "_attend_full", "_combine_splits"}
    assert (name == "26B-A4B") == ({"_gate_up_and_route", "_expert_gate_up", "_expert_down"} <= found)
    for kernel, registers, local, shared, wide, early in rows:
        assert int(registers) <= 255 and int(shared) <= 227 * 1024
        assert kernel in PROMPTS or waits_in_time(kernel, early), f"{kernel}: {early}"
        if kernel in STREAMS:
            assert int(local) == 0 and int(wide) > 0, f"{kernel} spills, or reads weights in small pieces"


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
def test_a_round_compiles_for_hopper() -> None:
    rows = ROW.findall(python("tests.kernels.offline_rounds"))
    found = {row[0] for row in rows}
    assert found >= {"_begin", "_attend_window", "_attend_full", "_combine_splits", "_count_digits", "_draw", "_accept"}
    assert found >= {"_pick_choices", "_grow", "_move_accepted"}
    for kernel, registers, local, shared, wide, early in rows:
        assert waits_in_time(kernel, early), f"{kernel}: {early}"
        assert int(registers) <= 255 and int(shared) <= 227 * 1024 and int(local) == 0, kernel
        if kernel in ("_project", "_gate_up", "_head", "_attend_window", "_attend_full"):
            assert int(wide) > 0, kernel
