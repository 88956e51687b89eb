"""The cells of the matrix (:mod:`tests.engine.decoding.talks`) that ``tests/engine/decoding/test_matrix.py`` leaves."""

from __future__ import annotations

import pytest

from engine.kernels.toolchain.jit import INTERPRETED
from tests.engine.decoding.pairs import Pair, pair
from tests.engine.decoding.talks import draft_and_compare_bits, talk

__all__ = ["pair"]

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

CELLS = [
    *(("dense", way) for way in ("none", "own drafts", "in turns", "beside")),
    ("dense, MTP", "own drafts, few"),
    *(("dense, few tokens", way) for way in ("own drafts", "tree")),
    *(("dense, DFlash 2", way) for way in ("own trees", "tree", "beside")),
    *((f"dense, {method}", "own trees") for method in ("DSpark", "DSpine")),
    *(("qwen3_5, DFlash 2", way) for way in ("own trees", "tree")),
    *((f"{family}, EAGLE-3", "own drafts, few") for family in ("dense", "experts")),
    *(("llama, EAGLE-3", way) for way in ("own drafts, few", "block", "in turns")),
    *((family, "block") for family in ("llama", "gpt_oss", "qwen3_moe")),
    ("llama", "tree"),
    *(("qwen3_5", way) for way in ("tree", "own drafts", "width")),
    *(("qwen3_5, MTP", way) for way in ("own drafts, few", "block")),
]


@pytest.mark.parametrize(("pair", "way"), CELLS, indirect=["pair"])
def test_a_conversation(pair: Pair, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(pair, way, monkeypatch)


@pytest.mark.parametrize("pair", ["experts", "qwen3_5"], indirect=True)
def test_drafting_changes_no_bit(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    draft_and_compare_bits(pair, monkeypatch)
