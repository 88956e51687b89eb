"""A round's last launch puts its record into the host's memory. A copy by the GPU's copy engine, enqueued behind the
round, delayed the next one by 10 us (kernels/MEASUREMENTS.md)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..toolchain.early_launch import early_kernel, wait_for_inputs
from ..toolchain.jit import power_of_two, tl
from .state import AT_RECORD, RoundState


@dataclass(frozen=True, slots=True)
class RoundReports:
    """Host memory for the records of the latest rounds, which take turns."""

    records: Tensor
    """int32 [places, record size], in the host's memory (pinned, where there is a GPU). A record is complete once the
    GPU has passed an event behind its round."""
    place: Tensor
    """int32 [1] on the device: the place of the next record."""

    @classmethod
    def allocate(cls, places: int, size: int, device: torch.device) -> RoundReports:
        on_gpu = device.type == "cuda"
        where = torch.device("cpu") if on_gpu else device
        return cls(
            torch.zeros(places, size, dtype=torch.int32, device=where, pin_memory=on_gpu),
            torch.zeros(1, dtype=torch.int32, device=device),
        )


def report_round(state: RoundState, reports: RoundReports) -> None:
    """Copies the record of ``state`` to the place whose turn it is, and moves the turn on."""
    places, size = reports.records.shape
    assert len(state.record) == size
    _report[(1,)](
        state.numbers, reports.records, reports.place,
        PLACES=places, SIZE=size, BLOCK=power_of_two(size), num_warps=1,
    )  # fmt: skip


@early_kernel
def _report(
    state: tl.tensor, records: tl.tensor, place: tl.tensor, PLACES: tl.constexpr, SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    wait_for_inputs()
    lane = tl.arange(0, BLOCK)
    number = tl.load(place)
    record = tl.load(state + AT_RECORD + lane, mask=lane < SIZE, other=0)
    tl.store(records + number * SIZE + lane, record, mask=lane < SIZE)
    tl.store(place, (number + 1) % PLACES)
