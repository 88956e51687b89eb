"""Trees that the drafter's choices and a looked up chain share: by host and device alike, and never another text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.events import accepted_in
from engine.kernels.toolchain.jit import INTERPRETED
from engine.speculation.trees import LOOKED_UP
from tests.engine.decoding.test_device_rounds import DENSE, Pair, assert_same_rounds, pair
from tests.engine.decoding.test_lookup_rounds import AUTO, BESIDE, PROMPT, TABLE, Told, matches, plain, repeating
from tests.engine.decoding.test_tree_rounds import step_of, trees_by_host, with_trees
from tests.engine.small_decoders import assert_caches_equal_recomputation, run_turn

__all__ = ["pair", "repeating"]

pytestmark = [pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)"), DENSE]


def both(plans: tuple[Any, ...] = (BESIDE,)) -> Told:
    policy = Told(TABLE)
    policy.plans = plans
    return policy


@pytest.mark.parametrize(
    ("block_size", "values"), [(16, {}), (7, {"temperature": 0.8, "seed": 5})], ids=["greedy", "sampled"]
)
def test_host_and_device_share_the_same_trees(
    block_size: int, values: dict[str, float], repeating: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeating.drafter, "config", replace(repeating.drafter.config, block_size=block_size))
    wanted = replace(AUTO, max_new_tokens=20, **values)
    said = plain(repeating, wanted)
    text = [*PROMPT, *said]
    device, host = (make(repeating, text, both()) for make in (with_trees, trees_by_host))
    ours, theirs = (run_turn(decoder, PROMPT, wanted) for decoder in (device, host))
    assert ours.ids == theirs.ids == said
    assert_same_rounds(ours, theirs)
    assert matches(ours) == matches(theirs)
    for done, expected in zip(ours.rounds, theirs.rounds, strict=True):
        assert [each[:4] for each in done.tree] == [each[:4] for each in expected.tree]
        assert [each.probability for each in done.tree] == pytest.approx([each.probability for each in expected.tree])
        looked_up = [each for each in done.tree if each.choice == LOOKED_UP]
        assert (done.match is not None) == bool(looked_up)
    # Of the tokens that the pair holds for one, sampling says any: its texts repeat nothing.
    trees = [done for done in theirs.rounds if done.tree]
    kept = [done.tree[row - 1].choice for done in trees for row in accepted_in(step_of(done))]
    assert values or LOOKED_UP in kept
    # An answer's last token has room for no draft, and so for nothing that rounds before have looked up.
    last = run_turn(device, PROMPT, replace(wanted, max_new_tokens=2)).rounds[-1]
    assert (last.verify_width, last.draft_ids, last.tree, last.match) == (1, (), (), None)
    for decoder in (device, host):
        assert_caches_equal_recomputation(decoder)
