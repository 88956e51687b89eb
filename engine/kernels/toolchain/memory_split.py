"""How kernels want a multiprocessor's memory split into what programs share and its cache (Hopper or later).

A multiprocessor changes its split only when it is idle, so a kernel that wants another one than the kernel before
starts late after all (``early_launch``). So all kernels that can stand in a round's line ask for the same split, and
those of prompts, which can't, ask for all memory that can be shared.

Which split is best for a line depends on how its weights travel. In bf16 products copy them into shared memory. Packed
ones go straight into registers, through the cache, of which 28 KB are left if all else is shared: too few for what is
under way (decode/DECISIONS.md, "Cache or shared memory")."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable

from .card import KILOBYTE, Card

log = logging.getLogger(__name__)

PREFERRED_CARVEOUT = 9
"""CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: percent of what can be shared that is to be. A wish: a kernel
whose program needs more gets it."""
EVERYTHING = 100


class MemorySplit:
    """Asks the driver for the split of every kernel that is loaded, now and later."""

    def __init__(self, ask: Callable[[int, int], int]):
        """``ask``: the driver, for a loaded kernel (CUfunction) and a percentage; returns its error, or 0."""
        self._ask = ask
        self._in_line: dict[int, str] = {}
        self.percent = EVERYTHING
        """The percentage of the kernels of a round's line."""

    def loaded(self, function: int, name: str, in_line: bool) -> None:
        """Notes a kernel that has just been loaded; ``in_line``: whether it can stand in a round's line."""
        if in_line:
            self._in_line[function] = name
        self._tell(function, name, self.wanted(function))

    def wanted(self, function: int) -> int:
        """The percentage of shared memory that is right for a loaded kernel."""
        return self.percent if function in self._in_line else EVERYTHING

    def share(self, kilobytes: int | None, card: Card) -> None:
        """Lets the programs of a round's kernels share ``kilobytes`` of each multiprocessor's memory and leaves the
        rest to the cache; with None they share all there is. Holds for graphs that are captured later."""
        percent = EVERYTHING
        if kilobytes is not None:
            percent = min(EVERYTHING, -(-100 * kilobytes * KILOBYTE // card.shared_of_multiprocessor))
        if percent != self.percent:
            self.percent = percent
            for function, name in self._in_line.items():
                self._tell(function, name, percent)

    def _tell(self, function: int, name: str, percent: int) -> None:
        error = self._ask(function, percent)
        if error:
            log.warning("%s keeps its own split of shared memory: CUDA error %s", name, error)


def _ask_driver(function: int, percent: int) -> int:
    set_attribute = ctypes.CDLL("libcuda.so.1").cuFuncSetAttribute
    return int(set_attribute(ctypes.c_void_p(function), PREFERRED_CARVEOUT, percent))


SPLIT = MemorySplit(_ask_driver)
"""What asks for the split of every kernel in this process."""
