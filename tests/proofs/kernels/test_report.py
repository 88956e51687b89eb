"""A round's record gets into the host's memory."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.round.state import RECORD_SIZE, RoundReports, RoundState, report_round
from engine.kernels.toolchain.jit import INTERPRETED
from tests.kernels.tensors import CPU

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")


def test_records_take_turns() -> None:
    state, reports = RoundState.allocate(CPU), RoundReports.allocate(2, RECORD_SIZE, CPU)
    rounds = [torch.arange(RECORD_SIZE, dtype=torch.int32) + 1000 * number for number in range(3)]
    for number, record in enumerate(rounds):
        state.record.copy_(record)
        report_round(state, reports)
        assert torch.equal(reports.records[number % 2], record)
        if number > 0:  # that of the round before is still there to be read
            assert torch.equal(reports.records[(number - 1) % 2], rounds[number - 1])
    reports.next_record.zero_()  # a new turn
    report_round(state, reports)
    assert torch.equal(reports.records[0], rounds[2])
