"""The choices of several tiles of rows as one list of experts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from engine.kernels.decode.experts.router import Assignment, reference_assignment
from engine.kernels.decode.experts.wide_experts import WideAssignment, merge_assignments
from engine.kernels.toolchain.jit import INTERPRETED

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")


FULL = (16,) * 4


def merged_entries(tiles: Sequence[Assignment]) -> list[tuple[int, list[int]]]:
    """What the list should hold: an expert, and up to 16 pairs."""
    pairs_of: dict[int, list[int]] = {}
    for number, tile in enumerate(tiles):
        for expert, pairs in zip(tile.experts.tolist(), tile.pairs.tolist(), strict=True):
            if expert >= 0:
                first = number * tile.weights.numel()
                pairs_of.setdefault(expert, []).extend(first + pair for pair in pairs if pair >= 0)
    return [
        (expert, pairs[start : start + 16])
        for expert, pairs in sorted(pairs_of.items())
        for start in range(0, len(pairs), 16)
    ]


@pytest.mark.parametrize(("rows", "shared"), [(FULL, 0.0), (FULL, 5.0), ((16, 3), 1.0), ((0, 0), 0.0)])
def test_every_pair_stands_in_the_list_of_its_expert(rows: tuple[int, ...], shared: float) -> None:
    experts, top_k = 20, 4
    wide = WideAssignment.allocate(len(rows), experts, top_k, torch.device("cpu"))
    wide.together.experts.fill_(7)
    wide.together.pairs.fill_(7)
    torch.manual_seed(0)
    common = shared * torch.randn(experts)
    for number, count in enumerate(rows):
        tile, found = wide.tile(number), reference_assignment(torch.randn(count, experts) + common, top_k)
        tile.experts.copy_(found.experts)
        tile.pairs.copy_(found.pairs)
    merge_assignments(wide)
    merged = merged_entries([wide.tile(number) for number in range(len(rows))])
    assert wide.together.experts.tolist() == [each for each, _ in merged] + [-1] * (
        experts + len(rows) * top_k - len(merged)
    )
    for (_, pairs), listed in zip(merged, wide.together.pairs.tolist(), strict=False):
        assert listed == pairs + [-1] * (16 - len(pairs))
    assert shared < 5 or any(len(pairs) == 16 for _, pairs in merged)
