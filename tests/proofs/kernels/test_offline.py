"""Every kernel of a pass and of a round compiles for every card at the published shapes, in CI, which has none.

Hopper, the measured card, each time, a kernel once for each format; one of the others in turn, commit by commit, a
kernel once (of attention, once for each size). All with CARDS=all (``make proofs CARDS=all``), and for Hopper then
every tile of 26B-A4B in every format, of gpt-oss, of 31B, whose drafts are trees, and of what rounds launch.

For the card with least memory every kernel of these is assembled as well for the two that run the same; for newer ones
those of 26B-A4B and gpt-oss are compiled, for one of them those of layers that recur. ``python -m
tests.proofs.kernels.offline_cards`` compiles everything.
"""

from __future__ import annotations

import os

import pytest

from engine.kernels.toolchain.jit import HAS_TRITON
from tests.pace import in_turn
from tests.proofs.kernels.compiling import python
from tests.proofs.kernels.offline_cards import FORMATS

pytestmark = pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")

OF_ALL = {
    *("_embed_rows", "_project", "_attend_window", "_attend_one_row", "_attend_full", "_combine_splits"),
    *("_after_attention", "_after_feed_forward", "_head", "_pick", "_attend_chunk", "_norm_rope_split"),
}
OF_EXPERTS = {
    *("_gate_up_and_route", "_expert_gate_up", "_expert_down", "_choose_experts", "_fill_slots", "_spread"),
    *("_merge_choices", "_place_tiles"),
}
OF_ROUNDS = {
    *("_begin", "_attend_window", "_attend_full", "_combine_splits", "_count_digits", "_draw", "_accept", "_gate_up"),
    *("_pick_choices", "_edges", "_grow", "_move_accepted", "_store_context", "_choose", "_keep_features"),
    *("_keep_last", "_begin_draft", "_gather_window", "_norm_rope_store", "_pair_committed", "_pair_drafted"),
    *("_look_up", "_choose_chain", "_place_accepted", "_gate_messages", "_inject_and_norm", "_score", "_walk_edges"),
}
OF_PACKED = "_multiply_many"
OF_GPT_OSS = {
    *("_project", "_attend_window", "_attend_one_row", "_attend_full", "_combine_splits", "_route", "_add_and_norm"),
    *("_expert_gate_up", "_expert_down", "_attend_chunk", "_norm_rope_split", "_choose_experts", "_join", OF_PACKED),
}
OF_RECURRENT = {"_prepare", "_scan", "_fold", "_slide", "_trace", "_norm_and_gate", "_gate_heads", "_project_two"}
HOPPER = 90
CARDS = ("86:types", "90:tile", "100:name", "120:name")
IN_TURN = ("86:name", "100:name", "120:name")
NEWER = 100
"""From here on a card is looked at for the way in which it multiplies, and for its memory."""


def chosen() -> tuple[str, ...]:
    """The cards that kernels are compiled for now."""
    if os.environ.get("CARDS") == "all":
        return CARDS
    return (f"{HOPPER}:types", *in_turn(IN_TURN, len(IN_TURN)))


Found = dict[str, set[str]]
"""The names of kernels that a size and a format launch, or rounds."""


def compiled(card: str, *sizes: str) -> Found:
    """What a card was compiled; all is within bounds."""
    said = python("tests.proofs.kernels.offline_cards", card, "--sizes", *sizes, seconds=900)
    assert "out of bounds" not in said, said
    lines = (line.partition(": ") for line in said.splitlines() if line.startswith("sm_"))
    return {whose.partition(", ")[2]: set(names.split()) for whose, _, names in lines}


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("card", chosen())
def test_kernels_compile_for_every_card(card: str) -> None:
    """31B for the kernels of dense targets and of trees."""
    capability = int(card.partition(":")[0])
    others = ("rounds", "31B") if capability < NEWER else ("Qwen3.5-9B",) if card == CARDS[-1] else ()
    found = compiled(card, "26B-A4B", "gpt-oss-20b", *others)
    assert all(found[f"26B-A4B {weights}"] >= OF_ALL | OF_EXPERTS for weights in FORMATS)
    packed = {"26B-A4B fp8", "26B-A4B int4", "gpt-oss-20b mxfp4"}
    assert packed == {what for what, names in found.items() if OF_PACKED in names}
    assert found["gpt-oss-20b mxfp4"] >= OF_GPT_OSS
    assert ("_attend_full_one_row" in found["gpt-oss-20b mxfp4"]) == (capability == HOPPER)
    if card == CARDS[-1]:
        assert found["Qwen3.5-9B bf16"] >= OF_RECURRENT
    if capability < NEWER:
        assert found["rounds"] >= OF_ROUNDS
        for dense in (names for what, names in found.items() if what.startswith("31B")):
            assert dense >= OF_ALL | {"_gate_up"} and not dense & OF_EXPERTS
