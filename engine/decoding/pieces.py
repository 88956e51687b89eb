"""The pieces that device rounds are composed of. Each is a value that says what a round launches in one go; it is
captured once and replayed. A round is a ``Proposal`` (or none), a ``Verification`` and, behind a wide one, a
``Ingestion``."""

from __future__ import annotations

from typing import NamedTuple

from ..kernels.toolchain.jit import MAX_ROWS

BLOCK = MAX_ROWS - 1
"""How many tokens a whole block drafts."""


class Proposal(NamedTuple):
    """What runs before the target's pass: the drafter takes in what was written, drafts are made or looked up, and how
    much of them to verify is chosen. ``Proposal(BLOCK, tree=True)`` drafts a block and grows a tree of it;
    ``Proposal(lookup=16, ingests=False)`` looks a chain of 15 up without a drafter; ``Proposal()`` only takes in."""

    drafted: int = 0
    """How many tokens the drafter drafts; with 0 it drafts nothing."""
    lookup: int = 0
    """The most rows, anchor included, that a looked up chain may fill: 16, or 64 in a wide round; 0 looks nothing
    up."""
    ingests: bool = True
    """Whether the drafter's context takes in what was written since it last did."""
    tree: bool = False
    """Whether a tree is chosen, not a chain."""

    def __str__(self) -> str:
        parts = (
            "ingest" if self.ingests else "", f"draft {self.drafted}" if self.drafted else "",
            f"look up {self.lookup}" if self.lookup else "", "tree" if self.tree else "",
        )  # fmt: skip
        return ", ".join(filter(None, parts))


class Verification(NamedTuple):
    """The target's pass, the samples behind its rows, what of them is accepted, and the report."""

    rows: int = MAX_ROWS
    """The most rows of the pass: 1 is the target alone, 16 a chain or a tree, 32 and 64 are wide chains."""
    tree: bool = False
    greedy: bool = True
    """Whether every sample is the likeliest token: temperature 0."""

    def __str__(self) -> str:
        return f"verify {self.rows}{' of a tree' if self.tree else ''}{' greedily' if self.greedy else ''}"


class Ingestion(NamedTuple):
    """The drafter's context takes in, at once, what a wide pass of this many rows has accepted."""

    rows: int

    def __str__(self) -> str:
        return f"ingest {self.rows}"


Piece = Proposal | Verification | Ingestion
