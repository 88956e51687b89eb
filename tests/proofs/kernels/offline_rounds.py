"""``python -m tests.proofs.kernels.offline_rounds``: compiles for Hopper what a round launches beside the target's
pass.

At the shapes of the 26B pair: ingestion, drafting, sampling, what begins and ends a round, and what trees of drafts
need beside. Prints what each takes.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from engine.decoding.decoder import Decoder
from engine.decoding.round_launches import BLOCK, Ingestion, Proposal, RoundLaunches, Verification
from engine.kernels.round.accept import DraftTree, accept_tree
from engine.kernels.round.choices import Candidates, DraftChoices, pick_candidates, pick_choices
from engine.kernels.round.grow import grow_tree
from engine.kernels.round.lattice import Tables, choose_edges
from engine.kernels.round.lookup import LookupText, choose_chain, look_up
from engine.kernels.round.move_accepted import RowStores, move_accepted
from engine.kernels.round.sample import sample_rows
from engine.kernels.round.state import TREE_RECORD_SIZE, RoundState
from engine.kernels.toolchain.card import HOPPER, Card
from engine.kernels.weights.int8 import Int8Weight
from engine.models.dflash.config import DFlashConfig
from engine.models.dflash.dspine import read_dspine
from engine.models.dflash.modules import DFlashDrafter
from engine.models.eagle3.config import Eagle3Config
from engine.models.family import EMBEDDED, OwnTables
from engine.models.gemma4.config import Gemma4Config
from engine.models.gemma4.modules import Gemma4
from support.shapes import read_shape
from tests.engine.published import published
from tests.proofs.kernels.offline import Launch, compile_launch, distinct, record, table

TARGET, DRAFTER = "gemma-4-26B-A4B-it", "gemma-4-26B-A4B-it-DFlash"
CONTEXT, VOCABULARY = 32768, 262_144


def launches(card: Card = HOPPER) -> list[Launch]:
    """On a card, once per piece of machine code. The target has one layer: its kernels are ``offline_target``'s."""
    target_config = Gemma4Config.from_json(published(TARGET))
    drafter_config = DFlashConfig.from_json(published(DRAFTER))
    with torch.device("meta"):
        target = Gemma4(replace(target_config, layers=target_config.layers[:1])).to(torch.bfloat16)
        drafter = DFlashDrafter(drafter_config).to(torch.bfloat16)
    target.prepare()
    drafter.prepare()
    embedding = Int8Weight.allocate(target_config.vocab_size, target_config.hidden_size, device=torch.device("meta"))
    with record(card) as made:
        in_16_bits = RoundLaunches(Decoder(target, drafter, CONTEXT))
        in_16_bits.launch(Proposal(BLOCK))
        launches = RoundLaunches(Decoder(target, drafter, CONTEXT), embedding)
        launches.target.forward = lambda max_rows=16, beside=False, tree=None: None  # type: ignore[method-assign]
        launches.launch(Proposal(BLOCK))
        launches.launch(Verification())
        launches.launch(Verification(1, greedy=False))
        _run_tree(launches)
        _run_assistant(target_config)
        _run_own_layer()
        _run_eagle()
        _run_dspine()
        _run_lookup(launches)
        _run_wide(launches)
    return distinct(made)


def _run_tree(launches: RoundLaunches) -> None:
    """What a round launches for a tree where it would do otherwise for a chain."""
    state = RoundState.allocate(torch.device("meta"), TREE_RECORD_SIZE)
    head, sampled, target = launches.target.out, launches.sampled, launches.target
    pick_choices(head, DraftChoices.allocate(state.numbers.device), target.tiles.head)
    device, books = state.numbers.device, torch.empty(2, VOCABULARY, 256, device="meta")
    for rest in (False, True):
        pick_candidates(head, candidates := Candidates.allocate(BLOCK, device, rest), target.tiles.head)
    for conditioned in (True, False):
        tree = DraftTree.allocate(DraftChoices.allocate(state.numbers.device, conditioned))
        for text in (None, launches.text):
            grow_tree(state, launches.numbers, launches.ids, tree, text)
        for states in (books[0, :BLOCK].bfloat16(), None) if conditioned else ():
            tables = Tables(*books.bfloat16(), states)
            choose_edges(candidates, tables, launches.ids, tree.choices, bounded=states is not None)
    settings, scratch, drafts = launches.sampling, launches.sample_scratch, tree.choices.first_tokens
    sample_rows(head, settings, state.cursor, state.width, drafts, sampled, scratch, tree.rows)
    for says in (None, sampled):
        accept_tree(state, launches.ids, tree, head, says)
    move_accepted(RowStores(launches.decoder.cache.layers, target.features), tree.path)


