"""The properties of a GPU that decide how kernels are cut. Never its name."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

KILOBYTE = 1024
RESERVED = KILOBYTE
"""Bytes of a multiprocessor's shared memory that each program takes besides its own."""
LEAST_CAPABILITY = 80
"""The oldest compute capability that is supported: kernels multiply in bf16 and copy into shared memory beside other
work, which begins with Ampere."""


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU, or one that kernels are compiled for where there is none."""

    capability: int
    """Compute capability, 10 * major + minor: 90 is Hopper."""
    multiprocessors: int
    shared_memory: int
    """Bytes of shared memory that one program may have."""
    shared_of_multiprocessor: int
    """Bytes that the programs of a multiprocessor share."""

    @property
    def multiplies_from_shared_memory(self) -> bool:
        """Whether tensor cores take tiles of 64 rows from shared memory, by four warps at a time (``wgmma``). Others
        multiply 16 rows from a warp's registers (``mma.sync``), as do all cards where a tile has fewer rows."""
        return self.capability // 10 == 9

    @property
    def was_measured(self) -> bool:
        """Whether the tiles in the source were measured on such cards: H100 SXM and H200."""
        return (self.capability, self.multiprocessors) == (90, 132)

    def programs_of(self, shared_memory: int) -> int:
        """How many programs that need this many bytes fit on a multiprocessor, as far as shared memory goes."""
        if shared_memory > self.shared_memory:
            return 0
        return self.shared_of_multiprocessor // (shared_memory + RESERVED)


def _card(capability: int, multiprocessors: int, shared_memory: int, shared_of_multiprocessor: int) -> Card:
    return Card(capability, multiprocessors, shared_memory * KILOBYTE, shared_of_multiprocessor * KILOBYTE)


HOPPER = _card(90, 132, 227, 228)
REPRESENTATIVES = (
    _card(80, 108, 163, 164),
    _card(86, 82, 99, 100),
    _card(89, 128, 99, 100),
    HOPPER,
    _card(100, 148, 227, 228),
    _card(120, 170, 99, 100),
)
"""One card of each architecture, to compile for: A100, 3090, 4090, H200, B200 and 5090 have these numbers."""

_stand_in = HOPPER


def representative(capability: int) -> Card:
    """What a card of this capability probably has, where there is none to ask: the numbers of the newest known card
    that is no newer."""
    known = [card.capability for card in REPRESENTATIVES]
    return REPRESENTATIVES[max(0, bisect_right(known, capability) - 1)]


def stand_in(card: Card) -> None:
    """Makes ``card_of`` return this card where there is no GPU, so that kernels are compiled for it."""
    global _stand_in
    _stand_in = card


def card_of(device: torch.device) -> Card:
    """The card on which tensors of a device are. Without a GPU it is the card that is compiled for: Hopper, unless
    ``stand_in`` said otherwise."""
    if device.type != "cuda":
        return _stand_in
    return found_card(_current() if device.index is None else device.index) or _stand_in


def _current() -> int:
    import torch  # imported here: it takes seconds, and a process that compiles kernels is told its card before

    return torch.cuda.current_device() if torch.cuda.is_available() else 0


@lru_cache
def found_card(index: int) -> Card | None:
    """The card of a GPU, None where there is none. It is kept: a prompt's launches ask seven times a layer, and PyTorch
    takes 10 us to answer."""
    import torch

    if not torch.cuda.is_available():
        return None
    has = torch.cuda.get_device_properties(index)
    return Card(
        10 * has.major + has.minor,
        has.multi_processor_count,
        has.shared_memory_per_block_optin,  # type: ignore[attr-defined]
        has.shared_memory_per_multiprocessor,
    )
