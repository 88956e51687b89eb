"""The step from a drafter's logits to the drafted ids."""

from __future__ import annotations

from typing import ClassVar, Protocol

from torch import Tensor

from ...kernels.decode.head import HeadOutput, pick_rows
from ...kernels.decode.tiles import Tiles
from ...kernels.round.choices import Choices, pick_choices
from ..drafter import Draft


class Picker(Protocol):
    """Chooses the drafted ids: ``pick`` defines it, ``launch`` does the same by kernels."""

    reads_logits: ClassVar[bool]
    """Whether ``launch`` wants ``logits`` of ``out``, which are kept only for those who do."""

    def pick(self, logits: Tensor, rows: Tensor, anchor: int) -> Draft:
        """Of fp32 logits [block - 1, vocab] and the rows [block - 1, hidden] that they were made of."""

    def launch(self, out: HeadOutput, rows: Tensor, block: Tensor, choices: Choices | None, tiles: Tiles) -> None:
        """Fills ``token`` and ``probability`` of ``out``, which ``head_rows`` left with these ``tiles``, and
        ``choices`` where wanted. ``rows`` [16, hidden] are what the head read; ``block`` int64 [16] begins with the
        anchor."""


class ArgmaxPicker:
    """The most likely token of each position by itself."""

    reads_logits: ClassVar[bool] = False

    def pick(self, logits: Tensor, rows: Tensor, anchor: int) -> Draft:
        best = logits.softmax(dim=-1).max(dim=-1)
        return Draft(best.indices, best.values)

    def launch(self, out: HeadOutput, rows: Tensor, block: Tensor, choices: Choices | None, tiles: Tiles) -> None:
        if choices is None:
            pick_rows(out)
        else:
            pick_choices(out, choices, tiles)