def _run_assistant(target_config: Gemma4Config) -> None:
    """What a round launches that an MTP assistant drafts in, behind a target with a layer of each kind."""
    config = read_shape("26B-A4B", kind="mtp").drafter
    assert config is not None
    with torch.device("meta"):
        target = Gemma4(replace(target_config, layers=target_config.layers[4:6])).to(torch.bfloat16)
        drafter = config.build().to(torch.bfloat16)
    target.prepare()
    drafter.prepare()
    launches = RoundLaunches(Decoder(target, drafter, CONTEXT))
    launches.launch(Proposal(2))


def _run_own_layer() -> None:
    """What a round launches that a target's own layer drafts in, as it is and by copies in 8 bits."""
    shape = read_shape("Qwen3.6-35B-A3B", kind="mtp")
    config = replace(shape.target, layers=shape.target.layers[2:4])
    assert shape.drafter is not None
    for in_8_bits in (False, True):
        with torch.device("meta"):
            target, drafter = config.build().to(torch.bfloat16), shape.drafter.build().to(torch.bfloat16)
        target.prepare()
        drafter.prepare()
        head = Int8Weight.allocate(*target.head.shape, device=target.device) if in_8_bits else None
        launches = RoundLaunches(Decoder(target, drafter, CONTEXT), head)
        launches.launch(Proposal(2))


def _run_eagle() -> None:
    """What a round launches that an EAGLE-3 drafts in, among tokens of its own, as it is and by copies in 8 bits."""
    shape = read_shape("Llama-3.1-8B")
    config = Eagle3Config(
        layers=shape.target.attention[:1], block_size=16, target_layer_ids=(0, 1, EMBEDDED),
        vocab_size=shape.target.vocab_size, tables=OwnTables(head=True, vocabulary=32_000),
        hidden_size=shape.target.hidden_size, intermediate_size=14_336, rms_norm_eps=1e-5, counts="outputs",
    )  # fmt: skip
    for in_8_bits in (False, True):
        with torch.device("meta"):
            target = replace(shape.target, layers=shape.target.layers[:2]).build().to(torch.bfloat16)
            drafter = config.build().to(torch.bfloat16)
        target.prepare()
        drafter.prepare()
        head = Int8Weight.allocate(32_000, config.hidden_size, device=target.device) if in_8_bits else None
        launches = RoundLaunches(Decoder(target, drafter, CONTEXT), head)
        launches.launch(Proposal(2))


def _run_dspine() -> None:
    """What a round launches that a DSpine of Qwen3-8B drafts in."""
    shape = read_shape("Qwen3-8B")
    own = {"transfer_rank": 1024, "message_size": 512}
    said = published("Qwen3-8B-DFlash-b16")
    config = read_dspine({**said, "dspine_config": own})
    with torch.device("meta"):
        target = replace(shape.target, layers=shape.target.layers[:1]).build().to(torch.bfloat16)
        drafter = replace(config, layers=config.layers[:1], target_layer_ids=(0,)).build().to(torch.bfloat16)
    target.prepare()
    drafter.prepare()
    launches = RoundLaunches(Decoder(target, drafter, CONTEXT))
    for tree in (False, True):
        launches.draft(BLOCK, tree)


def _run_lookup(launches: RoundLaunches) -> None:
    """What a round launches that looks its drafts up, alone or beside a drafter's."""
    text = LookupText.allocate(CONTEXT, torch.device("meta"))
    look_up(launches.state, text)
    for drafted in (False, True):
        choose_chain(
            launches.state, launches.numbers, launches.ids, text, launches.drafter_probability, drafted=drafted
        )


def _run_wide(launches: RoundLaunches) -> None:
    """What a round of 64 rows launches beside the target's pass."""
    assert launches.wide is not None
    launches.wide.forward = lambda rows: None  # type: ignore[method-assign]
    launches.launch(Proposal(lookup=launches.widest))
    for greedy in (True, False):
        launches.launch(Verification(launches.widest, greedy=greedy))
    launches.launch(Ingestion(launches.widest))


if __name__ == "__main__":
    print(table([compile_launch(launch) for launch in launches()]))
