"""Pairs with random weights for tests of rounds, and decoders whose rounds the host runs, or the device in Triton's
interpreter, with drafts that a test tells them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import torch
from torch import Tensor

from engine.commands import GenerationSettings
from engine.decoding.decoder import Decoder, Round
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.host_rounds import HostRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.decode.tiling.tiles import DraftTiles, TargetTiles, Tiles
from engine.kernels.round.choices import CANDIDATES
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.dflash.modules import DFlashDrafter
from engine.models.target import TargetModel
from engine.speculation.auto import Auto
from engine.speculation.choice import RoundPlan
from engine.speculation.costs import CostTable
from engine.speculation.lookup import continuation, longest_match
from engine.speculation.one_row import OneRowPasses
from engine.speculation.trees import CHOICES, Lattice
from support.checkpoints import (
    FULL,
    SLIDING,
    VOCAB_SIZE,
    drafter_config,
    random_target,
    second_config,
    write_drafter,
)
from support.eagle import write_eagle
from support.speculators import write_speculators
from tests.engine.assistants import lending_keys, write_assistant
from tests.engine.conftest import CPU, no_progress
from tests.engine.models import gpt_oss, pre_norm, qwen3_5
from tests.engine.models.dspark import write_dspark
from tests.engine.models.dspine import write_dspine
from tests.engine.small_decoders import Answer, ScriptedDrafter, prompt_ids, run_turn

WIDE = Tiles(columns=128, depth=64)
TILES = TargetTiles(
    qkv=WIDE,
    output=replace(WIDE, columns=64, splits=2),
    gate_up=replace(WIDE, columns=64),
    router=Tiles(columns=16, depth=32, splits=2),
    down=replace(WIDE, columns=64, depth=32, splits=3),
    expert_gate_up=WIDE,
    expert_gate_up_alone=replace(WIDE, columns=32, warps=2),
    expert_down=WIDE,
    head=replace(WIDE, columns=256),
)
DRAFT_TILES = DraftTiles(
    context=replace(WIDE, columns=64, splits=2),
    context_kv=WIDE,
    qkv=WIDE,
    output=replace(WIDE, columns=64, splits=2),
    gate_up=WIDE,
    down=replace(WIDE, columns=64, splits=2),
    head=replace(WIDE, columns=256),
)
"""Few programs: each costs the interpreter about a millisecond."""
GIVEN = (0.5, 0.25, 0.125, 0.0625)
"""What the drafter gives its choices: products of them are the same in fp32 and in double."""


HEADS = {"num_attention_heads": 2, "num_key_value_heads": 1}
"""As few as a round can have where queries share a key: the interpreter takes milliseconds for each and row."""


@dataclass(frozen=True)
class Pair:
    target: Any
    drafter: Any


def gemma(folder: Path, experts: bool, assistant: bool = False) -> None:
    """A sliding and a full layer each, both tapped; windows of 24 and 20."""
    with lending_keys():
        # With experts it has as many heads as it takes to copy: see ``copying``.
        theirs = random_target([SLIDING, FULL], experts, seed=2, **({} if experts else HEADS))
    theirs.save_pretrained(folder / "target")
    if assistant:
        write_assistant(folder / "drafter", theirs, seed=2)
    else:
        config = drafter_config([SLIDING, FULL], [0, 1], 2, attention_bias=True, **HEADS)
        write_drafter(folder / "drafter", config, seed=2)


def without_softcap(folder: Path, **changes: Any) -> None:
    config = drafter_config([FULL], [0, 1], 2, final_logit_softcapping=None, **HEADS, **changes)
    write_drafter(folder / "drafter", config, 2)


def plain(folder: Path, family: str) -> None:
    experts = {"num_experts": 8, "num_experts_per_tok": 2} if family == "qwen3_moe" else {}
    pre_norm.write_target(folder / "target", family, 7, num_hidden_layers=2, **HEADS, **experts)
    without_softcap(folder)


def gpt(folder: Path) -> None:
    gpt_oss.write_target(folder / "target", 7, num_hidden_layers=2, num_local_experts=5, **HEADS)
    without_softcap(folder, attention_bias=True)


def recurrent(folder: Path, experts: bool = False, own: bool = False) -> None:
    """``own``: a target that brings its drafter itself."""
    few = {"linear_num_key_heads": 1, "linear_num_value_heads": 3, "num_attention_heads": 3, "num_key_value_heads": 1}
    kinds = [qwen3_5.RECURS, qwen3_5.ATTENDS]
    qwen3_5.write_target(
        folder / "target", 7, experts=experts, drafts=own, num_hidden_layers=2, layer_types=kinds, **few
    )
    if own:
        (folder / "drafter").symlink_to(folder / "target")
    else:
        without_softcap(folder)


def eagle(folder: Path, family: str) -> None:
    """Of three published layouts, with a vocabulary of its own or all tokens: beside a dense Gemma its layer is Gemma's
    own, with an embedding of its own; beside one with experts it has two layers."""
    if family == "llama":
        pre_norm.write_target(folder / "target", family, 7, num_hidden_layers=2, **HEADS)
        write_eagle(folder / "drafter", "speculators", VOCAB_SIZE, [0, 1], norm_before_fc=True)
    else:
        random_target([SLIDING, FULL], family == "experts", seed=2, **HEADS).save_pretrained(folder / "target")
        if family == "dense":
            write_eagle(folder / "drafter", "DeepSpec, Gemma", VOCAB_SIZE, [0, 1], count=None, embedding=True)
            return
        fields: dict[str, Any] = {"fc_norm": True, "norm_output": True, "num_hidden_layers": 2}
        write_eagle(folder / "drafter", "SpecForge", VOCAB_SIZE, [0], count=None, head_norms=True, **fields)


def few_tokens(folder: Path) -> None:
    """A DFlash in the speculators layout with tables of its own, whose first row drafts."""
    random_target([SLIDING, FULL], False, seed=2, **HEADS).save_pretrained(folder / "target")
    config = drafter_config([SLIDING, FULL], [0, 1], 2, **HEADS)
    write_speculators(folder / "drafter", config, 2, 40, True, sample_from_anchor=True)


def scoring(folder: Path, kind: str) -> None:
    """Drafters that score each token behind the one before it, beside a dense target or one that recurs."""
    if kind == "qwen3_5":
        recurrent(folder)
        shutil.rmtree(folder / "drafter")
    else:
        random_target([SLIDING, FULL], False, seed=2, **HEADS).save_pretrained(folder / "target")
    if kind in ("DSpark", "DSpine"):
        table = load_target(folder / "target", CPU, no_progress).embed_tokens.weight
    if kind == "DSpine":
        write_dspine(folder / "drafter", table)
    elif kind == "DSpark":
        write_dspark(folder / "drafter", "speculators, anchor", table, 200, markov_head_type="gated")
    else:
        write_drafter(folder / "drafter", second_config([0, 1], 2, **HEADS), seed=2)


PAIRS: dict[str, Callable[[Path], None]] = {
    "dense": lambda folder: gemma(folder, False),
    "experts": lambda folder: gemma(folder, True),
    "dense, MTP": lambda folder: gemma(folder, False, assistant=True),
    "experts, MTP": lambda folder: gemma(folder, True, assistant=True),
    "dense, few tokens": few_tokens,
    "dense, EAGLE-3": lambda folder: eagle(folder, "dense"),
    "experts, EAGLE-3": lambda folder: eagle(folder, "experts"),
    "llama, EAGLE-3": lambda folder: eagle(folder, "llama"),
    "dense, DFlash 2": lambda folder: scoring(folder, "DFlash 2"),
    "dense, DSpark": lambda folder: scoring(folder, "DSpark"),
    "dense, DSpine": lambda folder: scoring(folder, "DSpine"),
    "qwen3_5, DFlash 2": lambda folder: scoring(folder, "qwen3_5"),
    "llama": lambda folder: plain(folder, "llama"),
    "qwen3_moe": lambda folder: plain(folder, "qwen3_moe"),
    "gpt_oss": gpt,
    "qwen3_5": recurrent,
    "qwen3_5, MTP": lambda folder: recurrent(folder, own=True),
    "qwen3_5_moe, MTP": lambda folder: recurrent(folder, experts=True, own=True),
}


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The pair of this name, without stop tokens."""
    folder = tmp_path_factory.mktemp("pair")
    PAIRS[request.param](folder)
    target = load_target(folder / "target", CPU, no_progress)
    target.config = replace(target.config, stop_token_ids=())
    return Pair(target, load_drafter(folder / "drafter", target, no_progress))


