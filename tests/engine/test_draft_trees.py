"""What ``python -m tests.engine.draft_trees`` plays."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.checkpoint import load_drafter, load_target
from engine.commands import GenerationSettings
from engine.demo.confirm import questions
from engine.trees import accepted_path, best_first
from engine.tuning.record import record_drafts
from tests.engine.conftest import CPU, no_progress
from tests.engine.record_drafts import record


def test_choices_are_those_of_the_drafts(bundled_pair: Path) -> None:
    """First choices are what is drafted today, and where a further one was right the tree follows it."""
    torch.set_num_threads(1)
    target = load_target(bundled_pair / "target", CPU, no_progress)
    drafter = load_drafter(bundled_pair / "drafter", target, no_progress)
    settings = GenerationSettings(temperature=1.0, seed=3, max_new_tokens=60)
    prompt = next(ids for domain, ids in questions(1) if domain == "explain")
    blocks = record(target, drafter, prompt, settings)
    chains = record_drafts(target, drafter, prompt, settings)
    assert len(blocks) == len(chains) > 20
    for block, anchor in zip(blocks, chains, strict=True):
        assert block.chain().num_right == anchor.num_right
        assert block.chain().confidences == pytest.approx(anchor.confidences)
        assert all(position == tuple(sorted(position, reverse=True)) for position in block.chances)
    longer = [len(accepted_path(best_first(block.chances), block.said)) - block.chain().num_right for block in blocks]
    assert max(longer) > 0
