"""Recorded choices are those that the drafter made, and trees of them change no text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from engine.commands import GenerationSettings, Message
from engine.decoding.decoder import Decoder
from engine.decoding.host_rounds import HostRounds
from engine.lab.demo.confirm import questions
from engine.lab.judging.record import record_blocks
from engine.loading.checkpoint import load_drafter, load_target
from engine.speculation.auto import Auto
from engine.speculation.trees import CHOICES, accepted_path, best_first
from engine.tokenization.tokenizer import ChatTokenizer
from tests.engine.conftest import CPU, no_progress
from tests.engine.small_decoders import assert_caches_equal_recomputation, run_turn
from tests.proofs.engine.recorded import recorded_tables


def test_choices_are_those_of_the_drafts(bundled_pair: Path) -> None:
    """The likeliest come first, and where a further one was right the tree follows it."""
    torch.set_num_threads(1)
    target = load_target(bundled_pair / "target", CPU, no_progress)
    drafter = load_drafter(bundled_pair / "drafter", target, no_progress)
    settings = GenerationSettings(temperature=1.0, seed=3, max_new_tokens=40)
    prompt = next(ids for question, ids in questions(1) if question.domain == "explain")
    text, blocks = record_blocks(target, drafter, prompt, settings)
    assert len(blocks) == len(text) - 1 > 20
    assert all(position == tuple(sorted(position, reverse=True)) for block in blocks for position in block.chances)
    longer = [
        len(accepted_path(best_first(block.chances), block.taken_choices)) - block.chain().num_right for block in blocks
    ]
    assert max(longer) > 0


def test_the_bundled_pair_says_the_same_in_trees(bundled_pair: Path) -> None:
    """By the definition: some of what is accepted is no first choice."""
    target = load_target(bundled_pair / "target", CPU, no_progress)
    decoder = Decoder(target, load_drafter(bundled_pair / "drafter", target, no_progress), 512)
    ids = ChatTokenizer(bundled_pair / "target").prompt([Message("user", "Hello, how are you?")], thinking=False).ids
    wanted = GenerationSettings(max_new_tokens=64, temperature=0.8, seed=2)
    plain = run_turn(decoder, ids, replace(wanted, speculation=False))
    decoder.use_rounds(HostRounds(CHOICES))
    decoder.use_policy(Auto(recorded_tables()["31B uniform"]))
    decoder.clear()
    answer = run_turn(decoder, ids, replace(wanted, block_size="auto"))
    assert answer.ids == plain.ids
    trees = [done for done in answer.rounds if done.tree]
    assert any(done.emitted[: done.num_accepted] != done.draft_ids[: done.num_accepted] for done in trees)
    assert_caches_equal_recomputation(decoder)
