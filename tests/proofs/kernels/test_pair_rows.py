"""What Qwen3.5's MTP layer projects: kernels that lay it side by side equal the definition."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.round.pair_rows import DraftPlaces, PairNorms, pair_committed, pair_first, pair_next, reference_pair
from engine.kernels.toolchain.jit import INTERPRETED
from tests.kernels.tensors import number

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

HIDDEN, KEPT = 24, 21
NORMS = PairNorms(torch.rand(HIDDEN) + 0.5, torch.rand(HIDDEN) + 0.5, 1e-6)


@pytest.mark.parametrize(("start", "rows"), [(0, 1), (0, 16), (1, 1), (20, 16), (21, 7), (41, 3), (63, 0)])
def test_committed_rows_follow_the_one_kept_before(start: int, rows: int) -> None:
    """Wherever in the kept rows that lies; what is kept changes only where rows count."""
    features, kept = torch.randn(16, 2 * HIDDEN), torch.randn(KEPT, HIDDEN)
    hidden, embedded = features.split(HIDDEN, dim=1)
    expected = kept.clone()
    for row in range(rows):
        expected[(start + row) % KEPT] = hidden[row]
    before = torch.cat((kept[(start - 1) % KEPT][None], hidden[:-1]))
    pairs, first = torch.zeros(16, 2 * HIDDEN), number(0)
    pair_committed(features, number(start), number(rows), kept, NORMS, first, pairs)
    wanted = reference_pair(embedded, before, NORMS)
    skipped = int(start == 0)  # no row stands before the first of a text
    torch.testing.assert_close(pairs[: 16 - skipped], wanted[skipped:])
    assert torch.equal(kept, expected) and int(first) == start - 1 + skipped


@pytest.mark.parametrize(("cursor", "width"), [(1, 16), (22, 5), (43, 1), (60, 0)])
def test_a_draft_begins_with_the_anchor_and_goes_on_with_its_own(cursor: int, width: int) -> None:
    table, kept, hidden = torch.randn(50, HIDDEN), torch.randn(KEPT, HIDDEN), torch.randn(16, HIDDEN)
    pairs, steps = torch.zeros(16, 2 * HIDDEN), DraftPlaces.allocate(table.device)
    pair_first(torch.tensor([7, 9]), table, 2.0, kept, number(cursor), number(width), NORMS, steps, pairs)
    expected = reference_pair(2 * table[7:8], kept[(cursor - 1) % KEPT][None], NORMS)
    torch.testing.assert_close(pairs[:1], expected)
    assert steps.cursors[:, 0].tolist() == list(range(cursor - 1, cursor + 15))
    assert steps.rows[:, 0].tolist() == [int(step < width - 1) for step in range(16)]
    pair_next(torch.tensor([31]), table, 2.0, hidden, NORMS, pairs)
    torch.testing.assert_close(pairs[:1], reference_pair(2 * table[31:32], hidden[:1], NORMS))
    assert not pairs[1:].any()