def of(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("pair", names, indirect=True)


def repeating(pair: Pair) -> Pair:
    """It knows four tokens, so that its texts soon repeat themselves. The others are copies of these, each a little
    smaller than the one before: were they alike, the last bit of a processor's sums would choose between them."""
    target = deepcopy(pair.target)
    token = torch.arange(VOCAB_SIZE)
    with torch.no_grad():
        for weight in {target.embed_tokens.weight, target.head}:
            weight.copy_(weight[token % 4] * (1 - token // 4 / 1024)[:, None])
    target.prepare()
    return Pair(target, pair.drafter)


def copying(pair: Pair) -> Pair:
    """It goes on with the pattern of its prompt; if sampled, not always."""
    target = deepcopy(pair.target)
    with torch.no_grad():
        target.embed_tokens.weight[4:] = 0
        target.embed_tokens.weight.mul_(3)
        for layer in target.layers:
            layer.post_attention_layernorm.weight.mul_(0.6)
            layer.post_feedforward_layernorm.weight.mul_(0.6)
    target.prepare()
    return Pair(target, pair.drafter)


class Steady(Auto):
    """Learns nothing, so that host and device, which hears of a round later, choose alike."""

    def observe(self, *_: object) -> None:  # type: ignore[override]
        pass


class Told(Steady):
    """Looks up, drafts or does both as it is told, round by round."""

    plans: tuple[RoundPlan, ...] = ()
    asked = 0

    def plan(self, context: int, length: int) -> RoundPlan:
        self.asked += 1
        plan = self.plans[(self.asked - 1) % len(self.plans)]
        return plan._replace(draft=plan.draft and self.has_drafter)


def told(table: CostTable, *plans: RoundPlan) -> Auto:
    """A policy that follows these plans, over and over; without any it chooses itself."""
    if not plans:
        return Auto(table)
    policy = Told(table)
    policy.plans = plans
    return policy


def assert_matches_are_those_of_the_text(prompt: Sequence[int], answer: Answer) -> None:
    text = list(prompt)
    for done in answer.rounds:
        if done.match is not None:
            assert done.match == longest_match(text)
        if done.match is not None and not done.tree:
            assert list(done.draft_ids) == continuation(text, done.match.distance, len(done.draft_ids))
        text += done.emitted


CONTEXT = 96
PROMPT = prompt_ids(30)
"""Longer than the windows of 24 and 20, so that rings wrap."""


def spoken(pair: Pair, wanted: GenerationSettings) -> list[int]:
    """Prompt and answer, without a drafter."""
    return [*PROMPT, *run_turn(Decoder(pair.target, None, CONTEXT), PROMPT, wanted).ids]


class Drafts(NamedTuple):
    """What is drafted of a ``text``: at each position in turn the choice of this number is right, or none."""

    text: Sequence[int]
    right: Sequence[int | None]
    given: Sequence[float] = GIVEN

    def choices(self, position: int) -> list[int]:
        said = self.text[position] if position < len(self.text) else 0
        tokens = [(said + 1 + other) % VOCAB_SIZE for other in range(CHOICES)]
        choice = self.right[position % len(self.right)]
        if choice is not None:
            tokens[choice] = said
        return tokens

    def lattice(self, position: int, count: int) -> tuple[list[list[int]], Lattice]:
        """The same behind the right token before it, and behind other tokens nothing right. Candidates stand in another
        order at each position."""
        ids, places = [], []
        before = 0
        for at in range(position, position + count):
            choices, turn = self.choices(at), at * 5 % CANDIDATES
            others = [(choices[0] + 20 + other) % VOCAB_SIZE for other in range(CANDIDATES - CHOICES)]
            ids.append([([*choices, *others])[(place - turn) % CANDIDATES] for place in range(CANDIDATES)])
            wrong = [(turn + CHOICES + rank) % CANDIDATES for rank in range(CHOICES)]
            behind = [wrong] * CANDIDATES
            behind[before] = [(turn + rank) % CANDIDATES for rank in range(CHOICES)]
            places.append(behind if ids[1:] else [behind[0]] * CANDIDATES)
            before = (turn + (self.right[at % len(self.right)] or 0)) % CANDIDATES
        return ids, Lattice.of([[list(self.given)] * CANDIDATES] * count, places)


def mostly_right(text: Sequence[int], error_rate: float = 0.25) -> Drafts:
    """Wrong at positions that don't depend on when they are asked about; only the first choice is worth anything."""
    rng = random.Random("errors")
    right = [None if rng.random() < error_rate else 0 for _ in range(len(text) + 32)]
    return Drafts(text, right, (GIVEN[0], 0.0, 0.0, 0.0))


class TellingDrafter(ScriptedDrafter):
    """Drafts as it is told, for the host."""

    def __init__(self, real: DFlashDrafter, drafts: Drafts):
        super().__init__(real, lambda position, _, count: [drafts.choices(position + 1 + i)[0] for i in range(count)])
        self.drafts, self.conditioned = drafts, real.conditioned

    def lattice(
        self, target: TargetModel, anchor: int, block_size: int, cache: Cache
    ) -> tuple[list[list[int]], Lattice]:
        return self.drafts.lattice(cache.length + 1, block_size - 1)

    def probabilities(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> Tensor:
        given = torch.zeros(block_size - 1, VOCAB_SIZE)
        for place in range(block_size - 1):
            given[place, self.drafts.choices(cache.length + 1 + place)] = torch.tensor(self.drafts.given)
        return given


class AlwaysDue(OneRowPasses):
    due = True  # type: ignore[assignment]


def by_host(pair: Pair, drafts: Drafts | None = None, max_context: int = CONTEXT, choices: int = 1) -> Decoder:
    """``choices`` of the drafter's make trees, where a policy chooses. A pass of one row stands beside every round, and
    changes nothing."""
    drafter = pair.drafter if drafts is None else cast(DFlashDrafter, TellingDrafter(pair.drafter, drafts))
    decoder = Decoder(pair.target, drafter, max_context)
    decoder.use_rounds(HostRounds(choices))
    decoder.one_row = AlwaysDue()
    return decoder


def on_device(pair: Pair, drafts: Drafts | None = None, max_context: int = CONTEXT) -> Decoder:
    """Its tree has as many choices as ``by_host`` must be told."""
    decoder = Decoder(pair.target, pair.drafter, max_context)
    launches = RoundLaunches(decoder, tiles=TILES, draft_tiles=DRAFT_TILES)
    decoder.use_rounds(DeviceRounds(launches))
    if drafts is not None:
        _tell(launches, drafts)
    return decoder


def _tell(launches: RoundLaunches, drafts: Drafts) -> None:
    rows, state, tree = launches.drafter, launches.state, launches.tree
    assert rows is not None
    tokens, probability = rows.out.token, rows.out.probability

    def draft(count: int, _: bool = False) -> None:
        if not int(state.draft_width):
            return
        found = torch.tensor([drafts.choices(int(state.cursor) + 1 + place) for place in range(15)])
        tokens[:15], probability[:15] = found[:, 0], GIVEN[0]
        if tree is None:
            return
        choices = tree.choices
        choices.probabilities[:15] = torch.tensor(drafts.given)
        if choices.order is None:
            choices.tokens[:15] = found
        else:
            ids, lattice = drafts.lattice(int(state.cursor) + 1, 15)
            choices.tokens[:15] = torch.tensor(ids)
            choices.order[:15] = (torch.tensor(lattice.order) << torch.arange(0, 16, 4)).sum(-1)

    rows.draft = draft  # type: ignore[method-assign]


def choices_of(device: Decoder) -> int:
    return cast(DeviceRounds, device.rounds).choices


TIMES = {"total_ms", "draft_ms", "verify_ms", "alone_ms"}


def assert_same_rounds(actual: Answer, expected: Answer) -> None:
    """All that a round tells is the same, but times: numbers of two programs as far as fp32 goes."""
    assert actual.ids == expected.ids
    for ours, theirs in zip(actual.rounds, expected.rounds, strict=True):
        for name in (field.name for field in fields(Round) if field.name not in TIMES):
            found, wanted = getattr(ours, name), getattr(theirs, name)
            if name == "choice":
                found, wanted = found and astuple(found), wanted and astuple(wanted)
            if name == "tree":
                found, wanted = [node[:3] for node in found], [node[:3] for node in wanted]
            is_real = name == "choice" or "probabilities" in name
            assert found == (pytest.approx(wanted, abs=1e-4) if is_real and wanted else wanted), name
