"""``python -m tests.kernels.offline_rounds``: compiles for Hopper what a round launches beside the target's pass.

At the shapes of the 26B pair: ingestion, drafting, sampling, what begins and ends a round, and what trees of drafts
need beside. Prints what each takes.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch

from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.kernels.round.accept import MAX_SCRIPT, RoundState
from engine.kernels.round.accept_tree import TREE_RECORD_SIZE, AcceptedPath, accept_tree
from engine.kernels.round.choices import Choices, pick_choices
from engine.kernels.round.grow import NUM_TREE_NUMBERS, grow_tree
from engine.kernels.round.move_accepted import RowStores, adopt_rows
from engine.kernels.round.sample import sample_rows
from engine.kernels.round.tree_rows import TreeRows
from engine.kernels.weights.int8 import Int8Weight
from engine.models.dflash.config import DrafterConfig
from engine.models.dflash.modules import DFlashDrafter
from engine.models.gemma4.config import Gemma4Config
from engine.models.gemma4.modules import Gemma4
from tests.kernels.offline import Launch, compile_launch, distinct, record, table

CONFIGS = Path(__file__).parents[1] / "engine" / "configs"
TARGET, DRAFTER = "gemma-4-26B-A4B-it.config.json", "gemma-4-26B-A4B-it-DFlash.config.json"
CONTEXT = 32768


def launches() -> list[Launch]:
    """Once per piece of machine code. The target has one layer: its kernels are ``offline_target``'s."""
    target_config = Gemma4Config.from_json(json.loads((CONFIGS / TARGET).read_text()))
    drafter_config = DrafterConfig.from_json(json.loads((CONFIGS / DRAFTER).read_text()))
    with torch.device("meta"):
        target = Gemma4(replace(target_config, layers=target_config.layers[:1])).to(torch.bfloat16)
        drafter = DFlashDrafter(drafter_config).to(torch.bfloat16)
    target.prepare()
    drafter.prepare()
    embedding = Int8Weight.allocate(target_config.vocab_size, target_config.hidden_size, device=torch.device("meta"))
    rounds = DeviceRounds(Decoder(target, drafter, CONTEXT), embedding)
    rounds._target.forward = lambda max_rows=16, beside=False, tree=None: None  # type: ignore[method-assign]
    with record() as made:
        rounds._ingest()
        rounds._draft()
        rounds._verify("verify", greedy=True)
        rounds._verify("plain", greedy=False)
        _run_tree(rounds)
    return distinct(made)


def _run_tree(rounds: DeviceRounds) -> None:
    """What a round launches for a tree where it would do otherwise for a chain."""
    device, state = torch.device("meta"), RoundState.allocate(torch.device("meta"), TREE_RECORD_SIZE)
    head, sampled, target = rounds._target.out, rounds._sampled, rounds._target
    choices, rows, path = Choices.allocate(device), TreeRows.allocate(device), AcceptedPath.allocate(device)
    ids, parents = torch.zeros(17, dtype=torch.int64, device=device), torch.zeros(16, dtype=torch.int32, device=device)
    numbers, scripted = torch.zeros(NUM_TREE_NUMBERS, device=device), torch.zeros(MAX_SCRIPT, 16, device=device)
    pick_choices(head, choices, target.tiles.head)
    grow_tree(state, numbers, choices, scripted, ids, parents, rows)
    settings, scratch, drafts = rounds._sampling, rounds._sample_scratch, choices.tokens[:, 0]
    sample_rows(head, settings, state.cursor, state.width, drafts, sampled, scratch, rows)
    for says in (None, sampled):
        accept_tree(state, ids, rows, parents, choices, head, says, path)
    adopt_rows(RowStores(rounds._decoder.cache.layers, target.features), path)


if __name__ == "__main__":
    print(table([compile_launch(launch) for launch in launches()]))
