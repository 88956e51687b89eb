"""What rounds promise (:mod:`tests.engine.decoding.talks`), of each way to draft and each kind of family once.
``tests/proofs/engine/decoding/test_matrix.py`` has the other cells."""

from __future__ import annotations

import pytest

from engine.kernels.toolchain.jit import INTERPRETED
from tests.engine.decoding.pairs import Pair, pair
from tests.engine.decoding.talks import draft_and_compare_bits, talk

__all__ = ["pair"]

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

CELLS = [
    *(("dense", way) for way in ("block", "tree", "lookup")),
    *((family, "block") for family in ("experts", "qwen3_5")),
]


@pytest.mark.parametrize(("pair", "way"), CELLS, indirect=["pair"])
def test_a_conversation(pair: Pair, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(pair, way, monkeypatch)


@pytest.mark.parametrize("pair", ["dense"], indirect=True)
def test_drafting_changes_no_bit(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    draft_and_compare_bits(pair, monkeypatch)
